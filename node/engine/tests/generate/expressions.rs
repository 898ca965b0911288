//! Expressions of a wanted kind.

use super::program::{Field, Generator, Keyed, Local, list, local, optional};
use crate::reference::Kind;

const INTS: &[&str] = &["0", "1", "2", "3", "4", "7", "-1", "-2", "100"];
const LARGE: &[&str] =
    &["9223372036854775807", "-9223372036854775807", "3037000500", "-3037000500", "4611686018427387904"];
const REALS: &[&str] = &["0.0", "1.5", "-2.5", "0.5", "3.0", "1000000.25", "-0.125", "9223372036854775808.0"];
const TEXTS: &[&str] = &["", "a", "b", "c", "ann", "Ärger ß", " b ", "x\\ny"];
const DURATIONS: &[&str] = &["0 ms", "1 ms", "3 ms", "1 s", "90 s", "5 min", "1 h", "2 d"];

impl Generator<'_> {
    pub fn written(&self, kind: &Kind) -> String {
        match kind {
            Kind::Bool => "bool".into(),
            Kind::Int => "int".into(),
            Kind::Real => "real".into(),
            Kind::Text => "text".into(),
            Kind::Bytes => "bytes".into(),
            Kind::Time => "time".into(),
            Kind::Duration => "duration".into(),
            Kind::Node => "node".into(),
            Kind::Endpoint => "endpoint".into(),
            Kind::Enum(name) | Kind::Record(name) => name.clone(),
            Kind::List(element) => format!("list of {}", self.written(element)),
            Kind::Optional(inner) => format!("{}?", self.written(inner)),
            Kind::Shape(_) | Kind::Unknown => unreachable!("it has no name"),
        }
    }

    pub fn key_kind(&mut self) -> Kind {
        match self.dice.below(12) {
            0..4 => Kind::Int,
            4..7 => Kind::Text,
            7 => self.an_enum(),
            8 => Kind::Bool,
            9 => self.dice.pick(&[Kind::Node, Kind::Bytes, Kind::Endpoint]).clone(),
            10 => Kind::Real,
            _ => self.dice.pick(&[Kind::Time, Kind::Duration]).clone(),
        }
    }

    fn an_enum(&mut self) -> Kind {
        Kind::Enum(self.dice.pick(&self.declared.enums).0.clone())
    }

    /// Any kind, lists and records in it up to a depth.
    pub fn kind(&mut self, depth: usize) -> Kind {
        match self.dice.below(if depth == 0 { 14 } else { 19 }) {
            0..5 => Kind::Int,
            5 | 6 => Kind::Text,
            7 => Kind::Bool,
            8 => Kind::Real,
            9 => Kind::Duration,
            10 => Kind::Time,
            11 => Kind::Node,
            12 => self.an_enum(),
            13 => self.dice.pick(&[Kind::Bytes, Kind::Endpoint]).clone(),
            14 | 15 => {
                let inner = match self.dice.below(5) {
                    0 if !self.declared.records.is_empty() => self.a_record(),
                    _ => self.kind(0),
                };
                optional(inner)
            }
            16 if !self.declared.records.is_empty() => self.a_record(),
            17 if !self.declared.records.is_empty() => list(self.a_record()),
            _ => list(self.kind(0)),
        }
    }

    fn a_record(&mut self) -> Kind {
        Kind::Record(self.dice.pick(&self.declared.records).name.clone())
    }

    fn fields_of(&self, name: &str) -> Vec<Field> {
        self.declared
            .records
            .iter()
            .find(|record| record.name == name)
            .expect("it is declared")
            .fields
            .clone()
    }

    /// A constant for a default or an initial value, where the kind has one.
    pub fn constant(&mut self, kind: &Kind) -> Option<String> {
        Some(match kind {
            Kind::Bool | Kind::Int | Kind::Real | Kind::Text | Kind::Duration | Kind::Enum(_) => {
                self.literal(kind)?
            }
            Kind::Optional(inner) => match self.constant(inner) {
                Some(constant) if self.dice.one_in(2) => constant,
                _ => "none".into(),
            },
            Kind::List(element) => match self.constant(element) {
                Some(constant) if self.dice.one_in(2) => format!("[{constant}, {constant}]"),
                _ => "[]".into(),
            },
            Kind::Record(name) => {
                let mut items = Vec::new();
                for field in self.fields_of(name) {
                    if field.default.is_none() {
                        items.push(format!("{}: {}", field.name, self.constant(&field.kind)?));
                    }
                }
                format!("{name} {{ {} }}", items.join(", "))
            }
            _ => return None,
        })
    }

    fn literal(&mut self, kind: &Kind) -> Option<String> {
        Some(match kind {
            Kind::Bool => (*self.dice.pick(&["true", "false"])).into(),
            Kind::Int if self.dice.one_in(25) => (*self.dice.pick(LARGE)).into(),
            Kind::Int => (*self.dice.pick(INTS)).into(),
            Kind::Real => (*self.dice.pick(REALS)).into(),
            Kind::Text => format!("\"{}\"", self.dice.pick(TEXTS)),
            Kind::Duration => (*self.dice.pick(DURATIONS)).into(),
            Kind::Enum(name) => {
                let cases = &self.declared.enums.iter().find(|(one, _)| one == name)?.1;
                format!(".{}", self.dice.pick(cases))
            }
            _ => return None,
        })
    }

    /// What a kind always has; `told`: whether the place tells the kind, so that cases, `none` and `[]` may stand there.
    fn leaf(&mut self, kind: &Kind, told: bool) -> String {
        if self.dice.one_in(2)
            && let Some(name) = self.named(kind)
        {
            return name;
        }
        match kind {
            Kind::Enum(name) if !told => match self.named(kind) {
                Some(name) => name,
                // What the function takes tells it.
                None => format!("as_{}({})", name.to_lowercase(), self.literal(kind).unwrap_or_default()),
            },
            Kind::Time => (*self.dice.pick(&["now", "my_time", "now"])).into(),
            Kind::Node => (*self.dice.pick(&["me", "my_peer"])).into(),
            Kind::Bytes => "my_blob".into(),
            Kind::Endpoint => "my_link".into(),
            Kind::Optional(_) if told && self.dice.one_in(2) => "none".into(),
            Kind::Optional(inner) if told => self.leaf(inner, true),
            Kind::Optional(inner) => {
                let inner = self.leaf(inner, false);
                format!("(if true then {inner} else none)")
            }
            Kind::List(_) if told && self.dice.one_in(3) => "[]".into(),
            Kind::List(element) => format!("[{}]", self.leaf(element, told)),
            Kind::Record(name) => self.record(&name.clone(), 0),
            other => self.literal(other).unwrap_or_else(|| "0".into()),
        }
    }

    /// Something in scope of exactly this kind: a name, a variable of the state, a field of a record.
    pub fn named(&mut self, kind: &Kind) -> Option<String> {
        let mut found: Vec<String> = Vec::new();
        for local in &self.scope {
            self.paths(&local.name, &local.kind, kind, 2, &mut found);
        }
        for (name, of) in &self.declared.variables {
            self.paths(name, of, kind, 2, &mut found);
        }
        if *kind == Kind::Int {
            found.push("my_limit".into());
        }
        if let Kind::List(element) = kind
            && let Kind::Record(record) = &**element
        {
            let is = |keyed: &&Keyed| self.declared.records[keyed.record].name == *record;
            found.extend(
                self.declared.keyed.iter().chain(&self.own).filter(is).map(|keyed| keyed.name.clone()),
            );
        }
        if found.is_empty() { None } else { Some(self.dice.pick(&found).clone()) }
    }

    fn paths(&self, name: &str, kind: &Kind, wanted: &Kind, depth: usize, found: &mut Vec<String>) {
        if kind == wanted {
            found.push(name.into());
        }
        if depth == 0 {
            return;
        }
        match kind {
            Kind::Record(record) => {
                for field in self.fields_of(record) {
                    self.paths(&format!("{name}.{}", field.name), &field.kind, wanted, depth - 1, found);
                }
            }
            Kind::Shape(fields) => {
                for (field, kind) in fields {
                    self.paths(&format!("{name}.{field}"), kind, wanted, depth - 1, found);
                }
            }
            _ => {}
        }
    }

    pub fn record(&mut self, name: &str, depth: usize) -> String {
        let mut items = Vec::new();
        for field in self.fields_of(name) {
            if field.default.is_some() && self.dice.one_in(2) {
                continue;
            }
            let value = match field.name.starts_with('k') {
                true => self.small(&field.kind),
                false => self.value(&field.kind, depth, true),
            };
            items.push(format!("{}: {value}", field.name));
        }
        if items.is_empty() {
            let field = &self.fields_of(name)[0];
            items.push(format!("{}: {}", field.name, self.small(&field.kind)));
        }
        format!("{name} {{ {} }}", items.join(", "))
    }

    /// Of a small set, so that keys meet.
    pub fn small(&mut self, kind: &Kind) -> String {
        if self.dice.one_in(3)
            && let Some(name) = self.named(kind)
        {
            return name;
        }
        match kind {
            Kind::Int => self.dice.below(6).to_string(),
            Kind::Text => format!("\"{}\"", self.dice.pick(&["a", "b", "c"])),
            other => self.leaf(&other.clone(), true),
        }
    }

    /// An expression of a kind; `told`: whether the place tells the kind.
    pub fn value(&mut self, kind: &Kind, depth: usize, told: bool) -> String {
        if depth == 0 || self.dice.one_in(4) {
            return self.leaf(kind, told);
        }
        let inner = depth - 1;
        if self.dice.one_in(4)
            && let Some(value) = self.of_any_kind(kind, inner, told)
        {
            return value;
        }
        match kind {
            Kind::Int => self.int(inner),
            Kind::Real => self.real(inner),
            Kind::Bool => self.condition(inner),
            Kind::Text => self.text(inner),
            Kind::Time => self.time(inner),
            Kind::Duration => self.duration(inner),
            Kind::Optional(of) => self.maybe(&of.clone(), inner, told),
            Kind::List(element) => self.a_list(&element.clone(), inner, told),
            Kind::Record(name) => match self.dice.below(3) {
                0 => match self.row(name, inner) {
                    Some(row) => format!("({row} else {})", self.record(name, inner)),
                    None => self.record(name, inner),
                },
                _ => self.record(&name.clone(), inner),
            },
            other => self.leaf(other, told),
        }
    }

    /// Ways that there are for every kind.
    fn of_any_kind(&mut self, kind: &Kind, depth: usize, told: bool) -> Option<String> {
        match self.dice.below(5) {
            0 => {
                let mark = self.scope.len();
                let condition = self.condition(depth);
                let then = self.value(kind, depth, told);
                self.scope.truncate(mark);
                let otherwise = self.value(kind, depth, told);
                Some(format!("(if {condition} then {then} else {otherwise})"))
            }
            1 if !matches!(kind, Kind::Optional(_)) => {
                let maybe = self.maybe(kind, depth, false);
                let otherwise = self.value(kind, depth, told);
                Some(format!("({maybe} else {otherwise})"))
            }
            2 | 3 => self.call(kind, depth),
            _ => self.named(kind),
        }
    }

    fn call(&mut self, kind: &Kind, depth: usize) -> Option<String> {
        let fit: Vec<_> =
            self.declared.functions.iter().filter(|function| function.answer == *kind).cloned().collect();
        if fit.is_empty() {
            return None;
        }
        let function = self.dice.pick(&fit).clone();
        Some(format!("{}({})", function.name, self.arguments(&function.fields, depth)))
    }

    pub fn arguments(&mut self, fields: &[Field], depth: usize) -> String {
        let mut arguments = Vec::new();
        for field in fields {
            if field.default.is_some() && self.dice.one_in(2) {
                break;
            }
            arguments.push(self.value(&field.kind, depth, true));
        }
        arguments.join(", ")
    }

    fn int(&mut self, depth: usize) -> String {
        let int = |generator: &mut Self| generator.value(&Kind::Int, depth, true);
        match self.dice.below(16) {
            0..4 => {
                let (left, right) = (int(self), int(self));
                let operator = *self.dice.pick(&["+", "-", "*", "/", "%", "+", "-"]);
                format!("({left} {operator} {right})")
            }
            4 => format!("(-{})", self.leaf(&Kind::Int, true)),
            5 => format!("abs({})", int(self)),
            6 => {
                let (left, right) = (int(self), int(self));
                let function = *self.dice.pick(&["min", "max"]);
                format!("{function}({left}, {right})")
            }
            7 => {
                let function = *self.dice.pick(&["floor", "ceiling", "round"]);
                format!("{function}({})", self.value(&Kind::Real, depth, true))
            }
            8 => format!("length({})", self.value(&Kind::Text, depth, true)),
            9 => match self.dice.below(3) {
                0 => "length(my_blob)".into(),
                _ => {
                    let element = self.kind(0);
                    format!("length({})", self.a_list(&element, depth, false))
                }
            },
            10 => format!("({} / {})", self.leaf(&Kind::Duration, true), self.leaf(&Kind::Duration, true)),
            11 if self.changes => match self.dice.below(2) {
                0 => format!(
                    "random({}, {})",
                    self.leaf(&Kind::Int, true),
                    self.dice.pick(&["5", "9", "1000"])
                ),
                _ => "next_id(l0)".into(),
            },
            12 => match self.named_list() {
                Some(list) => format!("count({list})"),
                None => "0".into(),
            },
            13 => self.aggregate("count", None, depth),
            _ => self.aggregate("sum", Some(&Kind::Int), depth),
        }
    }

    fn named_list(&mut self) -> Option<String> {
        let lists: Vec<String> =
            self.declared.keyed.iter().chain(&self.own).map(|keyed| keyed.name.clone()).collect();
        if lists.is_empty() { None } else { Some(self.dice.pick(&lists).clone()) }
    }

    /// `sum(x.n for x in list where …)`
    fn aggregate(&mut self, name: &str, kind: Option<&Kind>, depth: usize) -> String {
        let mark = self.scope.len();
        let query = self.query(depth, false);
        let kind = kind.cloned().unwrap_or_else(|| self.kind(0));
        let value = self.value(&kind, depth.min(1), false);
        self.scope.truncate(mark);
        format!("{name}({value} {query})")
    }

    fn real(&mut self, depth: usize) -> String {
        match self.dice.below(8) {
            0..3 => {
                let (left, right) =
                    (self.value(&Kind::Real, depth, true), self.value(&Kind::Real, depth, true));
                format!("({left} {} {right})", self.dice.pick(&["+", "-", "*", "/"]))
            }
            3 => format!("real({})", self.value(&Kind::Int, depth, true)),
            4 => format!("abs({})", self.value(&Kind::Real, depth, true)),
            5 => format!("(-{})", self.leaf(&Kind::Real, true)),
            6 => self.aggregate("sum", Some(&Kind::Real), depth),
            _ => {
                let kind = self.dice.pick(&[Kind::Real, Kind::Int]).clone();
                format!("({} else 0.0)", self.aggregate("mean", Some(&kind), depth))
            }
        }
    }

    /// No text with a value grows by more than one other text: none doubles under way.
    fn text(&mut self, depth: usize) -> String {
        match self.dice.below(6) {
            0..3 => {
                let mut pieces = String::new();
                for _ in 0..1 + self.dice.below(2) {
                    let kind = self
                        .dice
                        .pick(&[Kind::Int, Kind::Bool, Kind::Duration, Kind::Time, Kind::Node, Kind::Real])
                        .clone();
                    let kind = if self.dice.one_in(5) { self.an_enum() } else { kind };
                    if let Some(name) = self.named(&kind) {
                        pieces.push_str(&format!("{{{name}}}-"));
                    }
                }
                if self.loops == 0
                    && let Some(name) = self.named(&Kind::Text)
                {
                    pieces.push_str(&format!("{{{name}}}"));
                }
                format!("\"{pieces}.\"")
            }
            3 if self.dice.one_in(3) => {
                let (from, count) = (self.value(&Kind::Int, depth, true), self.dice.below(4));
                let from = if self.dice.one_in(2) { self.dice.below(4).to_string() } else { from };
                format!("slice({}, {from}, {count})", self.value(&Kind::Text, depth, true))
            }
            3 | 4 => {
                let function = *self.dice.pick(&["lower", "upper", "trim"]);
                format!("{function}({})", self.value(&Kind::Text, depth, true))
            }
            _ if self.changes => "new_id()".into(),
            _ => self.leaf(&Kind::Text, true),
        }
    }

    fn time(&mut self, depth: usize) -> String {
        let time = self.value(&Kind::Time, depth, true);
        let duration = self.value(&Kind::Duration, depth, true);
        match self.dice.below(4) {
            0 => format!("({time} + {duration})"),
            1 => format!("({time} - {duration})"),
            2 => format!("({duration} + {time})"),
            _ => format!("floor({time}, {duration})"),
        }
    }

    fn duration(&mut self, depth: usize) -> String {
        let one = |generator: &mut Self| generator.value(&Kind::Duration, depth, true);
        match self.dice.below(7) {
            0 => format!(
                "({} - {})",
                self.value(&Kind::Time, depth, true),
                self.value(&Kind::Time, depth, true)
            ),
            1 => format!("({} * {})", self.value(&Kind::Int, depth, true), one(self)),
            2 => format!("({} / {})", one(self), self.value(&Kind::Int, depth, true)),
            3 => format!("({} {} {})", one(self), self.dice.pick(&["+", "-", "%"]).to_owned(), one(self)),
            4 => format!("abs({})", one(self)),
            5 => format!("(-{})", self.leaf(&Kind::Duration, true)),
            _ => self.aggregate("sum", Some(&Kind::Duration), depth),
        }
    }

    /// A `K?`.
    fn maybe(&mut self, kind: &Kind, depth: usize, told: bool) -> String {
        match (self.dice.below(6), kind) {
            (0 | 1, Kind::Record(name)) => {
                if let Some(row) = self.row(&name.clone(), depth) {
                    return row;
                }
            }
            (
                2,
                Kind::Int
                | Kind::Text
                | Kind::Time
                | Kind::Enum(_)
                | Kind::Real
                | Kind::Node
                | Kind::Duration
                | Kind::Bool,
            ) => {
                let function = *self.dice.pick(&["min", "max"]);
                return self.aggregate(function, Some(kind), depth);
            }
            (3, Kind::Real) => return self.aggregate("mean", Some(&Kind::Int), depth),
            (4, _) => return self.aggregate("first", Some(kind), depth),
            (5, _) => {
                if let Some(list) = self.named(&list(kind.clone()))
                    && !self.is_keyed(&list)
                {
                    return format!("{list}[{}]", self.small(&Kind::Int));
                }
            }
            _ => {}
        }
        self.leaf(&optional(kind.clone()), told)
    }

    fn is_keyed(&self, name: &str) -> bool {
        self.declared.keyed.iter().chain(&self.own).any(|keyed| keyed.name == name)
    }

    /// A row of a keyed list of a record: by its key, or the first of some.
    pub fn row(&mut self, record: &str, depth: usize) -> Option<String> {
        let is = |keyed: &&Keyed| self.declared.records[keyed.record].name == record;
        let fit: Vec<Keyed> = self.declared.keyed.iter().chain(&self.own).filter(is).cloned().collect();
        if fit.is_empty() {
            return None;
        }
        let keyed = self.dice.pick(&fit).clone();
        Some(match self.dice.below(3) {
            0 => {
                let mark = self.scope.len();
                let element = self.fresh("x");
                let rest = self.rest_of_query(&element, &keyed, depth);
                self.scope.truncate(mark);
                format!("first({element} for {element} in {}{rest})", keyed.name)
            }
            _ => format!("{}[{}]", keyed.name, self.key(&keyed)),
        })
    }

    pub fn key(&mut self, keyed: &Keyed) -> String {
        let fields = self.declared.records[keyed.record].fields.clone();
        let kinds = keyed
            .keys
            .iter()
            .map(|key| fields.iter().find(|field| field.name == *key).expect("a key").kind.clone());
        let kinds: Vec<Kind> = kinds.collect();
        kinds.iter().map(|kind| self.small(kind)).collect::<Vec<_>>().join(", ")
    }

    pub fn condition(&mut self, depth: usize) -> String {
        match self.dice.below(12) {
            0 | 1 if depth > 0 => {
                let (left, right) = (self.condition(depth - 1), self.condition(depth - 1));
                format!("({left} and {right})")
            }
            2 if depth > 0 => {
                let mark = self.scope.len();
                let left = self.condition(depth - 1);
                self.scope.truncate(mark);
                let right = self.condition(depth - 1);
                self.scope.truncate(mark);
                format!("({left} or {right})")
            }
            3 if depth > 0 => {
                let mark = self.scope.len();
                let inner = self.condition(depth - 1);
                self.scope.truncate(mark);
                format!("(not {inner})")
            }
            4 => {
                let kind = self.dice.pick(&[Kind::Int, Kind::Text, Kind::Time, Kind::Real]).clone();
                let value = self.value(&kind, depth, false);
                format!(
                    "({value} in {} .. {})",
                    self.value(&kind, depth, true),
                    self.value(&kind, depth, true)
                )
            }
            5 => {
                let kind = self.kind(0);
                let list = self.a_list(&kind, depth, false);
                let value = self.value(&kind, depth, true);
                if self.is_keyed(&list) { "true".into() } else { format!("({value} in {list})") }
            }
            6 => {
                let single: Vec<Keyed> = self
                    .declared
                    .keyed
                    .iter()
                    .chain(&self.own)
                    .filter(|keyed| keyed.keys.len() == 1)
                    .cloned()
                    .collect();
                let keyed = self.dice.pick(&single).clone();
                format!("({} in {})", self.key(&keyed), keyed.name)
            }
            7 => {
                let function = *self.dice.pick(&["any", "all"]);
                self.aggregate(function, Some(&Kind::Bool), depth)
            }
            8 => format!(
                "contains({}, {})",
                self.value(&Kind::Text, depth, true),
                self.leaf(&Kind::Text, true)
            ),
            9 => self.named_by_is(depth),
            10 => {
                let kind = self.kind(1);
                let maybe = self.maybe(&kind, depth, false);
                format!("({maybe} {} none)", self.dice.pick(&["==", "!="]))
            }
            _ => self.comparison(depth),
        }
    }

    /// `x is name`, and the name is in scope.
    pub fn named_by_is(&mut self, depth: usize) -> String {
        if self.dice.one_in(2) {
            let keyed = self.dice.pick(&self.declared.keyed).clone();
            let name = self.fresh("r");
            let record = self.declared.records[keyed.record].name.clone();
            let text = format!("{}[{}] is {name}", keyed.name, self.key(&keyed));
            self.scope.push(Local { row_of: Some(keyed), own: false, ..local(&name, Kind::Record(record)) });
            return text;
        }
        let kind = self.kind(1);
        let kind = if let Kind::Optional(inner) = kind { *inner } else { kind };
        let maybe = self.maybe(&kind, depth, false);
        let name = self.fresh("m");
        self.scope.push(local(&name, kind));
        format!("{maybe} is {name}")
    }

    fn comparison(&mut self, depth: usize) -> String {
        let kind = self.kind(1);
        let ordered = !matches!(kind, Kind::Optional(_) | Kind::List(_) | Kind::Record(_));
        let operator = match ordered {
            true => *self.dice.pick(&["==", "!=", "<", "<=", ">", ">="]),
            false => *self.dice.pick(&["==", "!="]),
        };
        let left = self.value(&kind, depth, false);
        format!("({left} {operator} {})", self.value(&kind, depth, true))
    }

    fn a_list(&mut self, element: &Kind, depth: usize, told: bool) -> String {
        match self.dice.below(5) {
            0 => {
                let values: Vec<String> =
                    (0..1 + self.dice.below(3)).map(|_| self.value(element, depth, told)).collect();
                format!("[{}]", values.join(", "))
            }
            1 | 2 if depth > 0 => {
                let mark = self.scope.len();
                let query = self.query(depth, true);
                let value = self.value(element, depth.min(1), told);
                self.scope.truncate(mark);
                format!("[{value} {query}]")
            }
            _ => match self.named(&list(element.clone())) {
                Some(name) => name,
                None => format!("[{}]", self.leaf(element, told)),
            },
        }
    }

    /// What a view shows that has no declared kind.
    pub fn shown(&mut self, depth: usize) -> String {
        let mark = self.scope.len();
        let query = if self.dice.one_in(4) { None } else { Some(self.query(depth - 1, true)) };
        let mut items = Vec::new();
        for at in 0..1 + self.dice.below(3) {
            let kind = self.kind(1);
            items.push(format!("i{at}: {}", self.value(&kind, depth - 1, false)));
        }
        self.scope.truncate(mark);
        let record = format!("{{ {} }}", items.join(", "));
        query.map_or(record.clone(), |query| format!("[{record} {query}]"))
    }
}
