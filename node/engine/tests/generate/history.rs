//! What happens to a program: inputs, right and wrong ones, sends, words of the fabric, time, views.

use super::dice::Dice;
use super::program::{Called, Declared, Field, Output};
use super::versions::Turn;
use crate::reference::{Happens, Kind, Value};
use weft::value::Real;

#[derive(Debug, Clone)]
pub enum Step {
    Event(Happens),
    /// An input whose body is wrong: a value of another type, or no JSON.
    Misshapen(String, String),
    View(String, Vec<(String, Value)>, String),
    /// Lets time pass.
    Wait(i64),
    /// Goes on with the next version.
    Change(Turn),
}

/// What whoever runs the node gives.
pub fn settings() -> Vec<(String, Value)> {
    vec![
        ("my_blob".into(), Value::Bytes(vec![0, 1, 255])),
        ("my_link".into(), Value::Endpoint("https://example.org/in".into())),
        ("my_peer".into(), Value::Node([8; 32])),
        ("my_time".into(), Value::Time(1_700_000_000_123)),
    ]
}

const ADDRESSES: &[&str] = &["https://example.org/in", "http://a.b/"];

/// Texts about as long as a key may be, with and without bytes that take two in it, and as an answer or a transient send.
const LONG: &[(&str, usize)] =
    &[("x", 4_094), ("x", 4_095), ("\0", 2_047), ("\0", 2_048), ("é", 1_000), ("y", 680), ("x", 5_000)];

struct Maker<'d> {
    dice: &'d mut Dice,
    declared: &'d Declared,
}

pub fn history(dice: &mut Dice, declared: &Declared, length: usize) -> Vec<Step> {
    let mut maker = Maker { dice, declared };
    let mut steps: Vec<Step> = (0..length / 4).map(|_| maker.fill()).collect();
    let is_large = !declared.grows.is_empty() && maker.dice.one_in(10);
    for _ in 0..length {
        if is_large && maker.dice.one_in(8) {
            steps.push(maker.grow_or_cull());
        } else {
            steps.push(maker.step());
        }
    }
    for _ in 0..maker.dice.below(3) {
        let turn = Turn { renamed: maker.dice.next() | maker.dice.next(), library: maker.dice.one_in(2) };
        let at = maker.dice.below(steps.len());
        steps.insert(at, Step::Change(turn));
    }
    steps
}

impl Maker<'_> {
    fn fill(&mut self) -> Step {
        let declared = self.declared;
        let fill = self.dice.pick(&declared.fills).clone();
        self.post(fill)
    }

    /// Many rows at once with short keys or long ones, or more changes than are merged at once; or most rows away.
    fn grow_or_cull(&mut self) -> Step {
        let declared = self.declared;
        if self.dice.one_in(3) {
            let cull = self.dice.pick(&declared.culls).clone();
            return self.post(cull);
        }
        let grow = self.dice.pick(&declared.grows);
        let (apart, length, rows) =
            *self.dice.pick(&[(503, 1, 420), (401, 1, 140), (211, 900, 60), (50, 1, 4_500), (97, 0, 97)]);
        let mut arguments = vec![("p0".to_owned(), self.value(&grow.fields[0].kind))];
        arguments.push(("p1".into(), Value::Int(apart)));
        arguments.push(("p2".into(), Value::text("x".repeat(length))));
        arguments.push(("p3".into(), Value::Int(rows)));
        Step::Event(Happens::Input { name: grow.name.clone(), arguments, by: "ann".into() })
    }

    fn post(&mut self, input: Called) -> Step {
        let arguments = self.arguments(&input.fields);
        let by = (*self.dice.pick(&["local", "ann"])).to_owned();
        Step::Event(Happens::Input { name: input.name, arguments, by })
    }

    fn step(&mut self) -> Step {
        let declared = self.declared;
        if self.dice.one_in(8) {
            return self.fill();
        }
        match self.dice.below(20) {
            0..10 if !declared.inputs.is_empty() => {
                let input = self.dice.pick(&declared.inputs);
                let mut arguments = self.arguments(&input.fields);
                match self.dice.below(25) {
                    0 if !arguments.is_empty() => drop(arguments.remove(0)),
                    1 => arguments.push(("more".into(), Value::Int(1))),
                    2 => return self.misshapen(input),
                    _ => {}
                }
                let by = (*self.dice.pick(&["local", "ann"])).to_owned();
                Step::Event(Happens::Input { name: input.name.clone(), arguments, by })
            }
            10 | 11 if !declared.heard.is_empty() => {
                let heard = self.dice.pick(&declared.heard);
                let arguments = self.arguments(&heard.fields);
                let app = if self.dice.one_in(3) { "other" } else { "generated" };
                Step::Event(Happens::From {
                    name: heard.name.clone(),
                    arguments,
                    peer: self.node(),
                    app: app.into(),
                })
            }
            12 | 13 => {
                let Output { called: output, to_endpoint, .. } = self.dice.pick(&declared.outputs);
                let arguments = output.fields.iter().map(|field| self.value(&field.kind)).collect();
                let answers = output.answer != Kind::Unknown && !self.dice.one_in(4);
                let answer = answers.then(|| self.value(&output.answer));
                let (output, peer) = (output.name.clone(), self.node());
                if *to_endpoint {
                    let refusal = self.dice.one_in(2).then(|| "404: no such box".to_owned());
                    let to = (*self.dice.pick(ADDRESSES)).to_owned();
                    return Step::Event(Happens::Answered { output, arguments, to, refusal });
                }
                Step::Event(match self.dice.below(2) {
                    0 => Happens::Delivered { output, arguments, peer, answer },
                    _ => Happens::Refused { output, arguments, peer, reason: "it would not".into() },
                })
            }
            14 => Step::Wait(*self.dice.pick(&[0, 1, 5, 1000, 90_000, 3_600_000])),
            15 if self.dice.one_in(6) => Step::Event(Happens::Input {
                name: "nothing".into(),
                arguments: Vec::new(),
                by: "local".into(),
            }),
            _ if !declared.views.is_empty() => {
                let view = self.dice.pick(&declared.views);
                let mut arguments = self.arguments(&view.fields);
                arguments.retain(|(_, value)| *value != Value::None);
                if self.dice.one_in(20) {
                    arguments.push(("more".into(), Value::Int(1)));
                }
                Step::View(view.name.clone(), arguments, "ann".into())
            }
            _ => Step::Wait(1),
        }
    }

    fn misshapen(&mut self, input: &Called) -> Step {
        let bodies = ["", "[]", "{", "{\"p0\":{}}", "{\"p0\":1e400}", "{\"p0\":\"\\ud800\"}", "nul"];
        Step::Misshapen(input.name.clone(), (*self.dice.pick(&bodies)).into())
    }

    fn arguments(&mut self, fields: &[Field]) -> Vec<(String, Value)> {
        let mut arguments = Vec::new();
        for field in fields {
            if field.default.is_none() || self.dice.one_in(2) {
                arguments.push((field.name.clone(), self.value(&field.kind)));
            }
        }
        arguments
    }

    fn node(&mut self) -> [u8; 32] {
        [*self.dice.pick(&[7, 8, 9]); 32]
    }

    fn value(&mut self, kind: &Kind) -> Value {
        match kind {
            Kind::Bool => Value::Bool(self.dice.one_in(2)),
            Kind::Int if self.dice.one_in(12) => {
                Value::Int(*self.dice.pick(&[i64::MIN, i64::MAX, -3_037_000_500, i64::MAX - 2]))
            }
            Kind::Int => Value::Int(self.dice.below(8) as i64 - 1),
            Kind::Real => Value::Real(
                Real::new(*self.dice.pick(&[0.0, 1.5, -2.5, 1e308, -1e-9, 3.0])).expect("it is finite"),
            ),
            Kind::Text if self.dice.one_in(12) => {
                let (text, times) = *self.dice.pick(LONG);
                Value::text(text.repeat(times))
            }
            Kind::Text => {
                Value::text(*self.dice.pick(&["", "a", "b", "c", "a\0", "\u{e9}\n\"\\", "\u{1f600}"]))
            }
            Kind::Bytes => Value::Bytes(self.dice.pick(&[vec![], vec![0], vec![0, 1, 255]]).clone()),
            Kind::Time => {
                Value::Time(*self.dice.pick(&[0, -1, 1_700_000_000_123, 1_700_000_000_000, i64::MAX]))
            }
            Kind::Duration => Value::Duration(*self.dice.pick(&[0, 1, 3, 1000, -5, 86_400_000, i64::MIN])),
            Kind::Node => Value::Node(self.node()),
            Kind::Endpoint => Value::Endpoint((*self.dice.pick(ADDRESSES)).into()),
            Kind::Enum(name) => {
                let cases =
                    &self.declared.enums.iter().find(|(one, _)| one == name).expect("it is declared").1;
                let place = self.dice.below(cases.len());
                Value::Case(place, cases[place].clone())
            }
            Kind::Record(name) => {
                let record =
                    self.declared.records.iter().find(|one| one.name == *name).expect("it is declared");
                Value::Record(
                    record.fields.iter().map(|field| (field.name.clone(), self.value(&field.kind))).collect(),
                )
            }
            Kind::List(element) => {
                Value::List((0..self.dice.below(4)).map(|_| self.value(element)).collect())
            }
            Kind::Optional(_) if self.dice.one_in(3) => Value::None,
            Kind::Optional(inner) => self.value(inner),
            Kind::Shape(_) | Kind::Unknown => unreachable!("it is not declared"),
        }
    }
}
