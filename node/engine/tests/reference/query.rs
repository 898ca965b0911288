//! Loops over lists, with conditions, groups, order and a most.

use super::evaluate::ordering;
use super::kinds::Kind;
use super::run::{Flow, Outcome, Place, Run, Slot};
use super::value::Value;
use weft::syntax::tree::{Expression, Group, Query, QuerySource};

/// What a loop's name is given.
#[derive(Debug, Clone)]
struct Element {
    value: Value,
    kind: Kind,
    row_of: Option<Place>,
}

type Each<'e, 'p> = &'e mut dyn FnMut(&mut Run<'p>) -> Outcome<Flow>;

impl<'p> Run<'p> {
    /// Statements for each of what a query finds. A `break` leaves the whole query.
    pub fn loop_over(&mut self, query: &Query, each: Each<'_, 'p>) -> Outcome<Flow> {
        let flow = self.query(query, true, each)?;
        Ok(if let Flow::Return(_) = flow { flow } else { Flow::Next })
    }

    pub fn comprehension(&mut self, value: &Expression, query: &Query) -> Outcome<Value> {
        let mut values = Vec::new();
        self.query(query, false, &mut |run| {
            let value = run.evaluate(value)?;
            values.push(value);
            Ok(Flow::Next)
        })?;
        Ok(Value::List(values))
    }

    /// `statements`: names stand for rows that may change under way.
    pub fn query(&mut self, query: &Query, statements: bool, each: Each<'_, 'p>) -> Outcome<Flow> {
        let depth = self.scope.len();
        let limit = match &query.take {
            Some(take) => {
                self.reach("take");
                Some(usize::try_from(self.evaluate(take)?.int().max(0)).unwrap_or(usize::MAX))
            }
            None => None,
        };
        self.reach_parts(query, statements);
        let flow = match &query.group {
            Some(group) => {
                let groups = self.groups(query, group)?;
                self.found(query, Some((groups, group)), limit, statements, each)
            }
            None => self.found(query, None, limit, statements, each),
        };
        self.scope.truncate(depth);
        flow
    }

    fn reach_parts(&self, query: &Query, statements: bool) {
        if query.sources.len() > 1 {
            self.reach("several lists");
        }
        if query.group.is_some() {
            self.reach(if statements { "for … group by" } else { "group by" });
        }
        if !query.order.is_empty() {
            self.reach(if statements { "for … order by" } else { "order by" });
        }
        if query.order.iter().any(|(_, turned)| *turned) {
            self.reach("desc");
        }
        if query.take.is_some() {
            self.reach(if statements { "for … take" } else { "take in an expression" });
        }
    }

    fn found(
        &mut self,
        query: &Query,
        groups: Option<(Vec<Element>, &Group)>,
        limit: Option<usize>,
        statements: bool,
        each: Each<'_, 'p>,
    ) -> Outcome<Flow> {
        let names: Vec<&str> = match &groups {
            Some((_, group)) => vec![group.name.text.as_str()],
            None => query.sources.iter().map(|source| source.name.text.as_str()).collect(),
        };
        let run = |run: &mut Run<'p>, live: bool, each: Each<'_, 'p>| match &groups {
            Some((groups, group)) => {
                run.elements(groups, &group.name.text, group.condition.as_ref(), live, each)
            }
            None => run.sources(&query.sources, live, each),
        };
        if query.order.is_empty() && (limit.is_none() || !statements) {
            let mut left = limit.unwrap_or(usize::MAX);
            if left == 0 {
                return Ok(Flow::Next);
            }
            return run(self, statements, &mut |run| {
                left -= 1;
                let flow = each(run)?;
                Ok(if left == 0 && matches!(flow, Flow::Next) { Flow::Break } else { flow })
            });
        }
        // All is chosen first.
        let mut chosen: Vec<(Vec<Value>, Vec<Element>)> = Vec::new();
        run(self, false, &mut |run| {
            let mut keys = Vec::new();
            for (key, _) in &query.order {
                keys.push(run.evaluate(key)?);
            }
            chosen.push((keys, names.iter().map(|name| run.element(name)).collect()));
            Ok(Flow::Next)
        })?;
        let descending: Vec<bool> = query.order.iter().map(|(_, turned)| *turned).collect();
        chosen.sort_by(|(left, _), (right, _)| ordering(left, right, &descending));
        chosen.truncate(limit.unwrap_or(usize::MAX));
        for (_, elements) in chosen {
            let depth = self.scope.len();
            let there = names
                .iter()
                .zip(elements)
                .all(|(name, element)| self.bind_element(name, element, statements));
            let flow = if there { each(self)? } else { Flow::Next };
            self.scope.truncate(depth);
            match flow {
                Flow::Next | Flow::Continue => {}
                Flow::Break | Flow::Return(_) => return Ok(flow),
            }
        }
        Ok(Flow::Next)
    }

    /// Gives a loop's name what it stands for; whether its row is still there.
    fn bind_element(&mut self, name: &str, element: Element, live: bool) -> bool {
        let Element { value, kind, row_of } = element;
        match row_of {
            Some(list) if live => {
                let key = self.rows(list).key_of(&value);
                if !self.rows(list).rows.contains_key(&key) {
                    self.reach("removed under way");
                    return false;
                }
                self.bind(name, Slot::Row { list, key: Some(key), optional: false, record: kind });
            }
            _ => self.bind(name, Slot::Value { value, kind, row_of }),
        }
        true
    }

    fn element(&self, name: &str) -> Element {
        match self.find(name) {
            Some(Slot::Value { value, kind, row_of }) => {
                Element { value: value.clone(), kind: kind.clone(), row_of: *row_of }
            }
            other => panic!("`{name}` is no element: {other:?}"),
        }
    }

    fn sources(&mut self, sources: &[QuerySource], live: bool, each: Each<'_, 'p>) -> Outcome<Flow> {
        let Some((source, rest)) = sources.split_first() else { return each(self) };
        let elements = self.elements_of(source)?;
        self.step(elements.len())?;
        self.elements(&elements, &source.name.text, source.condition.as_ref(), live, &mut |run| {
            run.sources(rest, live, each)
        })
    }

    fn elements(
        &mut self,
        elements: &[Element],
        name: &str,
        condition: Option<&Expression>,
        live: bool,
        each: Each<'_, 'p>,
    ) -> Outcome<Flow> {
        for element in elements {
            let depth = self.scope.len();
            let mut flow = Flow::Next;
            if self.bind_element(name, element.clone(), live) {
                let holds = match condition {
                    Some(condition) => {
                        self.reach("where");
                        self.condition(condition)?
                    }
                    None => true,
                };
                if holds {
                    flow = each(self)?;
                }
            }
            self.scope.truncate(depth);
            match flow {
                Flow::Next | Flow::Continue => {}
                Flow::Break | Flow::Return(_) => return Ok(flow),
            }
        }
        Ok(Flow::Next)
    }

    /// What a source has when its loop begins.
    fn elements_of(&mut self, source: &QuerySource) -> Outcome<Vec<Element>> {
        if let Some(upto) = &source.upto {
            self.reach("for in a range");
            let (from, upto) = (self.evaluate(&source.list)?.int(), self.evaluate(upto)?.int());
            let element = |value| Element { value: Value::Int(value), kind: Kind::Int, row_of: None };
            return Ok((from..=upto).map(element).collect());
        }
        if let Some(list) = self.keyed(&source.list) {
            self.reach("for in a keyed list");
            let kind = self.record_of(list);
            let rows = self.rows(list).rows.values().cloned();
            return Ok(rows.map(|value| Element { value, kind: kind.clone(), row_of: Some(list) }).collect());
        }
        self.reach("for in a list");
        let kind = match self.kind_of(&source.list) {
            Kind::List(element) => *element,
            _ => Kind::Unknown,
        };
        let values = self.evaluate(&source.list)?.list();
        Ok(values.into_iter().map(|value| Element { value, kind: kind.clone(), row_of: None }).collect())
    }

    /// Groups in the order of their keys, each with its rows in the order in which they stood.
    fn groups(&mut self, query: &Query, group: &Group) -> Outcome<Vec<Element>> {
        let mut found: Vec<(Value, Value)> = Vec::new();
        self.sources(&query.sources, false, &mut |run| {
            let key = run.evaluate(&group.key)?;
            let mut elements: Vec<(String, Value)> = Vec::new();
            for source in &query.sources {
                elements.push((source.name.text.clone(), run.element(&source.name.text).value));
            }
            let row = match elements.len() {
                1 => elements.remove(0).1,
                _ => Value::Record(elements),
            };
            found.push((key, row));
            Ok(Flow::Next)
        })?;
        found.sort_by(|(left, _), (right, _)| left.cmp(right));
        let mut groups: Vec<(Value, Vec<Value>)> = Vec::new();
        for (key, row) in found {
            match groups.last_mut().filter(|(last, _)| *last == key) {
                Some((_, rows)) => rows.push(row),
                None => groups.push((key, vec![row])),
            }
        }
        let kind = self.group_kind(query, group);
        let element = |(key, rows)| Element {
            value: Value::Record(vec![("key".into(), key), ("rows".into(), Value::List(rows))]),
            kind: kind.clone(),
            row_of: None,
        };
        Ok(groups.into_iter().map(element).collect())
    }
}
