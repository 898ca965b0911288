//! Rows of lists as they come from a log, quickly: a start reads all of them.

use super::App;
use crate::codec::{Reader, word_key};
use crate::event::RestoreError;
use crate::keyed::{Key, Layout};
use crate::state::List;
use crate::table::{Keyed, Source};
use std::sync::Arc;
use weft::Value;
use weft::module::{Module, Record};

impl App {
    /// Takes a row of a list by key.
    pub(super) fn restore_row(
        &mut self,
        list: u32,
        record: u32,
        key: &[u8],
        row: &[u8],
    ) -> Result<(), String> {
        let record = &self.module.records[record as usize];
        let values = values(row, record, &self.module)?;
        let Some(List::Keyed(keyed)) = self.state.lists.get_mut(list as usize) else {
            return Err("it is no list".to_owned());
        };
        let place = keyed.layout().key_of(&values);
        let is_its_own = match &place {
            Key::Word(word) => word_key(*word) == *key,
            Key::Bytes(bytes) => **bytes == *key,
        };
        if !is_its_own {
            return Err("its key is not the one that it is kept under".to_owned());
        }
        keyed.put(&place, &values).map(drop).map_err(|full| full.to_string())
    }

    /// Many rows are to come ([`App::restore`]): indexes are made of all of them at once, at the end.
    pub fn begin_restore(&mut self) {
        for (declared, list) in self.module.lists.iter().zip(&mut self.state.lists) {
            if let List::Keyed(keyed) = list
                && keyed.len() == 0
                && !keyed.layout().indexes.is_empty()
            {
                let mut layout = Layout::of(declared, &self.module);
                (layout.indexes, layout.covers) = (Vec::new(), Vec::new());
                *keyed = Keyed::new(Arc::new(layout));
            }
        }
    }

    /// All rows came: makes the indexes that their lists have. Until then no event and no view may run.
    ///
    /// # Errors
    /// A row that cannot have its place in an index; nothing is to be done with this app then.
    pub fn end_restore(&mut self) -> Result<(), RestoreError> {
        for (declared, list) in self.module.lists.iter().zip(&mut self.state.lists) {
            let List::Keyed(keyed) = list else { continue };
            let layout = Layout::of(declared, &self.module);
            if keyed.layout().indexes.len() == layout.indexes.len() {
                continue;
            }
            let fields: Vec<Source<'_>> = (0..layout.kinds.len() as u16).map(Source::Field).collect();
            *keyed = keyed.changed(Arc::new(layout), &fields, &|| true).map_err(|error| {
                RestoreError::Row { list: declared.name.clone(), message: error.to_string() }
            })?;
        }
        Ok(())
    }
}

fn values(row: &[u8], record: &Record, module: &Module) -> Result<Vec<Value>, &'static str> {
    let mut reader = Reader::new(row);
    let mut values = Vec::with_capacity(record.fields.len());
    for field in &record.fields {
        values.push(reader.value(&field.kind, module).map_err(|error| error.0)?);
    }
    if reader.is_empty() { Ok(values) } else { Err("bytes follow it") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Context, Event};
    use sealing::NodeId;

    const SOURCE: &str = "app a
record Line { id: int, of: text, size: int, at: int? = none }
state lines: list of Line by id index of index size
state words: list of Line by of, id
on add(id: int, of: text, size: int) {
  lines put Line { id, of, size }
  words put Line { id, of, size, at: size }
  if size > 90 { remove lines[id] }
}
view by_of(of: text) = [l for l in lines where l.of == of]
view large = [l for l in lines where l.size > 50 order by l.size]
view all = [w for w in words]
";

    #[test]
    fn rows_restored_with_their_indexes_at_the_end_are_as_those_restored_one_by_one() {
        let module = Arc::new(weft::compile(SOURCE, "a.weft").expect("the source is right"));
        let new = || App::new(Arc::clone(&module), NodeId([0; 32]));
        let mut app = new();
        for id in 0..500u64 {
            let (of, size) = (id * 7 % 13, id * 31 % 97);
            let arguments = format!(r#"{{"id":{},"of":"{of}","size":{size}}}"#, id * 17 % 300);
            let event = Event::Input { name: "add", arguments: arguments.as_bytes(), by: "" };
            app.event(event, &Context { now: 0, entropy: [0; 32], room: 0 }).expect("it is taken");
        }
        let rows = app.snapshot().rows();
        let (mut one_by_one, mut at_once) = (new(), new());
        at_once.begin_restore();
        for row in &rows {
            for app in [&mut one_by_one, &mut at_once] {
                app.restore(row.list, &row.key, row.row.as_deref()).expect("it is a row of this app");
            }
        }
        at_once.end_restore().expect("they have places in the indexes");
        for (view, query) in [("by_of", Some("3")), ("large", None), ("all", None)] {
            let query: Vec<_> = query.map(|of| ("of".to_owned(), of.to_owned())).into_iter().collect();
            let [expected, one, all] =
                [&app, &one_by_one, &at_once].map(|app| app.snapshot().view(view, &query, "", 0));
            assert!(expected.as_ref().is_ok_and(|rows| rows.len() > 100), "{expected:?}");
            assert_eq!((&one, &all), (&expected, &expected), "{view}");
        }
        assert_eq!(at_once.snapshot().rows(), rows);
    }
}
