//! Statements, and the queries of loops.

use super::program::{Field, Generator, Keyed, Local, Output, list, local, optional};
use crate::reference::Kind;

impl Generator<'_> {
    fn line(&self, indent: usize, text: &str, out: &mut String) {
        out.push_str(&format!("{}{text}\n", "  ".repeat(indent)));
    }

    pub fn statements(&mut self, count: usize, depth: usize, indent: usize, out: &mut String) {
        let (scope, own) = (self.scope.len(), self.own.len());
        for _ in 0..count {
            self.statement(depth, indent, out);
        }
        self.scope.truncate(scope);
        self.own.truncate(own);
    }

    fn statement(&mut self, depth: usize, indent: usize, out: &mut String) {
        match self.dice.below(if self.changes { 24 } else { 15 }) {
            0 => self.let_value(indent, out),
            1 => self.let_row(indent, out),
            2 => self.variable(indent, out),
            3 if self.own.len() < 2 => self.own_list(indent, out),
            4 | 5 if depth > 0 => self.branch(depth, indent, out),
            6..9 if depth > 0 && self.loops < 2 => self.repeat(depth, indent, out),
            9 | 10 => self.assign(indent, out),
            11 => self.way_out(indent, out),
            12 => self.change_list(indent, out),
            13 => self.change_row(indent, out),
            14 => self.remove(indent, out),
            15 => self.change_list(indent, out),
            16 | 17 => self.assign(indent, out),
            18 => self.remove(indent, out),
            19 => self.send(indent, out),
            20 | 21 => self.timer(indent, out),
            22 => self.procedure(indent, out),
            _ => self.change_row(indent, out),
        }
    }

    fn let_value(&mut self, indent: usize, out: &mut String) {
        let kind = self.kind(2);
        let value = self.value(&kind, 2, true);
        let name = self.fresh("v");
        self.line(indent, &format!("let {name}: {} = {value}", self.written(&kind)), out);
        // A row that is named so stands for its list; that its kind is right is enough here.
        self.scope.push(local(&name, kind));
    }

    fn a_keyed(&mut self) -> Keyed {
        let own = self.own.len();
        if own > 0 && (!self.changes || self.dice.one_in(2)) {
            return self.own[self.dice.below(own)].clone();
        }
        self.dice.pick(&self.declared.keyed).clone()
    }

    /// A keyed list whose rows may be changed here.
    fn a_changing(&mut self) -> Option<Keyed> {
        if self.changes || !self.own.is_empty() { Some(self.a_keyed()) } else { None }
    }

    /// Names of rows that may be changed here.
    fn rows(&self) -> Vec<Local> {
        let may_change = |local: &&Local| local.row_of.is_some() && (self.changes || local.own);
        self.scope.iter().filter(may_change).cloned().collect()
    }

    fn record_of(&self, keyed: &Keyed) -> String {
        self.declared.records[keyed.record].name.clone()
    }

    fn is_own(&self, keyed: &Keyed) -> bool {
        self.own.iter().any(|own| own.name == keyed.name)
    }

    /// `let row = list[key] else …`, `let row = list add …`, `let row = other`, and the same with `var`, which copies the row.
    fn let_row(&mut self, indent: usize, out: &mut String) {
        let keyed = self.a_keyed();
        let (name, record) = (self.fresh("r"), self.record_of(&keyed));
        let own = self.is_own(&keyed);
        let row = self.row(&record, 1).unwrap_or_else(|| format!("{}[{}]", keyed.name, self.key(&keyed)));
        let change = own || self.changes;
        let copies = self.dice.one_in(3);
        let word = if copies { "var" } else { "let" };
        let (text, of) = match self.dice.below(if copies { 10 } else { 8 }) {
            0 if change => {
                let word = *self.dice.pick(&["add", "put", "put"]);
                (format!("{} {word} {}", keyed.name, self.record(&record, 1)), Some(keyed))
            }
            1 | 2 if change => {
                let row = format!("{}[{}]", keyed.name, self.key(&keyed));
                (format!("{row} else {} put {}", keyed.name, self.record(&record, 1)), Some(keyed))
            }
            3 => (format!("{row} else {}", self.record(&record, 1)), None),
            4 => {
                let rows: Vec<Local> =
                    self.scope.iter().filter(|local| local.row_of.is_some()).cloned().collect();
                match rows.is_empty() {
                    true => return self.let_value(indent, out),
                    false => {
                        let row = self.dice.pick(&rows).clone();
                        self.line(indent, &format!("{word} {name} = {}", row.name), out);
                        let row_of = row.row_of.filter(|_| !copies);
                        return self.scope.push(Local { name, row_of, changes: copies, ..row });
                    }
                }
            }
            8 | 9 => {
                let kind = optional(Kind::Record(record));
                let written =
                    if self.dice.one_in(2) { format!(": {}", self.written(&kind)) } else { String::new() };
                self.line(indent, &format!("var {name}{written} = {row}"), out);
                return self.scope.push(Local { changes: true, ..local(&name, kind) });
            }
            _ => {
                let row = format!("{}[{}]", keyed.name, self.key(&keyed));
                (format!("{row} else {}", self.exit()), Some(keyed))
            }
        };
        self.line(indent, &format!("{word} {name} = {text}"), out);
        let row_of = of.filter(|_| !copies);
        self.scope.push(Local { row_of, own, changes: copies, ..local(&name, Kind::Record(record)) });
    }

    fn exit(&mut self) -> String {
        let mut exits = vec![format!("refuse {}", self.value(&Kind::Text, 1, true))];
        match self.answer.clone() {
            Some(answer) => exits.push(format!("return {}", self.value(&answer, 1, true))),
            None => exits.push("return".into()),
        }
        if self.loops > 0 {
            exits.extend(["break".into(), "continue".into(), "continue".into()]);
        }
        self.dice.pick(&exits).clone()
    }

    fn variable(&mut self, indent: usize, out: &mut String) {
        let kind = if self.dice.one_in(2) { Kind::Int } else { self.kind(2) };
        let name = self.fresh("v");
        let written = self.written(&kind);
        let text = match kind {
            Kind::List(_) | Kind::Optional(_) if self.dice.one_in(2) => format!("var {name}: {written}"),
            _ => format!("var {name}: {written} = {}", self.value(&kind, 2, true)),
        };
        self.line(indent, &text, out);
        self.scope.push(Local { changes: true, ..local(&name, kind) });
    }

    fn own_list(&mut self, indent: usize, out: &mut String) {
        let record = self.dice.below(self.declared.records.len());
        let fields = &self.declared.records[record].fields;
        let keys: Vec<String> = fields
            .iter()
            .filter(|field| field.name.starts_with('k'))
            .map(|field| field.name.clone())
            .collect();
        let name = self.fresh("w");
        let keyed = Keyed { name: name.clone(), record, keys: keys.clone(), indexed: Vec::new() };
        let record = self.record_of(&keyed);
        self.line(indent, &format!("var {name}: list of {record} by {}", keys.join(", ")), out);
        self.own.push(keyed);
    }

    fn branch(&mut self, depth: usize, indent: usize, out: &mut String) {
        let mark = self.scope.len();
        let condition = if self.dice.one_in(3) { self.named_by_is(1) } else { self.condition(2) };
        self.line(indent, &format!("if {condition} {{"), out);
        let count = 1 + self.dice.below(2);
        self.statements(count, depth - 1, indent + 1, out);
        self.scope.truncate(mark);
        if self.dice.one_in(3) {
            let condition = self.condition(1);
            self.line(indent, &format!("}} else if {condition} {{"), out);
            self.statements(1, depth - 1, indent + 1, out);
            self.scope.truncate(mark);
        }
        if self.dice.one_in(2) {
            self.line(indent, "} else {", out);
            let count = 1 + self.dice.below(2);
            self.statements(count, depth - 1, indent + 1, out);
        }
        self.line(indent, "}", out);
    }

    fn repeat(&mut self, depth: usize, indent: usize, out: &mut String) {
        let mark = self.scope.len();
        let query = self.loop_query(1, false, true);
        self.line(indent, &format!("{query} {{"), out);
        self.loops += 1;
        let count = 1 + self.dice.below(3);
        self.statements(count, depth - 1, indent + 1, out);
        self.loops -= 1;
        self.scope.truncate(mark);
        self.line(indent, "}", out);
    }

    /// `require`, or an exit under a condition.
    fn way_out(&mut self, indent: usize, out: &mut String) {
        let mark = self.scope.len();
        let condition = self.condition(1);
        if self.dice.one_in(3) {
            self.scope.truncate(mark);
            let reason = self.value(&Kind::Text, 1, true);
            let or = *self.dice.pick(&["true", "my_limit > 2", "false"]);
            return self.line(indent, &format!("require {condition} or {or} else {reason}"), out);
        }
        let exit = self.exit();
        self.scope.truncate(mark);
        self.line(indent, &format!("if {condition} {{"), out);
        self.line(indent + 1, &exit, out);
        self.line(indent, "}", out);
    }

    /// Places of variables that may be assigned, and their kinds.
    fn places(&mut self) -> Vec<(String, Kind)> {
        let mut roots: Vec<(String, Kind)> = Vec::new();
        if self.changes {
            roots.extend(self.declared.variables.iter().cloned());
        }
        let vars = self.scope.iter().filter(|local| local.changes);
        roots.extend(vars.map(|local| (local.name.clone(), local.kind.clone())));
        let mut places = Vec::new();
        for (name, kind) in roots {
            if let Kind::Record(record) = &kind {
                let record =
                    self.declared.records.iter().find(|one| one.name == *record).expect("it is declared");
                places.extend(
                    record.fields.iter().map(|field| (format!("{name}.{}", field.name), field.kind.clone())),
                );
            }
            if let Kind::List(element) = &kind {
                let index = self.small(&Kind::Int);
                places.push((format!("{name}[{index}]"), (**element).clone()));
                if let Kind::Record(record) = &**element {
                    let fields = &self
                        .declared
                        .records
                        .iter()
                        .find(|one| one.name == *record)
                        .expect("it is declared")
                        .fields;
                    places.extend(
                        fields
                            .iter()
                            .map(|field| (format!("{name}[{index}].{}", field.name), field.kind.clone())),
                    );
                }
            }
            places.push((name, kind));
        }
        places
    }

    fn assign(&mut self, indent: usize, out: &mut String) {
        let places = self.places();
        if places.is_empty() {
            return self.variable(indent, out);
        }
        let (place, kind) = self.dice.pick(&places).clone();
        self.assign_to(&place, &kind, indent, out);
    }

    fn assign_to(&mut self, place: &str, kind: &Kind, indent: usize, out: &mut String) {
        let text = match kind {
            Kind::Int | Kind::Real | Kind::Duration if self.dice.one_in(2) => {
                let operator = match kind {
                    Kind::Duration => *self.dice.pick(&["+=", "-="]),
                    _ => *self.dice.pick(&["+=", "-=", "*="]),
                };
                format!("{place} {operator} {}", self.value(kind, 2, true))
            }
            Kind::Time if self.dice.one_in(2) => {
                format!("{place} += {}", self.value(&Kind::Duration, 1, true))
            }
            Kind::List(element) if self.dice.one_in(2) => {
                format!("{place} add {}", self.value(&element.clone(), 1, true))
            }
            _ => format!("{place} = {}", self.value(kind, 2, true)),
        };
        self.line(indent, &text, out);
    }

    fn change_list(&mut self, indent: usize, out: &mut String) {
        let Some(keyed) = self.a_changing() else { return self.variable(indent, out) };
        let record = self.record_of(&keyed);
        let word = *self.dice.pick(&["add", "put", "put"]);
        if word == "add" && self.dice.one_in(3) {
            let key = self.key(&keyed);
            self.line(indent, &format!("remove {}[{key}]", keyed.name), out);
        }
        let mut text = format!("{} {word} {}", keyed.name, self.record(&record, 2));
        if keyed.name == "l0" && self.dice.one_in(2) {
            text = text.replacen("k0: ", "k0: next_id(l0) * 0 + ", 1);
        }
        if self.dice.one_in(3) {
            let condition = format!("not ({} in {})", self.key(&keyed), keyed.name);
            if keyed.keys.len() == 1 {
                self.line(indent, &format!("if {condition} {{"), out);
                self.line(indent + 1, &text, out);
                return self.line(indent, "}", out);
            }
        }
        self.line(indent, &text, out);
    }

    fn remove(&mut self, indent: usize, out: &mut String) {
        let rows = self.rows();
        let Some(keyed) = self.a_changing() else { return self.assign(indent, out) };
        match self.dice.below(3) {
            0 if !rows.is_empty() => {
                let row = self.dice.pick(&rows).name.clone();
                self.line(indent, &format!("remove {row}"), out);
            }
            1 => {
                let mark = self.scope.len();
                let element = self.fresh("x");
                let rest = self.rest_of_query(&element, &keyed, 1);
                self.scope.truncate(mark);
                self.line(indent, &format!("remove {element} for {element} in {}{rest}", keyed.name), out);
            }
            _ => {
                let key = self.key(&keyed);
                self.line(indent, &format!("remove {}[{key}]", keyed.name), out);
            }
        }
    }

    fn change_row(&mut self, indent: usize, out: &mut String) {
        let rows = self.rows();
        let Some(keyed) = self.a_changing() else { return self.assign(indent, out) };
        let (name, keyed) = match rows.is_empty() || self.dice.one_in(4) {
            true => (format!("{}[{}]", keyed.name, self.key(&keyed)), keyed),
            false => {
                let row = self.dice.pick(&rows).clone();
                (row.name, row.row_of.expect("rows were chosen"))
            }
        };
        let fields = self.declared.records[keyed.record].fields.clone();
        let free: Vec<_> = fields.iter().filter(|field| !keyed.keys.contains(&field.name)).cloned().collect();
        if free.is_empty() {
            return;
        }
        let field = self.dice.pick(&free).clone();
        self.assign_to(&format!("{name}.{}", field.name), &field.kind, indent, out);
    }

    fn send(&mut self, indent: usize, out: &mut String) {
        let Output { called: output, to_endpoint, .. } = self.dice.pick(&self.declared.outputs).clone();
        let kind = if to_endpoint { Kind::Endpoint } else { Kind::Node };
        let to = self.leaf_of(&kind);
        let arguments = self.arguments(&output.fields, 1);
        self.line(indent, &format!("send {}({arguments}) to {to}", output.name), out);
    }

    fn leaf_of(&mut self, kind: &Kind) -> String {
        self.value(kind, 0, true)
    }

    fn timer(&mut self, indent: usize, out: &mut String) {
        if self.declared.timers.is_empty() {
            return;
        }
        let timer = self.dice.pick(&self.declared.timers).clone();
        let argument = |field: &Field| match field.kind {
            Kind::Text => self.value(&Kind::Text, 1, true),
            _ => self.small(&field.kind),
        };
        let arguments: Vec<String> = timer.fields.iter().map(argument).collect();
        let call = format!("{}({})", timer.name, arguments.join(", "));
        let text = match self.dice.below(4) {
            0 => format!("cancel {call}"),
            1 => format!("start {call} at {}", self.value(&Kind::Time, 1, true)),
            _ => format!("start {call} after {}", self.value(&Kind::Duration, 1, true)),
        };
        self.line(indent, &text, out);
    }

    fn procedure(&mut self, indent: usize, out: &mut String) {
        if self.declared.procedures.is_empty() {
            return self.change_list(indent, out);
        }
        let procedure = self.dice.pick(&self.declared.procedures).clone();
        let arguments = self.arguments(&procedure.fields, 1);
        self.line(indent, &format!("{}({arguments})", procedure.name), out);
    }

    // Queries.

    /// `for x in … where …`; what its names stand for is in scope afterwards. `bounded`: its elements are collected.
    pub fn query(&mut self, depth: usize, bounded: bool) -> String {
        self.loop_query(depth, bounded, false)
    }

    pub fn loop_query(&mut self, depth: usize, bounded: bool, live: bool) -> String {
        let (is_ordered, several) = (self.dice.one_in(3), depth > 0 && self.dice.one_in(5));
        let is_grouped = depth > 0 && self.dice.one_in(6);
        let take = self.dice.one_in(4) || bounded && several;
        // What is not looked at any more after the last one taken, or is looked at in another order, must not refuse.
        let safe = is_ordered || take;
        let mark = self.scope.len();
        let mut text = self.source(depth, safe, live && !is_grouped);
        if several {
            text.push(' ');
            text.push_str(&self.source(if safe { 0 } else { depth }, safe, live && !is_grouped));
        }
        if is_grouped {
            text.push_str(&self.grouped(mark));
        }
        if is_ordered {
            let mut keys = Vec::new();
            for _ in 0..1 + self.dice.below(2) {
                let kind = self.kind(0);
                let key = self.apart(mark, |generator| generator.value(&kind, 0, false));
                let key = match self.dice.below(2) {
                    0 => self.path_of_last(mark).unwrap_or(key),
                    _ => key,
                };
                keys.push(format!("{key}{}", self.dice.pick(&["", " desc"])));
            }
            text.push_str(&format!(" order by {}", keys.join(", ")));
        }
        if take {
            text.push_str(&format!(" take {}", self.dice.pick(&["0", "1", "2", "3", "my_limit", "-1"])));
        }
        text
    }

    /// With nothing in scope but what is above a mark.
    fn apart<T>(&mut self, mark: usize, work: impl FnOnce(&mut Self) -> T) -> T {
        let below: Vec<Local> = self.scope.drain(..mark).collect();
        let done = work(self);
        self.scope.splice(0..0, below);
        done
    }

    /// A field of the last name in scope, that has an order.
    fn path_of_last(&mut self, mark: usize) -> Option<String> {
        let last = self.scope.last().filter(|_| self.scope.len() > mark)?.clone();
        let Kind::Record(record) = &last.kind else { return None };
        let fields = &self.declared.records.iter().find(|one| one.name == *record)?.fields;
        let fit: Vec<_> = fields
            .iter()
            .filter(|field| !matches!(field.kind, Kind::List(_) | Kind::Record(_) | Kind::Optional(_)))
            .collect();
        let keys = fit.len().min(2);
        let field =
            if self.dice.one_in(2) { &fit[self.dice.below(keys)] } else { &fit[self.dice.below(fit.len())] };
        Some(format!("{}.{}", last.name, field.name))
    }

    fn source(&mut self, depth: usize, safe: bool, live: bool) -> String {
        let element = self.fresh("x");
        match self.dice.below(6) {
            0 => {
                let upto = self.dice.below(5);
                let from = self.small_int(safe);
                self.scope.push(local(&element, Kind::Int));
                let condition = self.plain_condition(safe, depth);
                format!("for {element} in {from} .. {upto}{condition}")
            }
            1 => {
                let kind = self.kind(1);
                let of = match self.named(&list(kind.clone())) {
                    Some(name) if !safe || !name.contains('.') => name,
                    _ => format!("[{}]", self.value(&kind, 0, true)),
                };
                if of.starts_with('[') && matches!(kind, Kind::Enum(_) | Kind::Optional(_) | Kind::List(_)) {
                    self.scope.push(local(&element, Kind::Int));
                    return format!("for {element} in [1, 2]");
                }
                self.scope.push(local(&element, kind));
                let condition = self.plain_condition(safe, depth);
                format!("for {element} in {of}{condition}")
            }
            _ => {
                let keyed = self.a_keyed();
                let name = keyed.name.clone();
                let own = self.is_own(&keyed);
                let record = self.record_of(&keyed);
                let row_of = if live && (own || self.changes) { Some(keyed.clone()) } else { None };
                self.scope.push(Local { row_of, own, ..local(&element, Kind::Record(record)) });
                let condition = self.found_condition(&element, &keyed, safe, depth);
                format!("for {element} in {name}{condition}")
            }
        }
    }

    fn small_int(&mut self, safe: bool) -> String {
        if safe { "0".into() } else { (*self.dice.pick(&["0", "1", "-2", "my_limit"])).into() }
    }

    /// The rest of a query over a keyed list that chooses rows.
    pub fn rest_of_query(&mut self, element: &str, keyed: &Keyed, depth: usize) -> String {
        let record = self.record_of(keyed);
        let mark = self.scope.len();
        self.scope.push(local(element, Kind::Record(record)));
        let is_ordered = self.dice.one_in(2);
        let mut text = self.found_condition(element, keyed, is_ordered, depth);
        if is_ordered && let Some(path) = self.path_of_last(mark) {
            text.push_str(&format!(" order by {path}{}", self.dice.pick(&["", " desc"])));
        }
        text
    }

    fn plain_condition(&mut self, safe: bool, depth: usize) -> String {
        if safe || self.dice.one_in(2) {
            return String::new();
        }
        let mark = self.scope.len();
        let condition = self.condition(depth.min(1));
        self.scope.truncate(mark);
        format!(" where {condition}")
    }

    /// A condition that an index or the key may serve, and perhaps more.
    fn found_condition(&mut self, element: &str, keyed: &Keyed, safe: bool, depth: usize) -> String {
        let fields = self.declared.records[keyed.record].fields.clone();
        let mut parts: Vec<String> = Vec::new();
        for _ in 0..self.dice.below(4) {
            let served: Vec<_> = fields
                .iter()
                .filter(|field| {
                    keyed.keys.contains(&field.name)
                        || keyed.indexed.contains(&field.name)
                        || self.dice.one_in(4)
                })
                .cloned()
                .collect();
            if served.is_empty() {
                continue;
            }
            let field = self.dice.pick(&served).clone();
            let path = format!("{element}.{}", field.name);
            let below = self.scope.len() - 1;
            let value = |generator: &mut Self| match safe {
                true => generator.apart(below, |generator| generator.small(&field.kind)),
                false => generator.small(&field.kind),
            };
            let is_ordered = !matches!(field.kind, Kind::Optional(_) | Kind::List(_) | Kind::Record(_));
            parts.push(match self.dice.below(6) {
                0..3 => format!("{path} == {}", value(self)),
                3 if is_ordered => format!("{path} in {} .. {}", value(self), value(self)),
                4 if is_ordered => format!("{} <= {path}", value(self)),
                5 if is_ordered => {
                    format!("{path} {} {}", self.dice.pick(&["<", "<=", ">", ">="]).to_owned(), value(self))
                }
                _ => format!("{path} == {}", value(self)),
            });
        }
        if !safe && self.dice.one_in(3) {
            let mark = self.scope.len();
            let condition = self.condition(depth.min(1));
            self.scope.truncate(mark);
            let at = self.dice.below(parts.len() + 1);
            parts.insert(at, condition);
        }
        if parts.is_empty() { String::new() } else { format!(" where {}", parts.join(" and ")) }
    }

    fn grouped(&mut self, mark: usize) -> String {
        let kind = self.kind(0);
        let key = self.apart(mark, |generator| generator.value(&kind, 0, false));
        let mut elements: Vec<(String, Kind)> =
            self.scope.drain(mark..).map(|local| (local.name, local.kind)).collect();
        let row = if elements.len() == 1 { elements.remove(0).1 } else { Kind::Shape(elements) };
        let name = self.fresh("g");
        let shape = Kind::Shape(vec![("key".into(), kind), ("rows".into(), list(row))]);
        self.scope.push(local(&name, shape));
        let condition =
            if self.dice.one_in(3) { format!(" where count({name}.rows) > 1") } else { String::new() };
        format!(" group by {key} as {name}{condition}")
    }
}
