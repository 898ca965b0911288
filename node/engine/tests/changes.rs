//! Generated versions of a module, one after the other, with rows put under each: what a change makes of them is what reading
//! every row by its fields' names into the next shape makes of it. A failure names its seed.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use engine::{App, Context, Event};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use support::ME;
use weft::Module;
use weft::change::schema::Schema;
use weft::change::{Change, Verdict};

const SEEDS: u64 = 60;
const VERSIONS: usize = 5;

/// Numbers from a seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % end
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Int,
    MaybeInt,
    Real,
    Text,
    Case,
}

impl Kind {
    const ALL: [Kind; 5] = [Kind::Int, Kind::MaybeInt, Kind::Real, Kind::Text, Kind::Case];

    fn written(self) -> &'static str {
        match self {
            Kind::Int => "int",
            Kind::MaybeInt => "int?",
            Kind::Real => "real",
            Kind::Text => "text",
            Kind::Case => "Stage",
        }
    }
}

#[derive(Debug, Clone)]
struct Field {
    name: String,
    was: Option<String>,
    kind: Kind,
}

/// A version: fields beside the key, the enum's cases with the names that they had, the field of an index.
#[derive(Debug, Clone)]
struct Version {
    fields: Vec<Field>,
    cases: Vec<(String, Option<String>)>,
    index: usize,
    names: usize,
}

type Rows = BTreeMap<i64, Map<String, Value>>;

impl Version {
    fn source(&self) -> String {
        let mut source = "app a\nenum Stage { ".to_owned();
        for (name, was) in &self.cases {
            let was = was.as_ref().map_or_else(String::new, |was| format!(" was {was}"));
            write!(source, "{name}{was}, ").unwrap();
        }
        source.push_str("}\nrecord Row { id: int, ");
        for field in &self.fields {
            let was = field.was.as_ref().map_or_else(String::new, |was| format!(" was {was}"));
            let default = match self.default(field.kind) {
                Value::Null => "none".to_owned(),
                Value::String(case) if field.kind == Kind::Case => format!(".{case}"),
                other => other.to_string(),
            };
            write!(source, "{}{was}: {} = {default}, ", field.name, field.kind.written()).unwrap();
        }
        let index = &self.fields[self.index % self.fields.len()].name;
        writeln!(source, "}}\nstate rows: list of Row by id index {index}").unwrap();
        source.push_str("on put(row: Row) { rows put row }\nview all = [r for r in rows]\n");
        writeln!(source, "view sorted = [r.id for r in rows order by r.{index}, r.id]").unwrap();
        source
    }

    fn default(&self, kind: Kind) -> Value {
        match kind {
            Kind::Int => json!(7),
            Kind::MaybeInt => Value::Null,
            Kind::Real => json!(0.5),
            Kind::Text => json!("a"),
            Kind::Case => json!(self.cases[0].0),
        }
    }

    fn fresh(&mut self) -> String {
        self.names += 1;
        format!("n{}", self.names)
    }

    /// The next version, and what the rows become by names.
    fn changed(&self, rows: &Rows, chance: &mut Chance) -> (Version, Rows) {
        let mut next = self.clone();
        let mut rows = rows.clone();
        next.fields.iter_mut().for_each(|field| field.was = None);
        next.cases.iter_mut().for_each(|case| case.1 = None);
        let mut each = |change: &dyn Fn(&mut Map<String, Value>)| rows.values_mut().for_each(change);
        for _ in 0..1 + chance.below(3) {
            let at = chance.below(next.fields.len());
            let Field { name, kind, was } = next.fields[at].clone();
            match chance.below(7) {
                0 => {
                    let field = Field { name: next.fresh(), was: None, kind: Kind::ALL[chance.below(5)] };
                    let default = next.default(field.kind);
                    each(&|row| drop(row.insert(field.name.clone(), default.clone())));
                    next.fields.insert(at, field);
                }
                1 if next.fields.len() > 1 => {
                    each(&|row| drop(row.remove(&name)));
                    next.fields.remove(at);
                }
                // What is new in this version has no name before.
                2 if was.is_none() && self.fields.iter().any(|field| field.name == name) => {
                    let fresh = next.fresh();
                    each(&|row| {
                        let value = row.remove(&name).unwrap_or_default();
                        row.insert(fresh.clone(), value);
                    });
                    next.fields[at] = Field { name: fresh, was: Some(name), kind };
                }
                3 => next.fields.rotate_left(at),
                4 => {
                    // A field that came with this version gets the default of what it is in the end.
                    let before = was.as_ref().unwrap_or(&name);
                    let before =
                        self.fields.iter().find(|field| field.name == *before).map(|field| field.kind);
                    let is_new = before.is_none();
                    // The names of cases that a text keeps are those of before; and a type changes once a version.
                    let renamed = next.cases.iter().any(|case| case.1.is_some());
                    if before.is_some_and(|before| before != kind) || (kind == Kind::Case && renamed) {
                        continue;
                    }
                    let to = match kind {
                        Kind::Int if at.is_multiple_of(2) => Kind::MaybeInt,
                        Kind::Int => Kind::Real,
                        Kind::MaybeInt => Kind::Int,
                        Kind::Case => Kind::Text,
                        other => other,
                    };
                    let default = next.default(to);
                    each(&|row| {
                        let value = row.remove(&name).unwrap_or_default();
                        let value = match (kind, to) {
                            _ if is_new => default.clone(),
                            (Kind::Int, Kind::Real) => json!(value.as_i64().unwrap() as f64),
                            (Kind::MaybeInt, Kind::Int) if value.is_null() => default.clone(),
                            _ => value,
                        };
                        row.insert(name.clone(), value);
                    });
                    next.fields[at].kind = to;
                }
                5 if next.cases.iter().all(|case| case.1.is_none())
                    && next.cases.len() == self.cases.len() =>
                {
                    let old = next.cases[at % next.cases.len()].0.clone();
                    let fresh = next.fresh();
                    let places: Vec<Field> = next.fields.clone();
                    each(&|row| {
                        for field in places.iter().filter(|field| field.kind == Kind::Case) {
                            if row[&field.name] == json!(old) {
                                row.insert(field.name.clone(), json!(fresh));
                            }
                        }
                    });
                    let place = at % next.cases.len();
                    next.cases[place] = (fresh, Some(old));
                }
                _ => next.index = at,
            }
        }
        (next, rows)
    }
}

fn put(app: &mut App, version: &Version, rows: &mut Rows, chance: &mut Chance) {
    let id = chance.below(40) as i64;
    let mut row = Map::new();
    row.insert("id".into(), json!(id));
    for field in &version.fields {
        let number = chance.below(9) as i64;
        let value = match field.kind {
            Kind::Int => json!(number),
            Kind::MaybeInt => {
                if number > 4 {
                    json!(number)
                } else {
                    Value::Null
                }
            }
            Kind::Real => json!(number as f64 / 2.0),
            Kind::Text => json!(format!("t{number}")),
            Kind::Case => json!(version.cases[chance.below(version.cases.len())].0),
        };
        row.insert(field.name.clone(), value);
    }
    let arguments = json!({ "row": row }).to_string();
    let event = Event::Input { name: "put", arguments: arguments.as_bytes(), by: "" };
    app.event(event, &Context { now: 0, entropy: [1; 32], room: 0 }).unwrap();
    rows.insert(id, row);
}

fn view(app: &App, name: &str) -> Value {
    serde_json::from_str(&app.snapshot().view(name, &[], "", 0).unwrap()).unwrap()
}

fn compiled(source: &str) -> Module {
    weft::compile(source, "a.weft").unwrap_or_else(|wrong| panic!("{source}\n{wrong}"))
}

/// The app that goes on, and the shape that it has.
fn change(app: &App, before: &Schema, source: &str) -> (App, Schema) {
    let mut module = compiled(source);
    let change = Change::between(before, &module);
    change.after.teach(&mut module);
    assert!(Change::between(&change.after, &module).is_nothing(), "twice is once");
    let (changed, findings) = app.change(&change, Arc::new(module));
    let plan = change.plan("a", Some(&findings));
    assert!(plan.verdict() <= Verdict::Loses, "{plan}");
    (changed, change.after)
}

#[test]
fn a_change_is_reading_every_row_by_names() {
    for seed in 0..SEEDS {
        let mut chance = Chance(seed);
        let field = |name: &str, kind| Field { name: name.into(), was: None, kind };
        let mut version = Version {
            fields: vec![field("a", Kind::Int), field("b", Kind::Case), field("c", Kind::MaybeInt)],
            cases: vec![("x".into(), None), ("y".into(), None), ("z".into(), None)],
            index: 0,
            names: 0,
        };
        let module = compiled(&version.source());
        let mut schema = Schema::of(&module);
        let mut app = App::new(Arc::new(module), ME);
        let mut rows = Rows::new();
        for _ in 0..VERSIONS {
            (0..30).for_each(|_| put(&mut app, &version, &mut rows, &mut chance));
            let (next, expected) = version.changed(&rows, &mut chance);
            (app, schema) = change(&app, &schema, &next.source());
            let found = view(&app, "all");
            let wanted: Vec<Value> = expected.values().cloned().map(Value::Object).collect();
            assert_eq!(found, json!(wanted), "seed {seed}\n{}\n{}", version.source(), next.source());
            // What finds rows is what it is where they came in one by one.
            let mut fresh = App::new(Arc::new(compiled(&next.source())), ME);
            for delta in app.snapshot().rows() {
                fresh.restore(delta.list, &delta.key, delta.row.as_deref()).unwrap();
            }
            assert_eq!(view(&app, "sorted"), view(&fresh, "sorted"), "seed {seed}\n{}", next.source());
            (version, rows) = (next, expected);
        }
    }
}

#[test]
fn a_hundred_changes_leave_no_memory_behind() {
    let less = "app a\nrecord Row { id: int, a: int }\nstate rows: list of Row by id index a\n\
        on put(id: int) { rows put Row { id, a: id % 7 } }";
    let more = "app a\nrecord Row { id: int, b: int = 3, a: int, c: text = \"\" }\nstate rows: list of Row by id index a";
    let module = compiled(less);
    let mut schema = Schema::of(&module);
    let mut app = App::new(Arc::new(module), ME);
    for id in 0..1_000 {
        let arguments = json!({ "id": id }).to_string();
        let event = Event::Input { name: "put", arguments: arguments.as_bytes(), by: "" };
        app.event(event, &Context { now: 0, entropy: [1; 32], room: 0 }).unwrap();
    }
    let mut sizes = Vec::new();
    for round in 0..100 {
        (app, schema) = change(&app, &schema, if round % 2 == 0 { more } else { less });
        sizes.push((app.snapshot().memory(), format!("{schema:?}").len()));
    }
    let growth = |at: usize| sizes[at + 2].0.abs_diff(sizes[at].0);
    assert!((0..98).all(|at| growth(at) == 0), "{sizes:?}");
    // Numbers have more digits; names of before are kept once.
    assert!(sizes[99].1.abs_diff(sizes[3].1) < 100, "{sizes:?}");
}

#[test]
fn what_is_under_way_in_the_old_shape_arrives_through_records_lists_and_enums() {
    const OLD: &str = "app a
enum Stage { open, done, gone }
record Amt { cents: int, note: text, rate: real }
record Bill { id: int, amt: Amt, more: list of Amt, part: Amt?, stage: Stage }
on tell(a: Bill) from peer {}";
    const NEW: &str = "app a
enum Step was Stage { done, waiting was open, late }
record Amount was Amt { tip: int = 3, money was cents: int, note: text }
record Invoice was Bill { step was stage: Step, part: Amount?, amounts was more: list of Amount, one was amt: Amount, id: int }
state last: Invoice?
on tell(b was a: Invoice) from peer { last = b }
view seen = last";
    let schema = Schema::of(&compiled(OLD));
    let sender = App::new(Arc::new(compiled(OLD)), ME);
    let check = |new: &str, stage: &str, expected: Result<Value, &str>| {
        let (mut app, _) = change(&sender, &schema, new);
        let amt = |cents: i64| json!({ "cents": cents, "note": "n", "rate": 0.5 });
        let bill =
            json!({ "id": 1, "amt": amt(2), "more": [amt(4), amt(5)], "part": amt(6), "stage": stage });
        let bytes = sender.encoded("tell", "a", json!({ "a": bill }).to_string().as_bytes()).unwrap();
        let event = Event::From { name: "tell", arguments: &bytes, peer: ME, app: "a" };
        let taken = app.event(event, &Context { now: 0, entropy: [1; 32], room: 0 });
        let found = taken.map(|_| view(&app, "seen")).map_err(|why| why.to_string());
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected),
            (Err(found), Err(expected)) => assert!(found.contains(expected), "{found}"),
            (found, expected) => panic!("{found:?} instead of {expected:?}"),
        }
    };
    let amount = |money: i64| json!({ "tip": 3, "money": money, "note": "n" });
    let amounts = [amount(4), amount(5)];
    let seen = |step: &str| json!({ "step": step, "part": amount(6), "amounts": amounts, "one": amount(2), "id": 1 });
    check(NEW, "open", Ok(seen("waiting")));
    check(NEW, "gone", Err("field `a.stage`: expected Step"));
    // As the plan says of them.
    check(&NEW.replace("tip: int = 3", "tip: int"), "open", Err("`a.amt.tip`: is missing"));
    check(&NEW.replace("note: text", "note: int"), "open", Err("`a.amt.note`: expected int"));
    check(&NEW.replace("part: Amount?", "part: Amount"), "done", Ok(seen("done")));
}
