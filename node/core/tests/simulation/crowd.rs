//! Nodes that send each other more than there is room for: posts until the outbox is full, and records that make their
//! receivers send one, or two, or to the third. Whatever fills up, in the end all has its outcome, once: no node waits for
//! another that waits for it. Beside it an app that is full for good keeps nobody from anything.

use crate::world::World;
use node_core::{Control, Input, OutboxSizes, Post, ReplyId};
use sealing::NodeId;
use std::collections::BTreeMap;

pub(crate) const NODES: usize = 3;

/// An app's share is 16 records, or 6,000 bytes.
pub(crate) const SIZES: OutboxSizes = OutboxSizes { records: 64, bytes: 24_000, apps_share: 4, apps_own: 16 };

/// Records that a post makes.
const FILL: u64 = 6;

/// What an app may have under way: three shares, and what the last event sends beyond.
const SENDS_MAX: u64 = 3 * 16 + FILL;

/// Kinds of records: who gets how many for each.
const KINDS: u64 = 5;

/// How many times a record's records make records: those that make two do so a few times.
const HOPS_MAX: [u64; KINDS as usize] = [12, 4, 12, 12, 4];

pub(crate) const APP: &str = r#"
app crowd

state sent: int = 0
state got: int = 0
state delivered: int = 0
state full: int = 0

do make(kind: int, hops: int, to: node, third: node, words: text) {
  send item(kind, hops, third, words) to to
  sent += 1
}

on fill(kind: int, hops: int, to: node, third: node, words: text, count: int) {
  for i in 1 .. count { make(kind, hops, to, third, words) }
}

on item(kind: int, hops: int, third: node, words: text) from peer {
  got += 1
  if hops == 0 { return }
  if kind <= 1 { make(kind, hops - 1, peer, third, words) }
  if kind == 1 { make(kind, hops - 1, peer, third, "") }
  if kind == 2 or kind == 4 { make(kind, hops - 1, third, peer, words) }
  if kind == 4 { make(kind, hops - 1, peer, third, words) }
}

on delivered item(kind, hops, third, words) to peer {
  delivered += 1
  if kind == 3 and hops > 0 { make(kind, hops - 1, peer, third, words) }
}

on refused item(_, _, _, _) to _ because why {
  require contains(why, "no room") else "nothing else is refused"
  full += 1
}

view all = { sent, got, delivered, full }
"#;

/// What it sends is for a node that never is there.
pub(crate) const STUCK: &str =
    "app stuck\non fill(to: node) { send word() to to }\non word() from p { }\nview all = 1\n";

/// No app has more under way than there is room for.
pub(crate) fn check_bound(seed: u64, sends: &BTreeMap<String, u64>) {
    let sends: u64 = sends.values().sum();
    assert!(sends <= SENDS_MAX, "seed {seed}: {sends} are under way");
}

impl World {
    /// Posts until it is full, or for a while.
    pub(crate) fn fill(&mut self, node: usize) {
        let others: Vec<usize> = (0..NODES).filter(|other| *other != node).collect();
        let (to, third) = match self.chance.below(5) {
            0 => (node, others[0]),
            1 | 2 => (others[0], others[1]),
            _ => (others[1], others[0]),
        };
        let [to, third] = [to, third].map(|node| self.nodes[node].identity.id());
        let nobody = format!(r#"{{"to":"{}"}}"#, NodeId([7; 32]));
        (0..4).for_each(|_| self.post_to(node, "stuck", nobody.clone()));
        for _ in 0..4 {
            let kind = self.chance.below(KINDS);
            let hops = self.chance.below(HOPS_MAX[kind as usize] + 1);
            let words = "x".repeat(self.chance.below(600) as usize);
            let body = format!(
                r#"{{"kind":{kind},"hops":{hops},"to":"{to}","third":"{third}","words":"{words}","count":{FILL}}}"#
            );
            self.post_to(node, "crowd", body);
        }
    }

    fn post_to(&mut self, node: usize, app: &str, body: String) {
        if self.nodes[node].running.as_ref().is_some_and(|running| running.core.has_room()) {
            let post = Post {
                reply: ReplyId(0),
                app: app.to_owned(),
                input: "fill".to_owned(),
                body: body.into_bytes(),
                by: "local".to_owned(),
                idempotency_key: None,
            };
            self.handle(node, Input::Post(post));
            let control = Control::Sends("crowd".to_owned());
            self.handle(node, Input::Control { reply: ReplyId(0), control });
            self.carry_out(node);
        }
    }

    pub(crate) fn check_crowd(&mut self) {
        let seed = self.seed;
        let count = |node: usize, of: &str| self.view_all(node)[of].as_u64().expect("a number");
        let sum = |of: &str| (0..NODES).map(|node| count(node, of)).sum::<u64>();
        for node in 0..NODES {
            let (sent, ended) = (count(node, "sent"), count(node, "delivered") + count(node, "full"));
            assert_eq!(sent, ended, "seed {seed}: {node}: what was sent, and what has its outcome");
        }
        assert_eq!(sum("got"), sum("delivered"), "seed {seed}: what was taken, and what was delivered");
        if sum("full") > 0 {
            self.reach("refused for room");
        }
    }
}
