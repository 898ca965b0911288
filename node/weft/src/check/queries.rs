//! Queries: loops over lists with conditions, order and a most, and which index each uses.

use super::body::{BindingKind, Body, Operand};
use crate::code::{Operation, Over, Register, Target};
use crate::diagnostics::{Code, Diagnostic};
use crate::module::Type;
use crate::syntax::tree::{Binary, Block, Expression, ExpressionKind, Group, Query, StatementKind, Word};
use crate::syntax::walk;
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

/// By what rows are found, and the values that it is to have.
enum Choice<'q> {
    Index(u16, Vec<&'q Expression>),
    Key(Vec<&'q Expression>),
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
            let condition = self.need(condition, &Type::Bool);
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
            return (self.rows(list, source, mode), Type::Record(record), Some(list));
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

    // Indexes.

    /// How the rows that a condition fixes are found: by a whole index, or by the key or a prefix of it.
    fn way_to_rows<'q>(&self, list: u32, source: &Source<'q>, mode: Mode<'_>) -> Option<Choice<'q>> {
        let (record, keys, indexes) = self.checker.keyed(list)?;
        let mut equal = Vec::new();
        if let Some(condition) = source.condition {
            self.equalities(condition, &source.name.text, mode.live, &mut equal);
        }
        let fields = &self.checker.record(record).fields;
        let find = |field: &u16| {
            let name = &fields[*field as usize].name;
            equal.iter().find(|(equal, _)| equal == name).map(|(_, value)| *value)
        };
        let prefix: Vec<&Expression> = keys.iter().map_while(find).collect();
        let mut best: Option<(u16, Vec<&Expression>)> = None;
        for (at, index) in indexes.iter().enumerate() {
            let values: Vec<&Expression> = index.iter().map_while(find).collect();
            let names: Vec<&str> = index.iter().map(|field| fields[*field as usize].name.as_str()).collect();
            // An index whose fields the statements change would miss rows that come to fit under way.
            let moves = mode.live && mode.statements.is_some_and(|block| changes_fields(block, &names));
            if values.len() == index.len()
                && !moves
                && best.as_ref().is_none_or(|(_, one)| one.len() < values.len())
            {
                best = Some((at as u16, values));
            }
        }
        let all_keys = prefix.len() == keys.len();
        Some(match best {
            Some((index, values)) if !all_keys && values.len() >= prefix.len() => {
                Choice::Index(index, values)
            }
            _ => Choice::Key(prefix),
        })
    }

    /// Whether the rows of a query's only list come in the order that is asked for as they are found, and then whether
    /// backward. Only keys that no two rows share are turned round: rows that are alike keep their order.
    fn found_in_order(&self, loops: &Loops<'_>) -> Option<bool> {
        let ([source], [(_, backward), ..]) = (loops.sources.as_slice(), loops.order) else { return None };
        let Elements::List(expression) = source.over else { return None };
        let list = self.state_list(expression)?;
        let (record, keys, _) = self.checker.keyed(list)?;
        let found = match self.way_to_rows(list, source, Mode::reading(false))? {
            Choice::Index(..) => keys,
            Choice::Key(prefix) => &keys[prefix.len()..],
        };
        let fields = &self.checker.record(record).fields;
        let is_next = |((key, descending), field): (&(Expression, bool), &u16)| {
            descending == backward
                && field_of_element(key, &source.name.text) == Some(fields[*field as usize].name.as_str())
        };
        let fits = loops.order.len() <= found.len() && loops.order.iter().zip(found).all(is_next);
        (fits && (!backward || loops.order.len() == found.len())).then_some(*backward)
    }

    fn rows(&mut self, list: u32, source: &Source<'_>, mode: Mode<'_>) -> Over {
        let backward = mode.backward;
        let (Some((record, keys, indexes)), Some(choice)) =
            (self.checker.keyed(list), self.way_to_rows(list, source, mode))
        else {
            return Over::Rows { list, prefix: None, from: None, upto: None, backward };
        };
        let (keys, indexes) = (keys.to_vec(), indexes.to_vec());
        let prefix = match choice {
            Choice::Index(index, values) => {
                let prefix = self.encoded(list, Some(index), &indexes[index as usize], &values, record);
                return Over::Index { list, index, prefix, backward };
            }
            Choice::Key(prefix) => prefix,
        };
        let mut range = Range::default();
        if let (Some(condition), Some(field)) = (source.condition, keys.get(prefix.len())) {
            let field = self.checker.record(record).fields[*field as usize].name.clone();
            self.range(condition, (&source.name.text, &field), mode.live, &mut range);
        }
        let mut end = |value: Option<&Expression>| {
            let mut values = prefix.clone();
            values.push(value?);
            Some(self.encoded(list, None, &keys, &values, record))
        };
        let (from, upto) = (end(range.from), end(range.upto));
        let prefix = match prefix.is_empty() {
            true => None,
            false => Some(self.encoded(list, None, &keys, &prefix, record)),
        };
        Over::Rows { list, prefix, from, upto, backward }
    }

    fn encoded(
        &mut self,
        list: u32,
        index: Option<u16>,
        fields: &[u16],
        values: &[&Expression],
        record: u32,
    ) -> Register {
        let first = self.row_of_registers(values.len());
        for (at, (value, field)) in values.iter().zip(fields).enumerate() {
            let kind = self.checker.record(record).fields[*field as usize].kind.clone();
            let register = self.need(value, &kind);
            self.copy(register, first.saturating_add(at as Register));
        }
        let out = self.register();
        self.emit(Operation::MakeKey { out, list, index, first, count: values.len() as u16 });
        out
    }

    /// `x.field == value` among what a condition demands, where the value is the same all along the loop and cannot
    /// refuse.
    fn equalities<'e>(
        &self,
        condition: &'e Expression,
        element: &str,
        live: bool,
        found: &mut Vec<(String, &'e Expression)>,
    ) {
        match &*condition.kind {
            ExpressionKind::Binary(Binary::And, left, right) => {
                self.equalities(left, element, live, found);
                self.equalities(right, element, live, found);
            }
            ExpressionKind::Binary(Binary::Equal, left, right) => {
                for (side, other) in [(left, right), (right, left)] {
                    if let Some(field) = field_of_element(side, element)
                        && self.is_steady(other, live)
                    {
                        found.push((field.into(), other));
                    }
                }
            }
            _ => {}
        }
    }

    /// The ends between which a condition demands a field to be, where they are the same all along the loop and cannot
    /// refuse. The condition is tested all the same: whether an end is included does not matter here.
    fn range<'e>(
        &self,
        condition: &'e Expression,
        (element, field): (&str, &str),
        live: bool,
        found: &mut Range<'e>,
    ) {
        let is_field = |side: &Expression| field_of_element(side, element) == Some(field);
        let mut keep = |end: &'e Expression, is_upto: bool| {
            if self.is_steady(end, live) || is_around_now(end) {
                let place = if is_upto { &mut found.upto } else { &mut found.from };
                place.get_or_insert(end);
            }
        };
        match &*condition.kind {
            ExpressionKind::Binary(Binary::And, left, right) => {
                self.range(left, (element, field), live, found);
                self.range(right, (element, field), live, found);
            }
            ExpressionKind::Binary(operator, left, right) => {
                let is_less = match operator {
                    Binary::Less | Binary::LessEqual => true,
                    Binary::Greater | Binary::GreaterEqual => false,
                    _ => return,
                };
                if is_field(left) {
                    keep(right, is_less);
                } else if is_field(right) {
                    keep(left, !is_less);
                }
            }
            ExpressionKind::In { value, list: from, upto: Some(upto) } if is_field(value) => {
                keep(from, false);
                keep(upto, true);
            }
            _ => {}
        }
    }

    fn is_steady(&self, value: &Expression, live: bool) -> bool {
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
                Some(BindingKind::Value { fixed, .. }) => *fixed || !live,
                Some(_) => false,
                None => self.checker.settings.contains_key(name),
            },
            ExpressionKind::Field(inner, _) => self.is_steady(inner, live),
            _ => false,
        }
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

/// The ends of what a loop runs over, as far as a condition tells them.
#[derive(Default)]
struct Range<'e> {
    from: Option<&'e Expression>,
    upto: Option<&'e Expression>,
}

/// `now`, some time before or after.
fn is_around_now(end: &Expression) -> bool {
    let ExpressionKind::Binary(Binary::Add | Binary::Subtract, left, right) = &*end.kind else {
        return false;
    };
    matches!((&*left.kind, &*right.kind), (ExpressionKind::Now, ExpressionKind::Duration(_)))
}

fn field_of_element<'e>(side: &'e Expression, element: &str) -> Option<&'e str> {
    let ExpressionKind::Field(inner, field) = &*side.kind else { return None };
    match &*inner.kind {
        ExpressionKind::Name(name) if name == element => Some(&field.text),
        _ => None,
    }
}

/// Whether statements may change one of these fields of some row.
fn changes_fields(block: &Block, fields: &[&str]) -> bool {
    let mut changes = false;
    walk::statements(block, &mut |statement| match &statement.kind {
        StatementKind::Assign { place, .. } => {
            walk::inner(place, &mut |part| {
                if let ExpressionKind::Field(_, field) = &*part.kind {
                    changes |= fields.contains(&field.text.as_str());
                }
            });
        }
        StatementKind::Change(change) => changes |= change.replace,
        StatementKind::Let { .. } | StatementKind::Place(_) => changes |= may_call_or_put(&statement.kind),
        _ => {}
    });
    changes
}

fn may_call_or_put(statement: &StatementKind) -> bool {
    use crate::syntax::tree::{LetValue, Otherwise};
    match statement {
        StatementKind::Place(_) => true,
        StatementKind::Let { value: Some(LetValue::Change(change)), .. } => change.replace,
        StatementKind::Let { value: Some(LetValue::Else(_, Otherwise::Change(change))), .. } => {
            change.replace
        }
        _ => false,
    }
}
