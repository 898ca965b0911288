//! Queries: loops over lists with conditions, order and a most, and which index each uses.

mod changes;
mod distinct;
mod indexes;

use super::body::{BindingKind, Body, Effect, Held, Operand, Origin};
use crate::code::{Arithmetic, Operation, Over, Register, Target};
use crate::diagnostics::{Code, Diagnostic};
use crate::module::Type;
use crate::syntax::tree::{Block, Expression, Group, Query, Word};
use crate::value::Value;
pub(super) use distinct::Grouping;
pub(super) use indexes::Wanted;
use indexes::conjuncts;

/// How many keys an `order by` may have: one bit each says which are turned round.
const ORDER_KEYS_MAX: usize = 64;

/// What is done with each chosen element: given where the loop goes on and the jumps that leave it.
pub(super) type Each<'e, 'c, 'a> = &'e mut dyn FnMut(&mut Body<'c, 'a>, Target, &mut Vec<usize>);

/// What runs for each element of a query.
#[derive(Clone, Copy)]
pub(super) enum Runs<'b> {
    /// An expression: nothing changes under way.
    Value(Option<&'b Expression>),
    /// An expression that comes to the same in whatever order its elements come.
    Folded(Option<&'b Expression>),
    /// The statements of a `for`.
    Block(&'b Block),
    /// `remove`
    Remove,
}

impl Runs<'_> {
    fn are_statements(self) -> bool {
        matches!(self, Runs::Block(_) | Runs::Remove)
    }
}

/// How the loops of one query run.
#[derive(Clone, Copy)]
struct Mode<'b> {
    runs: Runs<'b>,
    wanted: Wanted,
}

/// Counts what a `take` takes, in registers.
#[derive(Clone, Copy)]
struct Counted {
    limit: Register,
    counter: Register,
    one: Register,
}

/// What one loop of a query runs over.
enum Elements<'q> {
    List(&'q Expression),
    Range(&'q Expression, &'q Expression),
    /// Groups that are made already, and their type.
    Groups(Register, Type),
    /// Groups that an index has, and the type of their keys.
    Grouped(Grouping, Type),
}

struct Source<'q> {
    name: &'q Word,
    over: Elements<'q>,
    condition: Option<&'q Expression>,
}

/// The loops of a query, after its groups if it has some.
struct Loops<'q> {
    sources: Vec<Source<'q>>,
    order: Vec<(&'q Expression, bool)>,
    /// Whether it ends when it has found some.
    ends: bool,
}

impl<'q> Loops<'q> {
    fn of(query: &'q Query) -> Loops<'q> {
        let sources = query.sources.iter().map(|source| Source {
            name: &source.name,
            over: match &source.upto {
                Some(upto) => Elements::Range(&source.list, upto),
                None => Elements::List(&source.list),
            },
            condition: source.condition.as_ref(),
        });
        let order = query.order.iter().map(|(key, descending)| (key, *descending)).collect();
        Loops { sources: sources.collect(), order, ends: query.take.is_some() }
    }
}

/// What one loop runs over.
struct Opened<'q> {
    over: Over,
    element: Type,
    /// The list that elements are rows of, and whether the loop's statements may change it.
    origin: Option<(Origin, bool)>,
    /// What is left to test of the condition.
    conditions: Vec<&'q Expression>,
    /// Whether it runs over a whole list of the state.
    is_scan: bool,
}

impl<'c, 'a> Body<'c, 'a> {
    /// Lowers the loops of a query.
    pub(super) fn query(&mut self, query: &Query, runs: Runs<'_>, each: Each<'_, 'c, 'a>) {
        let depth = self.scope.len();
        let limit = query.take.as_ref().map(|take| self.need(take, &Type::Int));
        let loops = match &query.group {
            None => Loops::of(query),
            Some(group) => {
                let found = match runs {
                    Runs::Value(Some(value)) | Runs::Folded(Some(value)) => {
                        self.grouping(query, group, value)
                    }
                    _ => None,
                };
                let over = match found {
                    Some((grouping, kind)) => Elements::Grouped(grouping, kind),
                    None => {
                        let (groups, kind) = self.groups(query, group);
                        Elements::Groups(groups, kind)
                    }
                };
                let source = Source { name: &group.name, over, condition: group.condition.as_ref() };
                Loops { sources: vec![source], ..Loops::of(query) }
            }
        };
        let in_order = !runs.are_statements() && self.comes_in_order(&loops);
        // Where statements change what the query reads, all is chosen before the first of them runs.
        if (!loops.order.is_empty() && !in_order) || (limit.is_some() && runs.are_statements()) {
            self.gathered(&loops, runs, limit, each);
        } else {
            let wanted = match runs {
                _ if in_order => Wanted::Sorted,
                Runs::Folded(_) if limit.is_none() => Wanted::Any,
                _ => Wanted::List,
            };
            let mut leave = Vec::new();
            let counted = limit.map(|limit| Counted {
                limit,
                counter: self.constant(Value::Word(0)),
                one: self.constant(Value::Word(1)),
            });
            self.sources(&loops, 0, Mode { runs, wanted }, 0, &mut leave, &mut |body, again, leave| {
                if let Some(counted) = counted {
                    body.count_to(counted, leave);
                }
                each(body, again, leave);
            });
            leave.into_iter().for_each(|jump| self.aim(jump));
        }
        self.leave_scope(depth);
    }

    /// Lowers a loop that finds the least or the greatest value first, if an index does so: `value` is what is looked
    /// for. Otherwise nothing is lowered.
    pub(super) fn extreme_first(
        &mut self,
        query: &Query,
        value: &Expression,
        greatest: bool,
        each: Each<'_, 'c, 'a>,
    ) -> bool {
        if query.group.is_some() || query.take.is_some() || query.sources.len() != 1 {
            return false;
        }
        let loops = Loops { order: vec![(value, greatest)], ends: true, ..Loops::of(query) };
        if !query.order.is_empty() || !self.comes_in_order(&loops) {
            return false;
        }
        let depth = self.scope.len();
        let mut leave = Vec::new();
        let mode = Mode { runs: Runs::Folded(None), wanted: Wanted::Sorted };
        self.sources(&loops, 0, mode, 0, &mut leave, each);
        leave.into_iter().for_each(|jump| self.aim(jump));
        self.leave_scope(depth);
        true
    }

    /// Lowers the loops of a grouped query up to its groups: a list of records of a key and its rows, in key order.
    /// With several lists a row is a record of their elements.
    fn groups(&mut self, query: &Query, group: &Group) -> (Register, Type) {
        let loops = Loops { order: Vec::new(), ends: false, ..Loops::of(query) };
        let list = self.register();
        self.emit(Operation::MakeList { out: list });
        let (mut key_kind, mut row_kind) = (Type::Broken, Type::Broken);
        let mode = Mode { runs: Runs::Value(None), wanted: Wanted::List };
        self.sources(&loops, 0, mode, 0, &mut Vec::new(), &mut |body, _, _| {
            let first = body.row_of_registers(2);
            let key = body.lower(&group.key, None);
            let inner = match &key.kind {
                Type::Optional(inner) => (**inner).clone(),
                other => other.clone(),
            };
            if !Self::is_ordered(&inner) {
                let name = body.checker.name_of(&key.kind);
                let message = format!("{name} has no order to group by");
                body.report(Diagnostic::new(Code::KeyType, group.key.span, message));
            }
            body.copy(key.register, first);
            key_kind = key.kind;
            row_kind = body.grouped_row(&loops, first.saturating_add(1), query);
            body.emit(Operation::PushRecord { list, first, count: 2 });
        });
        self.emit(Operation::Group { list });
        if key_kind == Type::Broken || row_kind == Type::Broken {
            return (list, Type::Broken);
        }
        let rows = self.checker.list_type(row_kind, query.span);
        let fields = vec![("key".to_owned(), key_kind), ("rows".to_owned(), rows)];
        (list, self.checker.unnamed_record(fields, query.span))
    }

    /// Puts what a group's rows are made of into a register.
    fn grouped_row(&mut self, loops: &Loops<'_>, out: Register, query: &Query) -> Type {
        let mut elements: Vec<(String, Operand)> = loops
            .sources
            .iter()
            .map(|source| {
                let element = self.element(source.name);
                (source.name.text.clone(), self.whole(element))
            })
            .collect();
        if let [(_, element)] = elements.as_slice() {
            self.copy(element.register, out);
            return element.kind.clone();
        }
        let first = self.row_of_registers(elements.len());
        for (at, (_, element)) in elements.iter().enumerate() {
            self.copy(element.register, first.saturating_add(at as Register));
        }
        let count = elements.len() as u16;
        self.emit(Operation::MakeRecord { out, first, count });
        let fields = elements.drain(..).map(|(name, element)| (name, element.kind));
        let fields: Vec<(String, Type)> = fields.collect();
        if fields.iter().any(|(_, kind)| *kind == Type::Broken) {
            return Type::Broken;
        }
        self.checker.unnamed_record(fields, query.span)
    }

    /// What a loop's name stands for.
    fn element(&mut self, name: &Word) -> Operand {
        match self.find(&name.text).map(|binding| binding.kind.clone()) {
            Some(BindingKind::Value { register, kind, origin, .. }) => {
                let origin = origin.map(|list| Origin { list, held: Held::Row });
                Operand { register, kind, origin }
            }
            Some(BindingKind::Element { list, key, optional, .. }) => {
                self.row_at(list, key, optional, Held::Key)
            }
            Some(BindingKind::Group { key, kind, grouping }) => {
                let origin = Some(Origin { list: grouping.list, held: Held::Group(grouping) });
                Operand { register: key, kind, origin }
            }
            _ => self.broken(),
        }
    }

    /// Leaves when as many were taken as wanted.
    fn count_to(&mut self, Counted { limit, counter, one }: Counted, leave: &mut Vec<usize>) {
        leave.push(self.emit(Operation::JumpLess { left: counter, right: limit, wanted: false, to: 0 }));
        let operator = Arithmetic::Add;
        self.emit(Operation::Arithmetic { operator, out: counter, left: counter, right: one });
    }

    fn sources(
        &mut self,
        loops: &Loops<'_>,
        at: usize,
        mode: Mode<'_>,
        again: Target,
        leave: &mut Vec<usize>,
        each: Each<'_, 'c, 'a>,
    ) {
        let Some(source) = loops.sources.get(at) else { return each(self, again, leave) };
        let depth = self.scope.len();
        let opened = self.over(loops, at, mode);
        let origin = opened.origin.map(|(origin, _)| origin);
        let is_live = opened.origin.is_some_and(|(_, live)| live);
        let (again, next) = match self.only_row(&opened.over) {
            // The loop around it goes on behind the row, and where there is none.
            Some((list, key)) if at > 0 => {
                let jump = self.emit(Operation::JumpHasRow { list, key, wanted: false, to: 0 });
                self.aim_back(jump, again);
                let element = Operand { register: key, kind: opened.element, origin };
                self.bind_element(source.name, element, is_live, again);
                (again, None)
            }
            _ => {
                let cursor = self.cursor();
                self.emit(Operation::Open { cursor, over: opened.over });
                let again = self.loop_start();
                let out = self.register();
                let next = self.emit(Operation::Next { cursor, out, done: 0 });
                let origin = origin.map(|origin| match origin.held {
                    Held::Key => Origin { held: Held::Here(cursor), ..origin },
                    Held::Group(grouping) => Origin { held: Held::Group(grouping.inside(cursor)), ..origin },
                    _ => origin,
                });
                let element = Operand { register: out, kind: opened.element, origin };
                self.bind_element(source.name, element, is_live, again);
                (again, Some(next))
            }
        };
        for condition in opened.conditions {
            let begins = self.here();
            let condition = self.condition(condition);
            let jump = self.jump_when(condition, false, begins);
            self.aim_back(jump, again);
            if let Some(next) = next {
                self.join_next(next);
            }
        }
        self.scans += u16::from(opened.is_scan);
        self.sources(loops, at + 1, mode, again, leave, each);
        self.scans -= u16::from(opened.is_scan);
        if let Some(next) = next {
            self.jump_to(again);
            self.aim(next);
        }
        self.leave_scope(depth);
    }

    /// Names an element of a loop that goes on at a place.
    fn bind_element(&mut self, name: &Word, element: Operand, live: bool, again: Target) {
        let Operand { register: key, kind, origin } = element;
        let binding = match origin {
            Some(Origin { held: Held::Group(grouping), .. }) => BindingKind::Group { key, kind, grouping },
            Some(Origin { list, held: Held::Key | Held::Here(_) }) if self.effect == Effect::Tests => {
                // A test acts on nodes between its statements: what it has named stays as it was.
                let register = self.register();
                self.emit(Operation::Row { out: register, list, key });
                self.emit(Operation::JumpIfNone { value: register, to: again });
                BindingKind::Value { register, kind, fixed: true, origin: Some(list) }
            }
            Some(Origin { list, held: Held::Key | Held::Here(_) }) if live => {
                BindingKind::Row { list, key, optional: false }
            }
            Some(Origin { list, held: Held::Key }) => {
                BindingKind::Element { list, key, optional: false, cursor: None }
            }
            Some(Origin { list, held: Held::Here(cursor) }) => {
                BindingKind::Element { list, key, optional: false, cursor: Some(cursor) }
            }
            origin => {
                let origin = origin.map(|origin| origin.list);
                BindingKind::Value { register: key, kind, fixed: true, origin }
            }
        };
        self.bind(name, binding);
    }

    /// What a source runs over.
    fn over<'q>(&mut self, loops: &Loops<'q>, at: usize, mode: Mode<'_>) -> Opened<'q> {
        let source = &loops.sources[at];
        let conditions = source.condition.map(conjuncts).unwrap_or_default();
        let values = |over, element| Opened { over, element, origin: None, conditions, is_scan: false };
        let expression = match &source.over {
            Elements::Groups(list, kind) => return values(Over::List(*list), kind.clone()),
            Elements::Grouped(grouping, kind) => {
                let origin = Origin { list: grouping.list, held: Held::Group(*grouping) };
                let over = self.group_keys(*grouping);
                return Opened { origin: Some((origin, false)), ..values(over, kind.clone()) };
            }
            Elements::Range(from, upto) => {
                let (from, upto) = (self.need(from, &Type::Int), self.need(upto, &Type::Int));
                return values(Over::Range(from, upto), Type::Int);
            }
            Elements::List(list) => *list,
        };
        if let Some(list) = self.state_list(expression)
            && let Some((record, ..)) = self.checker.keyed(list)
        {
            return self.rows(list, record, loops, at, mode);
        }
        if let Some(opened) = self.group_source(loops, at, mode.wanted) {
            return opened;
        }
        let found = self.lower(expression, None);
        let element = match &found.kind {
            Type::List(element) => (**element).clone(),
            Type::Broken => Type::Broken,
            other => {
                let name = self.checker.name_of(other);
                self.report(
                    Diagnostic::new(Code::NotAList, expression.span, format!("{name} is no list"))
                        .help("a loop runs over a list or a range: `for i in 1 .. 10`"),
                );
                Type::Broken
            }
        };
        values(Over::List(found.register), element)
    }

    // Order.

    fn gathered(
        &mut self,
        query: &Loops<'_>,
        runs: Runs<'_>,
        limit: Option<Register>,
        each: Each<'_, 'c, 'a>,
    ) {
        if let Some((key, _)) = query.order.get(ORDER_KEYS_MAX) {
            let message = format!("more than {ORDER_KEYS_MAX} keys to order by");
            self.report(Diagnostic::new(Code::TooLarge, key.span, message));
            return;
        }
        let list = self.register();
        self.emit(Operation::MakeList { out: list });
        let mut elements: Vec<Operand> = Vec::new();
        let mut none = Vec::new();
        let mode = Mode { runs: Runs::Value(None), wanted: Wanted::List };
        self.sources(query, 0, mode, 0, &mut none, &mut |body, _, _| {
            elements = body.gather(query, list);
        });
        let descending = query
            .order
            .iter()
            .enumerate()
            .fold(0u64, |mask, (at, (_, turned))| mask | (u64::from(*turned) << at));
        if !query.order.is_empty() {
            self.emit(Operation::Sort { list, keys: query.order.len() as u16, descending });
        }
        if let Some(length) = limit {
            self.emit(Operation::Truncate { list, length });
        }
        self.chosen(query, list, &elements, runs, each);
    }

    /// Adds the keys and elements of this moment to a list.
    fn gather(&mut self, query: &Loops<'_>, list: Register) -> Vec<Operand> {
        let first = self.row_of_registers(query.order.len() + query.sources.len());
        let mut at = first;
        for (key, _) in &query.order {
            let found = self.lower(key, None);
            let inner = match &found.kind {
                Type::Optional(inner) => (**inner).clone(),
                other => other.clone(),
            };
            if !Self::is_ordered(&inner) {
                let name = self.checker.name_of(&found.kind);
                self.report(Diagnostic::new(Code::KeyType, key.span, format!("{name} has no order")));
            }
            self.copy(found.register, at);
            at = at.saturating_add(1);
        }
        let mut elements = Vec::new();
        for source in &query.sources {
            let operand = self.element(source.name);
            self.copy(operand.register, at);
            at = at.saturating_add(1);
            elements.push(operand);
        }
        let count = (query.order.len() + query.sources.len()) as u16;
        self.emit(Operation::PushRecord { list, first, count });
        elements
    }

    /// Runs over what was gathered.
    fn chosen(
        &mut self,
        query: &Loops<'_>,
        list: Register,
        elements: &[Operand],
        runs: Runs<'_>,
        each: Each<'_, 'c, 'a>,
    ) {
        let depth = self.scope.len();
        let cursor = self.cursor();
        self.emit(Operation::Open { cursor, over: Over::List(list) });
        let again = self.loop_start();
        let record = self.register();
        let next = self.emit(Operation::Next { cursor, out: record, done: 0 });
        for (at, (source, element)) in query.sources.iter().zip(elements).enumerate() {
            let field = (query.order.len() + at) as u16;
            let register = self.register();
            self.emit(Operation::Field { out: register, record, field });
            let mut element = Operand { register, ..element.clone() };
            if let Some(Origin { held: Held::Group(grouping), .. }) = &mut element.origin {
                *grouping = grouping.outside();
            }
            let changed = element.origin.filter(|origin| self.may_change_rows(runs, origin.list));
            // Rows that were removed since are skipped.
            if let Some(Origin { list, held: Held::Key }) = changed {
                let there = self.register();
                self.emit(Operation::HasRow { out: there, list, key: register });
                self.emit(Operation::JumpUnless { condition: there, to: again });
            }
            self.bind_element(source.name, element, changed.is_some(), again);
        }
        let mut leave = Vec::new();
        each(self, again, &mut leave);
        self.jump_to(again);
        self.aim(next);
        leave.into_iter().for_each(|jump| self.aim(jump));
        self.leave_scope(depth);
    }

    /// `[body for …]`
    pub(super) fn comprehension(
        &mut self,
        value: &Expression,
        query: &Query,
        wanted: Option<&Type>,
    ) -> Operand {
        let wanted = match wanted {
            Some(Type::Optional(inner)) => Some(&**inner),
            other => other,
        };
        let element = match wanted {
            Some(Type::List(element)) => Some((**element).clone()),
            _ => None,
        };
        let list = self.register();
        self.emit(Operation::MakeList { out: list });
        let mut kind = Type::Broken;
        self.query(query, Runs::Value(Some(value)), &mut |body, _, _| {
            let mark = body.mark();
            let found = body.lower(value, element.as_ref());
            kind = match &element {
                Some(element) if body.checker.fits(&found.kind, element) => element.clone(),
                _ => body.told(found.kind, value.span),
            };
            body.push_made(list, found.register, mark);
        });
        let kind = self.checker.list_type(kind, value.span);
        Operand { register: list, kind, origin: None }
    }

    /// A loop over a query's values or, without a query, over a list's elements.
    pub(super) fn over_values(
        &mut self,
        argument: &Expression,
        query: Option<&Query>,
        runs: Runs<'_>,
        each: &mut dyn FnMut(&mut Body<'c, 'a>, Operand, &mut Vec<usize>),
    ) {
        if let Some(query) = query {
            return self.query(query, runs, &mut |body, _, leave| {
                let found = body.lower_row(argument, None);
                each(body, found, leave);
            });
        }
        let (over, element, origin) = match self.state_list(argument) {
            Some(list) if self.checker.keyed(list).is_some() => {
                let record =
                    self.checker.keyed(list).map_or(Type::Broken, |(record, ..)| Type::Record(record));
                (Over::Rows(indexes::all_rows(list)), record, Some(Origin { list, held: Held::Key }))
            }
            _ => {
                let list = self.lower(argument, None);
                let element = match &list.kind {
                    Type::List(element) => (**element).clone(),
                    Type::Broken => Type::Broken,
                    other => {
                        let name = self.checker.name_of(other);
                        self.report(
                            Diagnostic::new(Code::NotAList, argument.span, format!("{name} is no list"))
                                .help("write a query: `x for x in list where …`"),
                        );
                        Type::Broken
                    }
                };
                (Over::List(list.register), element, None)
            }
        };
        let cursor = self.cursor();
        self.emit(Operation::Open { cursor, over });
        let again = self.loop_start();
        let out = self.register();
        let next = self.emit(Operation::Next { cursor, out, done: 0 });
        let mut leave = Vec::new();
        each(self, Operand { register: out, kind: element, origin }, &mut leave);
        self.jump_to(again);
        self.aim(next);
        leave.into_iter().for_each(|jump| self.aim(jump));
    }
}
