//! How the rows of a list are found: by an index or by the key, in which order, and between which ends.
//!
//! An index makes a loop faster and changes nothing else: only what stands before the first part of a condition that can
//! refuse is looked up, rows come in the order that is wanted, and where something may change under way, or rows are
//! found in another order, each is tested against the whole condition all the same.

use super::{Elements, Loops, Mode, Opened, Runs};
use crate::check::body::{BindingKind, Body, Held, Origin};
use crate::check::expressions::is_plain_word;
use crate::check::optional;
use crate::code::{End, Fold, Operation, Order, Over, Register, Rows};
use crate::module::{Plan, Type};
use crate::syntax::tree::{Binary, Expression, ExpressionKind, Query};
use crate::syntax::walk;

/// The order that rows must come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::check) enum Wanted {
    /// Of the list, that is of its keys.
    List,
    /// As they are found.
    Any,
    /// Of the query's `order by`.
    Sorted,
}

/// A demand of a condition that can be looked up: a field of the element, and what it is to be.
struct Demand<'q> {
    field: &'q str,
    is: Looked,
    value: &'q Expression,
    /// The part of the condition that it is.
    part: &'q Expression,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Looked {
    Equal,
    /// Its lower end.
    From(End),
    /// Its upper end.
    Upto(End),
}

/// How the rows of one loop are found.
pub(super) struct Way<'q> {
    index: Option<u16>,
    /// Values that are equal, then the ends.
    equal: Vec<(u16, &'q Expression)>,
    from: Option<(u16, End, &'q Expression)>,
    upto: Option<(u16, End, &'q Expression)>,
    order: Order,
    /// Whether they come as `order by` asks.
    in_order: bool,
    /// Parts of the condition that need not be tested any more.
    answered: Vec<&'q Expression>,
}

impl Way<'_> {
    fn is_scan(&self) -> bool {
        self.equal.is_empty() && self.from.is_none() && self.upto.is_none()
    }
}

/// All rows of a list in the order of its keys.
pub(super) fn all_rows(list: u32) -> Rows {
    let (from, upto) = (End::Open, End::Open);
    Rows { list, index: None, first: 0, equal: 0, from, upto, order: Order::Forward, live: false }
}

/// The parts of a condition that must all hold, in the order in which they are tested.
pub(super) fn conjuncts(condition: &Expression) -> Vec<&Expression> {
    let mut found = Vec::new();
    let mut left_over = vec![condition];
    while let Some(next) = left_over.pop() {
        match &*next.kind {
            ExpressionKind::Binary(Binary::And, left, right) => left_over.extend([right, left]),
            _ => found.push(next),
        }
    }
    found
}

impl<'c, 'a> Body<'c, 'a> {
    /// Whether the rows of a query's first list come in the order that is asked for as they are found.
    pub(super) fn comes_in_order(&self, loops: &Loops<'_>) -> bool {
        let mode = Mode { runs: Runs::Value(None), wanted: Wanted::Sorted };
        !loops.order.is_empty() && self.way(loops, 0, mode).is_some_and(|way| way.in_order)
    }

    /// How the rows of a source are found best.
    fn way<'q>(&self, loops: &Loops<'q>, at: usize, mode: Mode<'_>) -> Option<Way<'q>> {
        let source = &loops.sources[at];
        let Elements::List(expression) = source.over else { return None };
        let list = self.state_list(expression)?;
        let (_, _, indexes) = self.checker.keyed(list)?;
        let live = self.may_change_rows(mode.runs, list);
        let demands = match source.condition {
            Some(condition) => self.demands(condition, &source.name.text, mode.runs.are_statements()),
            None => Vec::new(),
        };
        // An order of its own shows where a part refuses: the first that does says why.
        let free = !self.any_refuses(loops);
        let candidates = std::iter::once(None).chain((0..indexes.len() as u16).map(Some));
        let ways = candidates.filter_map(|index| {
            let mut way = self.way_by(list, index, &demands)?;
            if let (Some(index), Runs::Block(block), true) = (index, mode.runs, live) {
                // An index whose fields the statements change would miss rows that come to fit under way.
                let fields = &self.checker.record(self.checker.keyed(list)?.0).fields;
                let of_index = &indexes[index as usize];
                let names: Vec<&str> = of_index.iter().map(|at| fields[*at as usize].name.as_str()).collect();
                if self.may_change_fields(block, list, &names) {
                    return None;
                }
            }
            self.put_in_order(list, &mut way, loops, at, mode.wanted, free)?;
            if live || way.order == Order::ByKey {
                way.answered.clear();
            }
            Some(way)
        });
        let ends = loops.ends;
        ways.max_by_key(|way| {
            let bounds = u16::from(way.from.is_some()) + u16::from(way.upto.is_some());
            let keys = self.checker.keyed(list).map_or(0, |(_, keys, _)| keys.len());
            let is_one = way.index.is_none() && way.equal.len() == keys;
            let first = if ends { u16::from(way.in_order) } else { bounds };
            let second = if ends { bounds } else { u16::from(way.in_order) };
            // Of those that are as good the key's, then the first index that was written.
            let place = way.index.map_or(u16::MAX, |index| u16::MAX - 1 - index);
            (is_one, way.equal.len(), first, second, way.order != Order::ByKey, place)
        })
    }

    /// How the key or an index finds what is demanded; not at all if an index does not help.
    fn way_by<'q>(&self, list: u32, index: Option<u16>, demands: &[Demand<'q>]) -> Option<Way<'q>> {
        let (record, keys, indexes) = self.checker.keyed(list)?;
        let fields = &self.checker.record(record).fields;
        let of_way = index.map_or(keys, |index| &indexes[index as usize]);
        let find = |field: &u16, is: &dyn Fn(Looked) -> bool| {
            let field = &fields[*field as usize];
            demands.iter().find(|demand| {
                demand.field == field.name && is(demand.is) && self.may_be(demand.value, &field.kind)
            })
        };
        let mut answered = Vec::new();
        let mut equal = Vec::new();
        for field in of_way {
            let Some(demand) = find(field, &|is| is == Looked::Equal) else { break };
            equal.push((*field, demand.value));
            answered.push(demand.part);
        }
        let next = of_way.get(equal.len()).filter(|field| {
            // Of what may be none nothing is less.
            !matches!(fields[**field as usize].kind, Type::Optional(_))
        });
        let from = next.and_then(|field| Some((field, find(field, &|is| matches!(is, Looked::From(_)))?)));
        let upto = next.and_then(|field| Some((field, find(field, &|is| matches!(is, Looked::Upto(_)))?)));
        // `in a .. b` is two ends of one part: it is answered if both are.
        let parts = [from, upto].map(|end| end.map(|(_, demand)| demand.part));
        for part in parts.into_iter().flatten() {
            let both = parts.iter().flatten().filter(|one| std::ptr::eq(**one, part)).count() == 2;
            if both || !matches!(&*part.kind, ExpressionKind::In { .. }) {
                answered.push(part);
            }
        }
        let end = |found: Option<(&u16, &Demand<'q>)>| {
            found.map(|(field, demand)| match demand.is {
                Looked::From(end) | Looked::Upto(end) => (*field, end, demand.value),
                Looked::Equal => (*field, End::Included, demand.value),
            })
        };
        let (from, upto) = (end(from), end(upto));
        Some(Way { index, equal, from, upto, order: Order::Forward, in_order: false, answered })
    }

    /// Decides in which order the rows of a way come; none if an index is of no use then.
    fn put_in_order(
        &self,
        list: u32,
        way: &mut Way<'_>,
        loops: &Loops<'_>,
        at: usize,
        wanted: Wanted,
        free: bool,
    ) -> Option<()> {
        let (record, keys, indexes) = self.checker.keyed(list)?;
        let fields = &self.checker.record(record).fields;
        let of_way = way.index.map_or(keys, |index| &indexes[index as usize]);
        let left = &of_way[way.equal.len()..];
        if at == 0 && wanted == Wanted::Sorted && (free || way.index.is_none()) {
            let behind = if way.index.is_some() { keys } else { &[] };
            let rest: Vec<&u16> = left.iter().chain(behind).collect();
            let descending = loops.order.first().is_some_and(|(_, descending)| *descending);
            let is_next = |((key, turned), field): (&(&Expression, bool), &&u16)| {
                *turned == descending
                    && field_of_element(key, &loops.sources[0].name.text)
                        == Some(fields[**field as usize].name.as_str())
            };
            let count = loops.order.len();
            let fits = count <= rest.len() && loops.order.iter().zip(&rest).all(is_next);
            // Rows that are alike come in the order of keys.
            let ties = match way.index {
                None => true,
                Some(_) if descending => count == left.len() || count == rest.len(),
                Some(_) => count >= left.len(),
            };
            if fits && ties {
                way.in_order = true;
                way.order = match descending {
                    false => Order::Forward,
                    true if count == rest.len() => Order::Backward,
                    true => Order::Turned(count as u16),
                };
                return Some(());
            }
        }
        let by_key = way.index.is_none() || left.is_empty();
        way.order = match wanted {
            _ if by_key => Order::Forward,
            _ if way.is_scan() => return None,
            Wanted::Any if free => Order::Forward,
            _ => Order::ByKey,
        };
        Some(())
    }

    /// Whether a condition of a query, or a list that one of its loops runs over, can refuse.
    pub(super) fn any_refuses(&self, loops: &Loops<'_>) -> bool {
        loops.sources.iter().enumerate().any(|(at, source)| {
            let over = match &source.over {
                Elements::List(list) => at > 0 && self.can_refuse(list),
                Elements::Range(from, upto) => at > 0 && (self.can_refuse(from) || self.can_refuse(upto)),
                Elements::Groups(..) | Elements::Grouped(..) => true,
            };
            over || source.condition.is_some_and(|condition| self.can_refuse(condition))
        })
    }

    /// What a loop over the rows of a list runs over.
    pub(super) fn rows<'q>(
        &mut self,
        list: u32,
        record: u32,
        loops: &Loops<'q>,
        at: usize,
        mode: Mode<'_>,
    ) -> Opened<'q> {
        let source = &loops.sources[at];
        let live = self.may_change_rows(mode.runs, list);
        let mut conditions = source.condition.map(conjuncts).unwrap_or_default();
        let mut rows = all_rows(list);
        let mut is_scan = true;
        if let Some(way) = self.way(loops, at, mode) {
            conditions.retain(|part| !way.answered.iter().any(|answered| std::ptr::eq(*answered, *part)));
            is_scan = way.is_scan();
            rows = self.found_by(list, record, &way);
        }
        rows.live = live;
        self.note_plan(source.name.span, rows);
        Opened {
            over: Over::Rows(rows),
            element: Type::Record(record),
            origin: Some((Origin { list, held: Held::Key }, live)),
            conditions,
            is_scan: is_scan && list < crate::module::SCRATCH,
        }
    }

    /// The rows of a way, the values that they are found by in registers.
    fn found_by(&mut self, list: u32, record: u32, way: &Way<'_>) -> Rows {
        let ends = [way.from, way.upto].into_iter().flatten().map(|(field, _, value)| (field, value));
        let values: Vec<(u16, &Expression)> = way.equal.iter().copied().chain(ends).collect();
        let first = self.row_of_registers(values.len());
        for (at, (field, value)) in values.into_iter().enumerate() {
            let kind = self.checker.record(record).fields[field as usize].kind.clone();
            let mark = self.mark();
            let register = self.need(value, &kind);
            self.put_into(register, first.saturating_add(at as Register), mark);
        }
        let end = |end: Option<(u16, End, &Expression)>| end.map_or(End::Open, |(_, end, _)| end);
        Rows {
            list,
            index: way.index,
            first,
            equal: way.equal.len() as u16,
            from: end(way.from),
            upto: end(way.upto),
            order: way.order,
            live: false,
        }
    }

    /// The list and the key of the one row that a loop runs over at most, where that is a key of one plain word and
    /// nothing changes the row.
    pub(super) fn only_row(&self, over: &Over) -> Option<(u32, Register)> {
        let Over::Rows(Rows { list, index: None, first, equal: 1, live: false, .. }) = *over else {
            return None;
        };
        let (record, keys, _) = self.checker.keyed(list)?;
        let fields = &self.checker.record(record).fields;
        let by_word = matches!(keys, [key] if is_plain_word(&fields[*key as usize].kind));
        by_word.then_some((list, first))
    }

    /// Lowers how many rows of a list a query's condition leaves, if the key or an index tells it; else nothing.
    pub(in crate::check) fn count_of(&mut self, query: &Query) -> Option<Register> {
        let (None, None, [source]) = (&query.group, &query.take, query.sources.as_slice()) else {
            return None;
        };
        let loops = Loops { order: Vec::new(), ..Loops::of(query) };
        let list = self.state_list(&source.list)?;
        let (record, ..) = self.checker.keyed(list)?;
        let way = self.way(&loops, 0, Mode { runs: Runs::Folded(None), wanted: Wanted::Any })?;
        let parts = source.condition.as_ref().map(conjuncts).unwrap_or_default();
        let is_answered = |part: &&Expression| way.answered.iter().any(|one| std::ptr::eq(*one, *part));
        if way.order == Order::ByKey || !query.order.is_empty() || !parts.iter().all(is_answered) {
            return None;
        }
        let rows = self.found_by(list, record, &way);
        self.note_plan(source.name.span, rows);
        let out = self.register();
        self.emit(match way.is_scan() {
            true => Operation::RowCount { out, list },
            false => Operation::CountRows { out, rows },
        });
        Some(out)
    }

    /// Lowers a fold of a plain field of the rows that the key or an index finds alone; its type, or nothing.
    pub(in crate::check) fn folded(
        &mut self,
        name: &str,
        argument: &Expression,
        query: &Query,
        into: Register,
    ) -> Option<Type> {
        let (None, None, [source]) = (&query.group, &query.take, query.sources.as_slice()) else {
            return None;
        };
        let fold = match name {
            "sum" => Fold::Sum,
            "min" => Fold::Least,
            "max" => Fold::Greatest,
            _ => return None,
        };
        if !query.order.is_empty() {
            return None;
        }
        let grouped = self.rows_of_group(&source.list);
        let list = grouped.map(|(grouping, _)| grouping.list).or_else(|| self.state_list(&source.list))?;
        let (record, ..) = self.checker.keyed(list)?;
        let wanted = field_of_element(argument, &source.name.text)?;
        let fields = &self.checker.record(record).fields;
        let field = fields.iter().position(|field| field.name == wanted)?;
        let kind = fields[field].kind.clone();
        if !is_plain_word(&kind) || fold == Fold::Sum && !matches!(kind, Type::Int | Type::Duration) {
            return None;
        }
        let rows = match grouped {
            Some((grouping, key)) if source.condition.is_none() => grouping.rows(key, Wanted::Any)?,
            Some(_) => return None,
            None => {
                let loops = Loops { order: Vec::new(), ..Loops::of(query) };
                let way = self.way(&loops, 0, Mode { runs: Runs::Folded(None), wanted: Wanted::Any })?;
                let parts = source.condition.as_ref().map(conjuncts).unwrap_or_default();
                let is_answered =
                    |part: &&Expression| way.answered.iter().any(|one| std::ptr::eq(*one, *part));
                if way.order == Order::ByKey || !parts.iter().all(is_answered) {
                    return None;
                }
                self.found_by(list, record, &way)
            }
        };
        self.note_plan(source.name.span, rows);
        let cursor = self.cursor();
        self.emit(Operation::Open { cursor, over: Over::Rows(rows) });
        let groups = grouped.and_then(|(grouping, _)| grouping.groups);
        self.emit(Operation::Fold { fold, cursor, list, field: field as u16, into, groups });
        Some(kind)
    }

    fn note_plan(&mut self, span: crate::diagnostics::Span, rows: Rows) {
        let line = crate::diagnostics::line_of(self.checker.source, span.start) as u32;
        let is_scan = rows.equal == 0 && rows.from == End::Open && rows.upto == End::Open;
        let is_state = rows.list < crate::module::SCRATCH;
        let in_scan = is_scan && is_state && self.scans > 0;
        let plan = Plan {
            function: self.name.clone(),
            line,
            span,
            list: self.checker.list(rows.list).name.clone(),
            how: self.told_way(&rows, is_scan),
            scan: is_scan && is_state,
            in_scan,
        };
        self.checker.module.plans.push(plan);
    }

    fn told_way(&self, rows: &Rows, is_scan: bool) -> String {
        let Some((record, keys, indexes)) = self.checker.keyed(rows.list) else { return String::new() };
        let fields = &self.checker.record(record).fields;
        let names = |fields_of: &[u16]| -> String {
            let names: Vec<&str> = fields_of.iter().map(|at| fields[*at as usize].name.as_str()).collect();
            names.join(", ")
        };
        let of_way = rows.index.map_or(keys, |index| &indexes[index as usize]);
        let by = match rows.index {
            Some(_) => format!("index {}", names(of_way)),
            None => format!("key {}", names(of_way)),
        };
        let equal = &of_way[..rows.equal as usize];
        let next = of_way.get(rows.equal as usize).map(|at| fields[*at as usize].name.as_str());
        let mut told = match (is_scan, rows.index) {
            (true, None) => "scan".to_owned(),
            (true, Some(_)) => format!("{by}; all of it"),
            _ => by,
        };
        if !equal.is_empty() && equal.len() < of_way.len() {
            told += &format!("; equal: {}", names(equal));
        }
        if let (Some(next), true) = (next, rows.from != End::Open || rows.upto != End::Open) {
            told += &format!("; a range of {next}");
        }
        match rows.order {
            Order::Forward => {}
            Order::Backward | Order::Turned(_) => told += ", backward",
            Order::ByKey => told += ", put in the order of the key",
        }
        told
    }

    /// What a condition demands before anything in it can refuse, where the value is the same all along the loop and
    /// cannot refuse.
    fn demands<'q>(&self, condition: &'q Expression, element: &str, statements: bool) -> Vec<Demand<'q>> {
        let mut found = Vec::new();
        for part in conjuncts(condition) {
            if self.can_refuse(part) {
                break;
            }
            let mut keep = |side: &'q Expression, is: Looked, value: &'q Expression| {
                let is_steady =
                    self.is_steady(value, statements) || is != Looked::Equal && is_around_now(value);
                if let (Some(field), true) = (field_of_element(side, element), is_steady) {
                    found.push(Demand { field, is, value, part });
                }
            };
            match &*part.kind {
                ExpressionKind::Binary(Binary::Equal, left, right) => {
                    keep(left, Looked::Equal, right);
                    keep(right, Looked::Equal, left);
                }
                ExpressionKind::Binary(operator, left, right) => {
                    let (end, is_less) = match operator {
                        Binary::Less => (End::Excluded, true),
                        Binary::LessEqual => (End::Included, true),
                        Binary::Greater => (End::Excluded, false),
                        Binary::GreaterEqual => (End::Included, false),
                        _ => continue,
                    };
                    let end = |is_upto: bool| if is_upto { Looked::Upto(end) } else { Looked::From(end) };
                    keep(left, end(is_less), right);
                    keep(right, end(!is_less), left);
                }
                ExpressionKind::In { value, list: from, upto: Some(upto) } => {
                    keep(value, Looked::From(End::Included), from);
                    keep(value, Looked::Upto(End::Included), upto);
                }
                _ => {}
            }
        }
        found
    }

    /// Whether an expression can refuse.
    pub(in crate::check) fn can_refuse(&self, demand: &Expression) -> bool {
        let mut can = false;
        walk::inner(demand, &mut |part| {
            can |= match &*part.kind {
                ExpressionKind::Binary(
                    Binary::Add | Binary::Subtract | Binary::Multiply | Binary::Divide | Binary::Remainder,
                    ..,
                ) => !is_around_now(part),
                ExpressionKind::Negate(value) => !is_number(value),
                ExpressionKind::Index(..) | ExpressionKind::Call { .. } => true,
                // The row that it stands for may be gone.
                ExpressionKind::Name(name) => {
                    matches!(self.find(name).map(|binding| &binding.kind), Some(BindingKind::Row { .. }))
                }
                _ => false,
            };
        });
        can
    }

    /// Whether a steady value may stand where one of a type is wanted. Of a case only the place tells its enum.
    fn may_be(&self, value: &Expression, wanted: &Type) -> bool {
        if let ExpressionKind::Case(case) = &*value.kind {
            let inner = match wanted {
                Type::Optional(inner) => inner,
                other => other,
            };
            return matches!(inner, Type::Enum(number) if self.checker.enumeration(*number).cases.contains(case));
        }
        self.type_of_steady(value).is_some_and(|found| self.checker.fits(&found, wanted))
    }

    fn type_of_steady(&self, value: &Expression) -> Option<Type> {
        Some(match &*value.kind {
            ExpressionKind::Int(_) => Type::Int,
            ExpressionKind::Real(_) => Type::Real,
            ExpressionKind::Duration(_) => Type::Duration,
            ExpressionKind::Bool(_) => Type::Bool,
            ExpressionKind::Text(_) => Type::Text,
            ExpressionKind::Me => Type::Node,
            ExpressionKind::Now => Type::Time,
            ExpressionKind::Binary(..) if is_around_now(value) => Type::Time,
            ExpressionKind::Name(name) => match self.find(name).map(|binding| &binding.kind) {
                Some(BindingKind::Value { kind, .. }) => kind.clone(),
                Some(BindingKind::Element { list, optional: maybe, .. }) => {
                    let row = Type::Record(self.checker.keyed(*list)?.0);
                    if *maybe { optional(&row) } else { row }
                }
                Some(_) => return None,
                None => {
                    let setting = self.checker.settings.get(name)?;
                    self.checker.module.settings[*setting as usize].kind.clone()
                }
            },
            ExpressionKind::Field(inner, field) => {
                let Type::Record(number) = self.type_of_steady(inner)? else { return None };
                let fields = &self.checker.record(number).fields;
                fields.iter().find(|one| one.name == field.text)?.kind.clone()
            }
            _ => return None,
        })
    }

    fn is_steady(&self, value: &Expression, statements: bool) -> bool {
        match &*value.kind {
            ExpressionKind::Int(_)
            | ExpressionKind::Real(_)
            | ExpressionKind::Duration(_)
            | ExpressionKind::Bool(_)
            | ExpressionKind::Me
            | ExpressionKind::Now
            | ExpressionKind::Case(_) => true,
            ExpressionKind::Text(pieces) => {
                pieces.iter().all(|piece| matches!(piece, crate::syntax::tree::Piece::Literal(_)))
            }
            ExpressionKind::Name(name) => match self.find(name).map(|binding| &binding.kind) {
                Some(BindingKind::Value { fixed, .. }) => *fixed || !statements,
                Some(BindingKind::Element { .. }) => true,
                Some(_) => false,
                None => self.checker.settings.contains_key(name),
            },
            ExpressionKind::Field(inner, _) => self.is_steady(inner, statements),
            _ => false,
        }
    }
}

fn is_number(value: &Expression) -> bool {
    matches!(&*value.kind, ExpressionKind::Int(_) | ExpressionKind::Real(_) | ExpressionKind::Duration(_))
}

/// `now`, some time before or after.
fn is_around_now(end: &Expression) -> bool {
    let ExpressionKind::Binary(Binary::Add | Binary::Subtract, left, right) = &*end.kind else {
        return false;
    };
    matches!((&*left.kind, &*right.kind), (ExpressionKind::Now, ExpressionKind::Duration(_)))
}

pub(super) fn field_of_element<'e>(side: &'e Expression, element: &str) -> Option<&'e str> {
    let ExpressionKind::Field(inner, field) = &*side.kind else { return None };
    match &*inner.kind {
        ExpressionKind::Name(name) if name == element => Some(&field.text),
        _ => None,
    }
}
