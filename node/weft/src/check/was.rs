//! `was`: the name that something had before, so that a change of the module keeps what stands under it.
//!
//! What the module was before is not known here. A `was` can be wrong all the same: when the name is still in use, when
//! two claim it, and where nothing is kept under a name.

use super::Checker;
use crate::diagnostics::{Code, Diagnostic, line_of};
use crate::module::Former;
use crate::syntax::tree::{Case, Field, File, Word};
use std::collections::HashMap;

/// Something with a name now and perhaps one before.
type Named<'t> = (&'t Word, Option<&'t Word>);

impl Checker<'_> {
    /// Former names of an enum's cases.
    pub(super) fn former_cases(&mut self, cases: &[Case]) -> Vec<Former> {
        let named: Vec<Named<'_>> = cases.iter().map(|case| (&case.name, case.was.as_ref())).collect();
        self.former("case", &named)
    }

    /// Former names of fields.
    pub(super) fn former_fields(&mut self, fields: &[Field]) -> Vec<Former> {
        let named: Vec<Named<'_>> = fields.iter().map(|field| (&field.name, field.was.as_ref())).collect();
        self.former("field", &named)
    }

    /// Former names of the file's enums and records, by where the name now stands.
    pub(super) fn former_types(&mut self, file: &File) -> HashMap<u32, String> {
        let enums = file.enums.iter().map(|one| (&one.name, one.was.as_ref()));
        let named: Vec<Named<'_>> =
            enums.chain(file.records.iter().map(|one| (&one.name, one.was.as_ref()))).collect();
        self.former_by_place("type", &named)
    }

    /// Former names of the file's states, by where the name now stands.
    pub(super) fn former_states(&mut self, file: &File) -> HashMap<u32, String> {
        let named: Vec<Named<'_>> = file.states.iter().map(|one| (&one.name, one.was.as_ref())).collect();
        self.former_by_place("state", &named)
    }

    /// Says that a `was` has nothing to say here.
    pub(super) fn no_former(&mut self, fields: &[Field]) {
        for was in fields.iter().filter_map(|field| field.was.as_ref()) {
            self.report.push(
                Diagnostic::new(Code::WrongWas, was.span, "nothing is kept under this name")
                    .label("so it needs no `was`")
                    .note(
                        "`was` stands in enums, records and state, and in what is sent or waits for its time: the fields \
                         of `on … from`, `output` and `on timer`",
                    )
                    .help("leave it out"),
            );
        }
    }

    fn former_by_place(&mut self, what: &str, all: &[Named<'_>]) -> HashMap<u32, String> {
        let place = |former: Former| Some((all[usize::from(former.now?)].0.span.start, former.name));
        self.former(what, all).into_iter().filter_map(place).collect()
    }

    /// Former names among many things of one kind. There are up to ten thousand: each is looked up, not searched for.
    fn former(&mut self, what: &str, all: &[Named<'_>]) -> Vec<Former> {
        let mut former = Vec::new();
        let mut names: HashMap<&str, &Word> = HashMap::new();
        let mut claims: HashMap<&str, &Word> = HashMap::new();
        for (name, was) in all {
            names.entry(&name.text).or_insert(name);
            if let Some(was) = was {
                claims.entry(&was.text).or_insert(was);
            }
        }
        for (at, (name, was)) in all.iter().enumerate() {
            let Some(was) = was else { continue };
            let user = names.get(was.text.as_str()).copied();
            let claim = claims.get(was.text.as_str()).copied();
            if self.may_have_been(what, (name, was), user, claim) {
                former.push(Former { name: was.text.clone(), now: Some(at as u16) });
            }
        }
        former
    }

    /// Whether what has a name now may have had one before, given who has that one now and who claims it first.
    fn may_have_been(
        &mut self,
        what: &str,
        (name, was): (&Word, &Word),
        user: Option<&Word>,
        claim: Option<&Word>,
    ) -> bool {
        let wrong = |message: String| Diagnostic::new(Code::WrongWas, was.span, message);
        let line = |word: &Word| line_of(self.source, word.span.start);
        let diagnostic = if was.text == name.text {
            wrong(format!("`{}` is its name now", was.text))
                .help("leave the `was` out, or write the name before")
        } else if let Some(user) = user {
            wrong(format!("there is a {what} `{}` still, so `{}` was not it", was.text, name.text))
                .label(format!("it stands on line {}", line(user)))
                .note("`was` carries what is kept under a name that is gone to a new one")
                .help(format!("remove the {what} `{}`, or this `was`", was.text))
        } else if let Some(claim) = claim.filter(|claim| claim.span != was.span) {
            wrong(format!("another {what} was `{}` already", was.text))
                .label(format!("the first says so on line {}", line(claim)))
                .help("leave one of them out: that one begins with its default")
        } else {
            return true;
        };
        self.report.push(diagnostic);
        false
    }
}
