//! What must hold at the end, when the faults are over and everything had time to arrive.

use crate::world::{NODES, World};
use node_core::{Control, Effect, Input, Out, Reply, ReplyId};
use std::collections::{BTreeMap, BTreeSet};

impl World {
    fn view(&self, node: usize, view: &str, argument: &str, of: usize) -> serde_json::Value {
        let running = self.nodes[node].running.as_ref().expect("every node was started for the calm");
        let snapshot = running.published.as_ref().expect("a start publishes");
        let query = [(argument.to_owned(), self.nodes[of].identity.id().to_string())];
        let text = snapshot.view(view, &query, "local", 0).expect("the view's arguments are right");
        serde_json::from_str(&text).expect("a view is JSON")
    }

    /// The view `all` of the only app.
    pub(crate) fn view_all(&self, node: usize) -> serde_json::Value {
        let running = self.nodes[node].running.as_ref().expect("every node was started for the calm");
        let snapshot = running.published.as_ref().expect("a start publishes");
        let text = snapshot.view("all", &[], "local", 0).expect("it has no arguments");
        serde_json::from_str(&text).expect("a view is JSON")
    }

    pub(crate) fn check(&mut self, from: usize) {
        let seed = self.seed;
        let mut known = BTreeSet::new();
        for to in 0..NODES {
            let outcomes = self.view(from, "outcomes", "to", to);
            let mut expected = Vec::new();
            for line in outcomes.as_array().expect("a list") {
                let number = line["number"].as_u64().expect("a number");
                known.insert(number);
                let refused = number % 7 == 0;
                let how = if refused { "refused" } else { "delivered" };
                let reminded = u64::from(number % 5 != 0);
                assert_eq!(line["reminded"], reminded, "seed {seed}: {from}, number {number}: timers");
                assert_eq!(line["ticks"], 1, "seed {seed}: {from}, number {number}: every");
                self.check_web(from, line);
                assert_eq!(line["how"], how, "seed {seed}: {from} to {to}, number {number}");
                let answered = if refused { 0 } else { number };
                assert_eq!(
                    line["answered"], answered,
                    "seed {seed}: {from} to {to}, number {number}: answers"
                );
                if refused {
                    self.reach("refused");
                } else {
                    self.reach("answered");
                    expected.push(number);
                }
            }
            let received = self.view(to, "received", "peer", from);
            assert_eq!(received, serde_json::json!(expected), "seed {seed}: {from} to {to}");
        }
        // What is worth something now or never is heard once or never, and only of events that are durable.
        for to in 0..NODES {
            for hint in self.view(to, "hinted", "peer", from).as_array().expect("a list") {
                let number = hint["number"].as_u64().expect("a number");
                assert!(known.contains(&number), "seed {seed}: {to} heard of {number}, which {from} lost");
                assert_eq!(hint["times"], 1, "seed {seed}: {from} to {to}, number {number}: said again");
                self.reach("hinted");
            }
        }
        // In the order of the sends, and only of events that are durable.
        let expected = known.iter().copied().filter(|number| number % 11 != 0).collect::<Vec<_>>();
        let taken = self.web.taken.entry(from).or_default();
        assert_eq!(*taken, expected, "seed {seed}: {from} to the web");
        let lost: Vec<_> = self.nodes[from].answered.difference(&known).collect();
        assert!(lost.is_empty(), "seed {seed}: answered and lost: {lost:?}");
    }

    /// What the web took is heard as delivered, and what it refused as refused.
    fn check_web(&mut self, from: usize, line: &serde_json::Value) {
        let (seed, number) = (self.seed, line["number"].as_u64().expect("a number"));
        let how = if number % 11 == 0 { "refused" } else { "delivered" };
        assert_eq!(line["web"], how, "seed {seed}: {from} to the web, number {number}");
        let taken: BTreeMap<u64, usize> =
            self.web.taken.get(&from).into_iter().flatten().fold(BTreeMap::new(), |mut times, number| {
                *times.entry(*number).or_default() += 1;
                times
            });
        let times = usize::from(how == "delivered");
        assert_eq!(taken.get(&number).copied().unwrap_or_default(), times, "seed {seed}: {from}, {number}");
    }

    /// After a set back: nothing twice, in order, all settled, and what is missing is named.
    pub(crate) fn check_set_back(&mut self, from: usize) {
        let seed = self.seed;
        for to in (0..NODES).filter(|to| *to != from) {
            let outcomes = self.view(from, "outcomes", "to", to);
            let received = self.view(to, "received", "peer", from);
            let received: Vec<u64> = serde_json::from_value(received).expect("a list of numbers");
            assert!(received.is_sorted_by(|a, b| a < b), "seed {seed}: {from} to {to}: {received:?}");
            let mut missing = 0;
            for line in outcomes.as_array().expect("a list") {
                let number = line["number"].as_u64().expect("a number");
                let arrived = received.contains(&number);
                self.check_web(from, line);
                let answered = line["answered"].as_u64().expect("a number");
                // The one that was set back may hear again of what it had settled: its answer is forgotten there.
                let forgotten = answered == 0 && (from == 1 || line["how"] != "delivered");
                assert!(answered == number || forgotten, "seed {seed}: {from}, number {number}: {answered}");
                match line["how"].as_str() {
                    Some("delivered") => missing += u64::from(!arrived),
                    // The one that was set back cannot know what arrived of what it sent since.
                    Some("refused") => assert!(number % 7 == 0 || from == 1, "seed {seed}: {number}"),
                    how => panic!("seed {seed}: {from} to {to}, number {number}: {how:?}"),
                }
            }
            let named = self.missing_by_name(to, from);
            assert!(
                missing <= named,
                "seed {seed}: {missing} of {from} to {to} are missing, {named} are named"
            );
        }
    }

    /// How many records of a peer's are named as missing in a node's status.
    fn missing_by_name(&mut self, node: usize, peer: usize) -> u64 {
        let reply = ReplyId(u64::MAX - 1);
        self.handle(node, Input::Control { reply, control: Control::Status });
        let peer = self.nodes[peer].identity.id().to_string();
        let running = self.nodes[node].running.as_mut().expect("every node was started for the calm");
        while let Some(effect) = running.core.poll_effect() {
            if let Effect::Out(released) = effect
                && let Out::Reply { to, reply: Reply::Status(status) } = released.into_inner()
                && to == reply
            {
                let streams = status.receiving.iter().filter(|stream| stream.peer == peer);
                return streams.flat_map(|stream| &stream.gaps).map(|(first, last)| last - first + 1).sum();
            }
        }
        panic!("the core answers a status at once when nothing is being synced");
    }
}
