//! A change as a person reads it: what is added, removed, called otherwise, of another type; what is lost; what cannot be.

use super::conversion::{Retype, retype};
use super::operations::Operation;
use super::schema::{Constant, Holds, Kind, Message, MessageKind, Schema};
use super::travelling::{Misfit, Newer, Reading, Unread};
use super::{Change, Findings, Misfits, under_way};
use std::collections::BTreeSet;
use std::fmt;

/// What a part of a change, or all of it, comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Nothing is lost.
    Keeps,
    /// It depends on rows that nobody looked at.
    Depends,
    /// Something that is kept now is lost.
    Loses,
    /// It cannot be done.
    Refused,
}

impl Verdict {
    /// A word for it.
    pub fn text(self) -> &'static str {
        match self {
            Verdict::Keeps => "keeps",
            Verdict::Depends => "depends",
            Verdict::Loses => "loses",
            Verdict::Refused => "refused",
        }
    }
}

/// One part of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// `added`, `removed`, `renamed`, `retyped`, `reordered`, `rekeyed`, `indexed`, `grown`, `message`, `timer` or `answer`.
    pub change: &'static str,
    /// What it is about: `board`, `Score.points`.
    pub name: String,
    /// What happens, in words.
    pub what: String,
    /// What it comes to.
    pub verdict: Verdict,
    /// Why it loses, depends or is refused; may be empty.
    pub why: String,
    /// What to do instead; may be empty.
    pub help: String,
}

/// A whole change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The app.
    pub app: String,
    /// Its parts.
    pub items: Vec<Item>,
}

impl Plan {
    /// The worst of its parts.
    pub fn verdict(&self) -> Verdict {
        self.items.iter().map(|item| item.verdict).max().unwrap_or(Verdict::Keeps)
    }

    pub(super) fn of(change: &Change, app: &str, findings: Option<&Findings>) -> Plan {
        let teller = Teller { change, findings };
        let blocked = change.blocked.iter().map(|one| Item {
            change: "retyped",
            name: one.name.clone(),
            what: "cannot be what it is to be".into(),
            verdict: Verdict::Refused,
            why: one.why.clone(),
            help: one.help.clone(),
        });
        let operations = change.operations.iter().enumerate().map(|(at, one)| teller.operation(at, one));
        let mut items: Vec<Item> = blocked.chain(operations).collect();
        items.extend(teller.others());
        items.extend(teller.grown());
        items.extend(teller.messages());
        items.extend(teller.timers());
        items.extend(findings.into_iter().flat_map(|findings| under_way::told(change, &findings.sends)));
        Plan { app: app.to_owned(), items }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.items.is_empty() {
            return writeln!(formatter, "{}: what is kept stays as it is", self.app);
        }
        writeln!(formatter, "{}: what changes", self.app)?;
        for item in &self.items {
            writeln!(formatter, "  {:<9} {}: {}", item.change, item.name, item.what)?;
            let sign = match item.verdict {
                Verdict::Keeps => "note",
                Verdict::Depends => "depends",
                Verdict::Loses => "LOST",
                Verdict::Refused => "REFUSED",
            };
            if !item.why.is_empty() {
                writeln!(formatter, "            {sign}: {}", item.why)?;
            }
            if !item.help.is_empty() {
                writeln!(formatter, "            help: {}", item.help)?;
            }
        }
        Ok(())
    }
}

struct Teller<'c> {
    change: &'c Change,
    findings: Option<&'c Findings>,
}

impl Teller<'_> {
    fn operation(&self, at: usize, operation: &Operation) -> Item {
        let (before, after) = (&self.change.before, &self.change.after);
        match operation {
            Operation::AddList { list } => plain("added", self.list(after, *list), self.added_list(*list)),
            Operation::DropList { list } => self.dropped_list(*list),
            Operation::RenameList { list } => {
                plain("renamed", self.list(after, *list), format!("it was `{}`", self.list(before, *list)))
            }
            Operation::AddField { record, field, constant } => {
                self.added_field(at, *record, *field, constant.as_ref())
            }
            Operation::DropField { record, field } => self.dropped_field(at, *record, *field),
            Operation::RenameField { record, field } => {
                let was = field_name(before, *record, *field);
                plain("renamed", field_name(after, *record, *field), format!("it was `{was}`"))
            }
            Operation::RetypeField { record, field, none } => {
                let kind = |schema: &Schema| {
                    let fields = schema.record(*record).map(|record| &record.fields);
                    fields
                        .and_then(|fields| fields.get(*field))
                        .map_or(Kind::Bool, |field| field.kind.clone())
                };
                let name = field_name(after, *record, *field);
                self.retyped(at, name, &kind(before), &kind(after), none.as_ref())
            }
            Operation::RetypeVariable { list, none } => {
                let kind = |schema: &Schema| match schema.list(*list).map(|list| &list.holds) {
                    Some(Holds::Value(kind)) => kind.clone(),
                    _ => Kind::Bool,
                };
                self.retyped(at, self.list(after, *list), &kind(before), &kind(after), none.as_ref())
            }
            Operation::ReorderFields { record } => {
                plain("reordered", type_of(after, *record), "its fields stand in another order".into())
            }
            Operation::AddCase { enumeration, case } => {
                plain("added", case_name(after, *enumeration, *case), "a case".into())
            }
            Operation::DropCase { enumeration, case } => self.dropped_case(at, *enumeration, *case),
            Operation::RenameCase { enumeration, case } => {
                let was = case_name(before, *enumeration, *case);
                plain("renamed", case_name(after, *enumeration, *case), format!("it was `{was}`"))
            }
            Operation::ReorderCases { enumeration } => {
                plain("reordered", type_of(after, *enumeration), "its cases stand in another order".into())
            }
            Operation::RenameType { number } => {
                plain("renamed", type_of(after, *number), format!("it was `{}`", type_of(before, *number)))
            }
            Operation::Rekey { list } => self.rekeyed(at, *list),
            Operation::Reindex { list } => self.reindexed(at, *list),
        }
    }

    fn list(&self, schema: &Schema, number: u32) -> String {
        schema.list(number).map(|list| list.name.clone()).unwrap_or_default()
    }

    /// Rows of a list, where somebody looked.
    fn rows(&self, list: u32) -> Option<u64> {
        self.findings.map(|findings| findings.rows.get(&list).copied().unwrap_or_default())
    }

    /// Rows of all lists that hold a type.
    fn rows_of_type(&self, number: u32) -> Option<Places> {
        let before = &self.change.before;
        let holds = |kind: &Kind| {
            let mut reached = BTreeSet::new();
            before.reach(kind, &mut reached);
            reached.contains(&number)
        };
        let mut places = Places::default();
        for list in &before.lists {
            match &list.holds {
                Holds::Rows { record, .. } if holds(&Kind::Record(*record)) => {
                    places.rows += self.rows(list.number)?
                }
                Holds::Value(kind) if holds(kind) => places.variables += self.rows(list.number)?,
                Holds::Rows { .. } | Holds::Value(_) => {}
            }
        }
        Some(places)
    }

    fn tally(&self, at: usize) -> Option<u64> {
        self.findings.map(|findings| findings.tally.get(at).copied().unwrap_or_default())
    }

    fn added_list(&self, list: u32) -> String {
        let after = &self.change.after;
        match after.list(list).map(|list| &list.holds) {
            Some(Holds::Rows { record, keys, .. }) => {
                format!("a list of {} by {}, empty", type_of(after, *record), names(after, *record, keys))
            }
            Some(Holds::Value(kind)) => format!("{}, with its initial value", after.type_name(kind)),
            None => String::new(),
        }
    }

    fn dropped_list(&self, list: u32) -> Item {
        let is_value = matches!(self.change.before.list(list).map(|list| &list.holds), Some(Holds::Value(_)));
        let becomes_transient = self.change.transient.contains(&list);
        let what = if becomes_transient { "it becomes transient, and begins anew" } else { "it goes" };
        let why = match (is_value, self.rows(list)) {
            (true, _) => "its value".to_owned(),
            (false, Some(0)) => String::new(),
            (false, Some(rows)) => counted(rows, "row"),
            (false, None) => "all its rows".to_owned(),
        };
        let verdict = if why.is_empty() { Verdict::Keeps } else { Verdict::Loses };
        let help = match (verdict, becomes_transient) {
            (Verdict::Loses, false) => "if it only has another name, say so with `was`".to_owned(),
            _ => String::new(),
        };
        Item {
            change: "removed",
            name: self.list(&self.change.before, list),
            what: what.into(),
            verdict,
            why,
            help,
        }
    }

    fn added_field(&self, at: usize, record: u32, field: u32, constant: Option<&Constant>) -> Item {
        let after = &self.change.after;
        let name = field_name(after, record, field);
        let shape = after.record(record).and_then(|record| record.fields.get(field));
        let kind = shape.map_or_else(String::new, |field| after.type_name(&field.kind));
        let rows = self.rows_of_type(record);
        let there = rows.map_or_else(|| "what is there".to_owned(), Places::shown);
        if let Some(constant) = constant {
            let shown = shape.and_then(|field| shown(constant, &field.kind, after));
            let gets = shown.unwrap_or_else(|| "its default".into());
            return plain("added", name, format!("{kind}, {gets} in {there}"));
        }
        let verdict = match rows {
            Some(Places { rows: 0, variables: 0 }) => Verdict::Keeps,
            Some(_) if self.misfits(at).is_none() => Verdict::Keeps,
            Some(_) => Verdict::Refused,
            None => Verdict::Depends,
        };
        let short = shape.map_or("", |field| field.name.as_str());
        let (why, help) = match verdict {
            Verdict::Keeps => (String::new(), String::new()),
            _ => (
                format!("it has no default, and {there} would get no value"),
                format!("give it one: `{short}: {kind} = …`, or make it `{kind}?`"),
            ),
        };
        Item { change: "added", name, what: kind, verdict, why, help }
    }

    fn dropped_field(&self, at: usize, record: u32, field: u32) -> Item {
        let name = field_name(&self.change.before, record, field);
        let why = match self.tally(at) {
            Some(0) => String::new(),
            Some(lost) => counted(lost, "value"),
            None => "its value in each row".to_owned(),
        };
        let verdict = if why.is_empty() { Verdict::Keeps } else { Verdict::Loses };
        let help = match verdict {
            Verdict::Loses => "if it only has another name, say so with `was`".to_owned(),
            _ => String::new(),
        };
        Item { change: "removed", name, what: "it goes".into(), verdict, why, help }
    }

    fn dropped_case(&self, at: usize, enumeration: u32, case: u32) -> Item {
        let name = case_name(&self.change.before, enumeration, case);
        let mut item = plain("removed", name, "the case goes".into());
        (item.verdict, item.why) = match (self.findings, self.misfits(at)) {
            (None, _) => (Verdict::Depends, "only if nothing has it".to_owned()),
            (Some(_), None) => return item,
            (Some(_), Some(misfits)) => (Verdict::Refused, format!("{misfits} it")),
        };
        item.help =
            "keep the case until code has given them another; if it only has another name, say so with `was`"
                .into();
        item
    }

    fn retyped(&self, at: usize, name: String, from: &Kind, to: &Kind, none: Option<&Constant>) -> Item {
        let (before, after) = (&self.change.before, &self.change.after);
        let mut item =
            plain("retyped", name, format!("{} becomes {}", before.type_name(from), after.type_name(to)));
        let has_default = none.is_some();
        match retype(from, to, has_default) {
            Retype::Never => {
                item.verdict = Verdict::Refused;
                item.why = format!(
                    "values of {} do not become {} by themselves",
                    before.type_name(from),
                    after.type_name(to)
                );
                item.help = "add it under another name, and let code fill that from what is kept".into();
            }
            Retype::Where(conditions) => match (self.findings, self.misfits(at)) {
                (None, _) if !conditions.is_empty() => {
                    item.verdict = Verdict::Depends;
                    item.why = format!("only if {}", conditions.join(" and "));
                }
                (Some(_), Some(misfits)) => {
                    item.verdict = Verdict::Refused;
                    item.why = format!("only if {}, and {misfits} another", conditions.join(" and "));
                    item.help =
                        "change these rows first, or give the field a default where it may be none now"
                            .into();
                }
                _ => {}
            },
        }
        let filled = self.tally(at).filter(|count| *count > 0);
        if let (Some(count), Verdict::Keeps) = (filled, item.verdict) {
            item.why =
                format!("{} that {} none {} the default", counted(count, "value"), was(count), gets(count));
        }
        item
    }

    fn rekeyed(&self, at: usize, list: u32) -> Item {
        let (before, after) = (&self.change.before, &self.change.after);
        let keys = |schema: &Schema| match schema.list(list).map(|list| &list.holds) {
            Some(Holds::Rows { record, keys, .. }) => (*record, keys.clone()),
            _ => (0, Vec::new()),
        };
        let ((old_record, old), (new_record, new)) = (keys(before), keys(after));
        let (was, now) = (names(before, old_record, &old), names(after, new_record, &new));
        let what = if was == now {
            format!("by {now}, in another order")
        } else {
            format!("by {now} instead of {was}")
        };
        let mut item = plain("rekeyed", self.list(after, list), what);
        let stays_unique = old.iter().all(|key| new.contains(key));
        match (self.findings, self.misfits(at)) {
            (None, _) if !stays_unique => {
                item.verdict = Verdict::Depends;
                item.why = "only if no two rows get the same key".into();
            }
            (Some(_), Some(misfits)) => {
                item.verdict = Verdict::Refused;
                item.why =
                    format!("{misfits} a key that another row has too, or a longer one than there may be");
                item.help = "let code change or remove these rows first".into();
            }
            _ => {}
        }
        item
    }

    fn reindexed(&self, at: usize, list: u32) -> Item {
        let after = &self.change.after;
        let shown = match after.list(list).map(|list| &list.holds) {
            Some(Holds::Rows { record, indexes, .. }) => {
                indexes.iter().map(|index| names(after, *record, index)).collect::<Vec<String>>().join("; ")
            }
            _ => String::new(),
        };
        let shown = if shown.is_empty() { "no index".to_owned() } else { format!("index {shown}") };
        let over =
            self.rows(list).map_or_else(String::new, |rows| format!(", built over {}", counted(rows, "row")));
        let mut item = plain("indexed", self.list(after, list), shown + &over);
        if let Some(misfits) = self.misfits(at) {
            item.verdict = Verdict::Refused;
            item.why = format!("{misfits} more in the indexed fields and the key than there may be");
            item.help = "leave the long field out of the index".into();
        }
        item
    }

    /// What no operation of its own stands for: entries of an index that grew with a field.
    fn others(&self) -> Option<Item> {
        let misfits = self.misfits(self.change.operations.len())?;
        let mut item = plain("indexed", "an index".into(), "its entries change with their fields".into());
        item.verdict = Verdict::Refused;
        item.why = format!("{misfits} more in the indexed fields and the key than there may be");
        item.help = "leave the long field out of the index".into();
        Some(item)
    }

    /// Rows that could only be removed then.
    fn grown(&self) -> Vec<Item> {
        let grown = self.findings.iter().flat_map(|findings| &findings.too_large);
        let grown = grown.map(|(list, rows)| Item {
            change: "grown",
            name: self.list(&self.change.after, *list),
            what: "what it keeps gets longer".into(),
            verdict: Verdict::Refused,
            why: match rows.first.is_empty() {
                true => "it would have more bytes than an event may change".to_owned(),
                false => format!("{} would have more bytes than an event may change", rows.counted()),
            },
            help: "give new fields shorter defaults, or let code shorten or remove these rows first".into(),
        });
        grown.collect()
    }

    /// `3 rows, first ann, have`, of what has no place in the new shape.
    fn misfits(&self, at: usize) -> Option<String> {
        let misfits = self.findings?.misfits.get(&at)?;
        Some(format!("{} {}", misfits.counted(), if misfits.rows == 1 { "has" } else { "have" }))
    }

    /// Messages that wait in their old shape here, or in the new one where they are sent to.
    fn messages(&self) -> Vec<Item> {
        let (before, after) = (&self.change.before, &self.change.after);
        let mut taking = Reading::new(before, after, Newer::Reader);
        let mut sending = Reading::new(after, before, Newer::Writer);
        let mut items = Vec::new();
        for old in &before.messages {
            let same = |message: &&Message| message.kind == old.kind && message.name == old.name;
            let new = after.messages.iter().find(same);
            match (old.kind, new) {
                (MessageKind::Input, None) => {
                    let mut item = plain("message", old.name.clone(), "it is taken no more".into());
                    item.why = "what is under way for it waits, and so does what was sent after it".into();
                    item.help = "keep it as long as somebody may send it".into();
                    items.push(item);
                }
                (MessageKind::Input, Some(new)) => {
                    let unread = taking.fields(None, &old.fields, &new.fields);
                    items.extend(unread.into_iter().map(|unread| taken(&old.name, unread)));
                }
                (MessageKind::Output, Some(new)) => {
                    let is_transient = self.change.passing.contains(&new.name);
                    let unread = sending.fields(None, &new.fields, &old.fields);
                    items.extend(unread.into_iter().map(|unread| sent(&old.name, unread, is_transient)));
                }
                (MessageKind::Output, None) | (MessageKind::Timer, _) => {}
            }
        }
        items
    }

    /// Timers that do not fire any more.
    fn timers(&self) -> Vec<Item> {
        let mut items = Vec::new();
        for (name, timers) in self.findings.iter().flat_map(|findings| &findings.timers) {
            if timers.gone > 0 {
                let mut item = plain("timer", name.clone(), "there is no such `on timer` any more".into());
                item.verdict = Verdict::Loses;
                item.why = counted(timers.gone, "pending timer");
                items.push(item);
            }
            if timers.misfits > 0 {
                let mut item = plain("timer", name.clone(), "it has other fields".into());
                item.verdict = Verdict::Refused;
                item.why =
                    format!("{} would not fit: {}", counted(timers.misfits, "pending timer"), timers.why);
                item.help = "give new fields a short default; where one has another type, which pending timers never change, \
                             give the new `on timer` another name, beside this one until it has fired"
                    .into();
                items.push(item);
            }
        }
        items
    }
}

/// What was sent in the old shape, and is not read in the new one.
fn taken(message: &str, unread: Unread) -> Item {
    let path = unread.path;
    let (what, waiting, help) = match unread.why {
        Misfit::Needed { named } => {
            (format!("it needs `{path}`"), "without it".to_owned(), format!("give `{named}` a default"))
        }
        Misfit::Unknown { .. } => (
            format!("it has no `{path}`"),
            "with it".into(),
            "if it only has another name, say so with `was`".into(),
        ),
        Misfit::Case { named, case, .. } => (
            format!("its `{path}` is never .{case} any more"),
            "with it".into(),
            format!(
                "keep `{named}` as long as somebody may send it; if it only has another name, say so with `was`"
            ),
        ),
        Misfit::None { kind } => (
            format!("its `{path}` may be none no more"),
            "with none".into(),
            format!("let it be `{kind}?` as long as somebody may send none"),
        ),
        Misfit::Type { from, to } => (
            format!("its `{path}` was {from} and is {to}"),
            format!("as {from}"),
            "add it under another name, with a default".into(),
        ),
    };
    let mut item = plain("message", message.to_owned(), what);
    item.why = format!("what is under way {waiting} waits, and so does what was sent after it");
    item.help = help;
    item
}

/// What is sent in the new shape, and is not read in the old one.
fn sent(message: &str, unread: Unread, is_transient: bool) -> Item {
    let path = unread.path;
    let before =
        |other: Option<String>| other.map_or_else(String::new, |other| format!(", which was {other}"));
    let (what, place) = match unread.why {
        Misfit::Needed { .. } => {
            (format!("it is sent without `{path}`"), "that has no default for it".to_owned())
        }
        Misfit::Unknown { other } => {
            let before = before(other.map(|other| format!("`{other}`")));
            (format!("it is sent with `{path}`{before}"), "that has no such field".into())
        }
        Misfit::Case { case, other, .. } => {
            let before = before(other.map(|other| format!(".{other}")));
            (format!("its `{path}` may be .{case}{before}"), "that has no such case".into())
        }
        Misfit::None { .. } => (format!("its `{path}` may be none"), "where it is never none".into()),
        Misfit::Type { from, to } => {
            (format!("its `{path}` was {to} and is {from}"), format!("where it is still {to}"))
        }
    };
    let mut item = plain("message", message.to_owned(), what);
    let does = if is_transient { "passes it over" } else { "lets it wait, and what is sent after it," };
    item.why = format!("a node {place} {does} until it has a newer version, too");
    item.help = "change the nodes that take it first".into();
    item
}

fn plain(change: &'static str, name: String, what: String) -> Item {
    Item { change, name, what, verdict: Verdict::Keeps, why: String::new(), help: String::new() }
}

fn type_of(schema: &Schema, number: u32) -> String {
    let kind = if schema.enumeration(number).is_some() { Kind::Enum(number) } else { Kind::Record(number) };
    schema.type_name(&kind)
}

fn field_name(schema: &Schema, record: u32, field: u32) -> String {
    let shape = schema.record(record);
    let field = shape.and_then(|record| record.fields.get(field)).map_or("", |field| field.name.as_str());
    format!("{}.{field}", shape.map_or("", |record| record.name.as_str()))
}

fn case_name(schema: &Schema, enumeration: u32, case: u32) -> String {
    let shape = schema.enumeration(enumeration);
    let found = shape.and_then(|one| one.cases.iter().find(|(number, _)| *number == case));
    format!("{}.{}", type_of(schema, enumeration), found.map_or("", |(_, name)| name.as_str()))
}

fn names(schema: &Schema, record: u32, fields: &[u32]) -> String {
    let shape = schema.record(record);
    let name = |number: &u32| {
        let field = shape.and_then(|record| record.fields.get(*number));
        field.map(|field| field.name.clone()).unwrap_or_default()
    };
    fields.iter().map(name).collect::<Vec<String>>().join(", ")
}

/// A constant as the source writes it; none of the longer ones.
fn shown(constant: &Constant, kind: &Kind, schema: &Schema) -> Option<String> {
    Some(match (constant, kind) {
        (Constant::None, _) => "none".into(),
        (constant, Kind::Optional(inner)) => return shown(constant, inner, schema),
        (Constant::Word(word), Kind::Bool) => (*word != 0).to_string(),
        (Constant::Word(word), Kind::Int) => word.to_string(),
        (Constant::Word(word), Kind::Enum(number)) => {
            let cases = &schema.enumeration(*number)?.cases;
            format!(".{}", cases.get(usize::try_from(*word).ok()?)?.1)
        }
        (Constant::Text(text), _) if text.len() <= 40 => format!("{text:?}"),
        _ => return None,
    })
}

impl Misfits {
    /// `3 rows (first: "ann")`
    fn counted(&self) -> String {
        let first = if self.first.is_empty() { String::new() } else { format!(" (first: {})", self.first) };
        counted(self.rows, "row") + &first
    }
}

/// Where values of a type are.
#[derive(Debug, Clone, Copy, Default)]
struct Places {
    rows: u64,
    variables: u64,
}

impl Places {
    /// `3 rows and 1 variable`
    fn shown(self) -> String {
        match self {
            Places { rows, variables: 0 } => counted(rows, "row"),
            Places { rows: 0, variables } => counted(variables, "variable"),
            Places { rows, variables } => {
                format!("{} and {}", counted(rows, "row"), counted(variables, "variable"))
            }
        }
    }
}

/// `1 row`, `2 rows`
fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn was(count: u64) -> &'static str {
    if count == 1 { "was" } else { "were" }
}

fn gets(count: u64) -> &'static str {
    if count == 1 { "gets" } else { "get" }
}
