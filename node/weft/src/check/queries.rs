//! Queries: loops over lists with conditions, order and a most, and which index each uses.

mod indexes;

use super::body::{BindingKind, Body, Operand};
use crate::code::{Operation, Over, Register, Target};
use crate::diagnostics::{Code, Diagnostic};
use crate::module::Type;
use crate::syntax::tree::{Block, Expression, Group, Query, Word};
use crate::value::Value;

/// How many keys an `order by` may have: one bit each says which are turned round.
const ORDER_KEYS_MAX: usize = 64;

/// What is done with each chosen element: given where the loop goes on and the jumps that leave it.
pub(super) type Each<'e, 'c, 'a> = &'e mut dyn FnMut(&mut Body<'c, 'a>, Target, &mut Vec<usize>);

/// How the loops of one query bind their names.
#[derive(Clone, Copy)]
struct Mode<'b> {
    /// The statements that run for each element.
    statements: Option<&'b Block>,
    /// Whether names stand for rows that the statements may change under way.
    live: bool,
    /// Whether rows are taken from the last to the first.
    backward: bool,
}

impl Mode<'_> {
    /// Nothing changes under way.
    fn reading(backward: bool) -> Mode<'static> {
        Mode { statements: None, live: false, backward }
    }
}

/// What one loop of a query runs over.
enum Elements<'q> {
    List(&'q Expression),
    Range(&'q Expression, &'q Expression),
    /// Groups that are made already, and their type.
    Groups(Register, Type),
}

struct Source<'q> {
    name: &'q Word,
    over: Elements<'q>,
    condition: Option<&'q Expression>,
}

/// The loops of a query, after its groups if it has some.
struct Loops<'q> {
    sources: Vec<Source<'q>>,
    order: &'q [(Expression, bool)],
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
        Loops { sources: sources.collect(), order: &query.order }
    }
}

impl<'c, 'a> Body<'c, 'a> {
    /// Lowers the loops of a query; `statements` is the body of a `for` or `remove`, none in an expression.
    pub(super) fn query(&mut self, query: &Query, statements: Option<&Block>, each: Each<'_, 'c, 'a>) {
        let depth = self.scope.len();
        let limit = query.take.as_ref().map(|take| self.need(take, &Type::Int));
        let loops = match &query.group {
            None => Loops::of(query),
            Some(group) => {
                let (groups, kind) = self.groups(query, group);
                let source = Source {
                    name: &group.name,
                    over: Elements::Groups(groups, kind),
                    condition: group.condition.as_ref(),
                };
                Loops { sources: vec![source], order: &query.order }
            }
        };
        let in_order = if statements.is_none() { self.found_in_order(&loops) } else { None };
        // Where statements change what the query reads, all is chosen before the first of them runs.
        if (!query.order.is_empty() && in_order.is_none()) || (limit.is_some() && statements.is_some()) {
            self.gathered(&loops, statements, limit, each);
        } else {
            let live = statements.is_some() && self.is_live();
            let mut leave = Vec::new();
            let counter = limit.map(|_| self.constant(Value::Word(0)));
            let mode = Mode { statements, live, backward: in_order == Some(true) };
            self.sources(&loops, 0, mode, 0, &mut leave, &mut |body, again, leave| {
                if let (Some(limit), Some(counter)) = (limit, counter) {
                    body.count_to(counter, limit, leave);
                }
                each(body, again, leave);
            });
            leave.into_iter().for_each(|jump| self.aim(jump));
        }
        self.leave_scope(depth);
    }

    /// Lowers the loops of a grouped query up to its groups: a list of records of a key and its rows, in key order.
    /// With several lists a row is a record of their elements.
    fn groups(&mut self, query: &Query, group: &Group) -> (Register, Type) {
        let loops = Loops { order: &[], ..Loops::of(query) };
        let list = self.register();
        self.emit(Operation::MakeList { out: list });
        let (mut key_kind, mut row_kind) = (Type::Broken, Type::Broken);
        let mode = Mode::reading(false);
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
            let record = body.register();
            body.emit(Operation::MakeRecord { out: record, first, count: 2 });
            body.emit(Operation::Push { list, value: record });
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
            .map(|source| (source.name.text.clone(), self.element(source.name)))
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
            Some(BindingKind::Value { register, kind, origin, .. }) => Operand { register, kind, origin },
            _ => self.broken(),
        }
    }

    /// Leaves when as many were taken as wanted.
    fn count_to(&mut self, counter: Register, limit: Register, leave: &mut Vec<usize>) {
        let mark = self.mark();
        let more = self.register();
        let comparison = Self::comparison(&Type::Int);
        self.emit(Operation::Less { comparison, out: more, left: counter, right: limit });
        leave.push(self.jump_unless(more));
        let one = self.constant(Value::Word(1));
        let operator = crate::code::Arithmetic::Add;
        self.emit(Operation::Arithmetic { operator, out: counter, left: counter, right: one });
        self.release(mark);
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
        let (over, element, origin) = self.over(source, mode);
        let cursor = self.cursor();
        self.emit(Operation::Open { cursor, over });
        let again = self.here();
        let out = self.register();
        let next = self.emit(Operation::Next { cursor, out, done: 0 });
        let operand = Operand { register: out, kind: element, origin };
        self.bind_element(source.name, &operand, mode.live);
        if let Some(condition) = source.condition {
            let condition = self.condition(condition);
            self.emit(Operation::JumpUnless { condition, to: again });
        }
        self.sources(loops, at + 1, mode, again, leave, each);
        self.jump_to(again);
        self.aim(next);
        self.leave_scope(depth);
    }

    fn bind_element(&mut self, name: &Word, operand: &Operand, live: bool) {
        if live {
            let slot = self.register();
            self.bind_operand(name, operand, true, slot);
        } else {
            let kind = operand.kind.clone();
            let (register, origin) = (operand.register, operand.origin);
            self.bind(name, BindingKind::Value { register, kind, fixed: true, origin });
        }
    }

    /// What a source runs over, its element's type and the list that elements are rows of.
    fn over(&mut self, source: &Source<'_>, mode: Mode<'_>) -> (Over, Type, Option<u32>) {
        let expression = match &source.over {
            Elements::Groups(list, kind) => return (Over::List(*list), kind.clone(), None),
            Elements::Range(from, upto) => {
                let (from, upto) = (self.need(from, &Type::Int), self.need(upto, &Type::Int));
                return (Over::Range(from, upto), Type::Int, None);
            }
            Elements::List(list) => *list,
        };
        if let Some(list) = self.state_list(expression)
            && let Some((record, ..)) = self.checker.keyed(list)
        {
            let rows = self.rows(list, source, mode);
            return (Over::Rows(rows), Type::Record(record), Some(list));
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
        (Over::List(found.register), element, None)
    }

    // Order.

    fn gathered(
        &mut self,
        query: &Loops<'_>,
        statements: Option<&Block>,
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
        let mode = Mode::reading(false);
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
        self.chosen(query, list, &elements, statements.is_some() && self.is_live(), each);
    }

    /// Adds the keys and elements of this moment to a list.
    fn gather(&mut self, query: &Loops<'_>, list: Register) -> Vec<Operand> {
        let first = self.row_of_registers(query.order.len() + query.sources.len());
        let mut at = first;
        for (key, _) in query.order {
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
        let record = self.register();
        self.emit(Operation::MakeRecord { out: record, first, count });
        self.emit(Operation::Push { list, value: record });
        elements
    }

    /// Runs over what was gathered.
    fn chosen(
        &mut self,
        query: &Loops<'_>,
        list: Register,
        elements: &[Operand],
        live: bool,
        each: Each<'_, 'c, 'a>,
    ) {
        let depth = self.scope.len();
        let cursor = self.cursor();
        self.emit(Operation::Open { cursor, over: Over::List(list) });
        let again = self.here();
        let record = self.register();
        let next = self.emit(Operation::Next { cursor, out: record, done: 0 });
        for (at, (source, element)) in query.sources.iter().zip(elements).enumerate() {
            let field = (query.order.len() + at) as u16;
            let register = self.register();
            self.emit(Operation::Field { out: register, record, field });
            let operand = Operand { register, ..element.clone() };
            self.bind_element(source.name, &operand, live);
            // Rows that were removed since are skipped.
            if let Some(Binding { list, key }) = self.live_row(&source.name.text) {
                let there = self.register();
                self.emit(Operation::HasRow { out: there, list, key });
                self.emit(Operation::JumpUnless { condition: there, to: again });
            }
        }
        let mut leave = Vec::new();
        each(self, again, &mut leave);
        self.jump_to(again);
        self.aim(next);
        leave.into_iter().for_each(|jump| self.aim(jump));
        self.leave_scope(depth);
    }

    fn live_row(&self, name: &str) -> Option<Binding> {
        match self.find(name).map(|binding| &binding.kind) {
            Some(BindingKind::Row { list, key, .. }) => Some(Binding { list: *list, key: *key }),
            _ => None,
        }
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
        self.query(query, None, &mut |body, _, _| {
            let found = body.lower(value, element.as_ref());
            kind = match &element {
                Some(element) if body.checker.fits(&found.kind, element) => element.clone(),
                _ => body.told(found.kind, value.span),
            };
            body.emit(Operation::Push { list, value: found.register });
        });
        let kind = self.checker.list_type(kind, value.span);
        Operand { register: list, kind, origin: None }
    }

    /// A loop over a query's values or, without a query, over a list's elements.
    pub(super) fn over_values(
        &mut self,
        argument: &Expression,
        query: Option<&Query>,
        each: &mut dyn FnMut(&mut Body<'c, 'a>, Operand, &mut Vec<usize>),
    ) {
        if let Some(query) = query {
            return self.query(query, None, &mut |body, _, leave| {
                let found = body.lower(argument, None);
                each(body, found, leave);
            });
        }
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
        let origin = self.state_list(argument);
        let cursor = self.cursor();
        self.emit(Operation::Open { cursor, over: Over::List(list.register) });
        let again = self.here();
        let out = self.register();
        let next = self.emit(Operation::Next { cursor, out, done: 0 });
        let mut leave = Vec::new();
        each(self, Operand { register: out, kind: element, origin }, &mut leave);
        self.jump_to(again);
        self.aim(next);
        leave.into_iter().for_each(|jump| self.aim(jump));
    }
}

/// A name that stands for a row.
struct Binding {
    list: u32,
    key: Register,
}
