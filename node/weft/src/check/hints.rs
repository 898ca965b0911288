//! What to write instead: for a value of another type, for a name that is none, for a field of what has none.

use super::body::Body;
use super::builtins::BUILT_IN;
use super::listed;
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::module::Type;
use crate::syntax::habits;
use crate::syntax::tree::{Expression, Word};

impl Body<'_, '_> {
    /// What to write for a value of one type where another is wanted, as far as that can be told.
    pub(super) fn help_to_fit(&self, found: &Type, wanted: &Type, span: Span) -> Option<String> {
        let source = &self.checker.source[span.start as usize..span.end as usize];
        let text = self.short(span);
        // Beside an operator of the help that binds more.
        let (compared, factor) = (self.operand_text(span, true), self.operand_text(span, false));
        let quoted = source.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or_default();
        Some(match (found, wanted) {
            (Type::Text, Type::Enum(number))
                if self.checker.enumeration(*number).cases.iter().any(|case| case == quoted) =>
            {
                format!("write `.{quoted}`")
            }
            (Type::Text, Type::Enum(number)) => {
                let cases = self.checker.enumeration(*number).cases.iter().map(|case| format!(".{case}"));
                format!("its cases are {}", listed(&cases.take(12).collect::<Vec<_>>()))
            }
            (Type::Text, Type::Int | Type::Real) if quoted.parse::<f64>().is_ok() => {
                format!("a number stands without quotes: `{quoted}`")
            }
            (Type::Text, Type::Bool) if matches!(quoted, "true" | "false") => {
                format!("write it without quotes: `{quoted}`")
            }
            (Type::Int, Type::Bool) => format!("a condition is a comparison: `{compared} != 0`"),
            (Type::Text, Type::Bool) => format!("a condition is a comparison: `{compared} != \"\"`"),
            (Type::List(_), Type::Bool) => format!("a condition is a comparison: `count({text}) > 0`"),
            (Type::Optional(_), Type::Bool) => format!("a condition is a comparison: `{compared} != none`"),
            (Type::Int, Type::Duration) if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_') => {
                format!("a duration has a unit: `{text} s`, or `{text} * 1 s` of a value")
            }
            (Type::Int, Type::Duration) => format!("a duration has a unit: `{factor} * 1 s`"),
            (Type::Duration, Type::Int) => format!("count in a unit: `{factor} / 1 s`"),
            (Type::Duration, Type::Time) => format!("a time from now on is `now + {compared}`"),
            (Type::Time, Type::Duration) if text == "now" => "a duration is written `5 min`".into(),
            (Type::Time, Type::Duration) => format!("how long it is till then: `{compared} - now`"),
            (inner, Type::List(element)) if *inner == **element => format!("a list of one is `[{text}]`"),
            (Type::Int | Type::Real, Type::Text) if source.starts_with(|c: char| c.is_ascii_digit()) => {
                format!("as a text it is `\"{text}\"`")
            }
            (found, Type::Text) if Self::written(found).is_some() => {
                if source.contains(['"', '\n']) || source.len() > 40 {
                    "to write it into a text: `\"{…}\"`".into()
                } else {
                    format!("to write it into a text: `\"{{{text}}}\"`")
                }
            }
            _ => return None,
        })
    }

    pub(super) fn unknown_name(&mut self, name: &str, span: Span, wanted: Option<&Type>) {
        if self.checker.report.is_full() {
            return;
        }
        let wanted = match wanted {
            Some(Type::Optional(inner)) => Some(&**inner),
            other => other,
        };
        let enums = &self.checker.module.enums;
        let of_wanted = matches!(wanted, Some(Type::Enum(number)) if enums[*number as usize].cases.iter().any(|c| c == name));
        let owner = match wanted {
            Some(Type::Enum(number)) if of_wanted => Some(enums[*number as usize].name.clone()),
            _ => None,
        };
        let word = Word { text: name.into(), span };
        if let Some(owner) = owner {
            self.report(
                Diagnostic::new(Code::CaseWithoutDot, span, format!("`{name}` is a case of {owner}"))
                    .help(format!("write `.{name}`")),
            );
        } else if self.checker.libraries.contains_key(name) {
            self.report(
                Diagnostic::new(Code::UnknownValue, span, format!("`{name}` is a library, not a value"))
                    .help(format!("its functions are called `{name}.name(…)`, its types `{name}.Name`")),
            );
        } else if self.checker.functions.contains_key(name) || BUILT_IN.contains(&name) {
            self.report(
                Diagnostic::new(Code::UnknownValue, span, format!("`{name}` is a function, not a value"))
                    .help(format!("call it: `{name}()`")),
            );
        } else if let Some(what) = self.other_name(name) {
            self.report(
                Diagnostic::new(Code::UnknownValue, span, format!("`{name}` is {what}, not a value"))
                    .note("a value is a `state`, a `setting`, a field of what is posted, a `let` or a `var`"),
            );
        } else if let Some(given) = self.named_by_is.get(name).copied() {
            let is = self.short(given);
            self.report(
                Diagnostic::new(Code::UnknownValue, span, format!("there is no value `{name}` here"))
                    .label("it may not be there")
                    .note(format!("`{is}` names it only where that holds: behind an `and`, and under its `if`, `where` or `then`"))
                    .help(format!("did you mean to use `if {is} {{ … }}`?")),
            );
        } else if let (Some(instead), false) = (habits::value(name), self.checker.lost.contains(name)) {
            let message = format!("there is no `{name}` in Weft");
            self.report(Diagnostic::new(Code::Foreign, span, message).help(instead));
        } else {
            let mut there: Vec<String> = self.scope.iter().map(|binding| binding.name.clone()).collect();
            let mut states: Vec<String> =
                self.checker.states.keys().chain(self.checker.settings.keys()).cloned().collect();
            states.sort();
            there.extend(states);
            self.checker.unknown(
                Code::UnknownValue,
                &word,
                format!("there is no value `{name}`"),
                there,
                false,
            );
        }
    }

    /// What a name is that is no value.
    fn other_name(&self, name: &str) -> Option<&'static str> {
        let module = &self.checker.module;
        if self.checker.inputs.contains_key(name) {
            Some("an input, posted from outside")
        } else if self.checker.procedures.contains_key(name) {
            Some("a `do`")
        } else if module.timers.iter().any(|timer| timer.name == name) {
            Some("a timer")
        } else if self.checker.types.contains_key(name) {
            Some("a type")
        } else {
            module.outputs.iter().any(|output| output.name == name).then_some("what is sent")
        }
    }

    /// What to write for a field of something that has none.
    pub(super) fn help_for_member(&self, kind: &Type, value: &Expression, field: &Word) -> Option<String> {
        let text = self.short(value.span);
        let name = field.text.as_str();
        Some(match (kind, name) {
            (Type::List(_), "length" | "count" | "size" | "len") => format!("write `count({text})`"),
            (Type::Text | Type::Bytes, "length" | "count" | "size" | "len") => {
                format!("write `length({text})`")
            }
            (Type::List(_), "first") => format!("write `first(x for x in {text})`"),
            (Type::List(_), "last") => format!("write `first(x for x in {text} order by … desc)`"),
            (Type::List(element), _) => match &**element {
                Type::Record(number)
                    if self.checker.record(*number).fields.iter().any(|one| one.name == name) =>
                {
                    format!("of each element: `[x.{name} for x in {text}]`; of one: `{text}[…]`")
                }
                _ => "take one element first: `[0]`, `first(…)` or a loop".into(),
            },
            (Type::Text, "upper" | "lower" | "trim") => format!("write `{name}({text})`"),
            (Type::Duration, "hours" | "minutes" | "seconds" | "days" | "milliseconds") => {
                let unit = match name {
                    "hours" => "h",
                    "minutes" => "min",
                    "seconds" => "s",
                    "days" => "d",
                    _ => "ms",
                };
                format!("write `{} / 1 {unit}`", self.operand_text(value.span, false))
            }
            (Type::Time, "day" | "date") => format!("a day of UTC begins at `floor({text}, 1 d)`"),
            _ => return None,
        })
    }
}
