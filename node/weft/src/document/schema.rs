//! JSON Schema of what inputs take and views give.

use crate::module::{Door, Field, Module, Record, Type};
use crate::outline::{Declares, Outline};
use serde_json::{Map, Value, json};

/// The dialect of the schemas, which OpenAPI 3.1 shares.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Schemas of an app's inputs and views, in `$defs`: `input.NAME` and `input.NAME.answer`, `view.NAME` and
/// `view.NAME.arguments`, and each record and enum by its name; `NAME.given` is a record where fields that have a
/// default may be left out.
pub fn json_schema(module: &Module, source: &str) -> Value {
    let outline = super::outline(module, source);
    let schemas = Schemas { module, outline: &outline, prefix: "#/$defs/" };
    let mut definitions = schemas.types();
    for input in &module.inputs {
        definitions.insert(format!("input.{}", input.name), schemas.arguments(input, Declares::Input));
        if let Some(answer) = &input.answer {
            definitions.insert(format!("input.{}.answer", input.name), schemas.of(answer, false));
        }
    }
    for view in &module.views {
        definitions.insert(format!("view.{}.arguments", view.name), schemas.arguments(view, Declares::View));
        if let Some(answer) = &view.answer {
            let schema = described(schemas.of(answer, false), &schemas.comment(Declares::View, &view.name));
            definitions.insert(format!("view.{}", view.name), schema);
        }
    }
    described(json!({ "$schema": DIALECT, "title": module.name, "$defs": definitions }), &outline.comment)
}

/// Makes schemas that refer to the named types below `prefix`.
pub(super) struct Schemas<'m> {
    pub(super) module: &'m Module,
    pub(super) outline: &'m Outline,
    pub(super) prefix: &'static str,
}

impl Schemas<'_> {
    /// Every enum and every record that has a name.
    pub(super) fn types(&self) -> Map<String, Value> {
        let mut types = Map::new();
        for one in &self.module.enums {
            let schema = json!({ "type": "string", "enum": one.cases });
            types.insert(one.name.clone(), described(schema, &self.comment(Declares::Enum, &one.name)));
        }
        for one in &self.module.records {
            let Some(name) = &one.name else { continue };
            let comment = self.comment(Declares::Record, name);
            types.insert(name.clone(), described(self.record(one, Some(name), false), &comment));
            if self.differs_when_given(one) {
                types
                    .insert(format!("{name}.given"), described(self.record(one, Some(name), true), &comment));
            }
        }
        types
    }

    pub(super) fn comment(&self, declares: Declares, name: &str) -> String {
        self.outline.find(declares, name).map(|found| found.comment.clone()).unwrap_or_default()
    }

    /// The object of an input's or a view's arguments.
    pub(super) fn arguments(&self, door: &Door, declares: Declares) -> Value {
        let found = self.outline.find(declares, &door.name);
        let comment = |field: &Field| {
            let member =
                found.and_then(|found| found.members.iter().find(|member| member.name == field.name));
            member.map(|member| member.comment.clone()).unwrap_or_default()
        };
        described(self.object(&door.fields, true, comment), found.map_or("", |found| &found.comment))
    }

    /// Of a type, as it is given by who asks or as it is answered.
    pub(super) fn of(&self, kind: &Type, given: bool) -> Value {
        match kind {
            Type::Bool => json!({ "type": "boolean" }),
            Type::Int => {
                json!({ "type": "integer", "format": "int64", "minimum": i64::MIN, "maximum": i64::MAX })
            }
            Type::Real => json!({ "type": "number", "format": "double" }),
            Type::Text => json!({ "type": "string" }),
            Type::Bytes => json!({ "type": "string", "contentEncoding": "base64" }),
            Type::Time => {
                json!({ "type": "integer", "format": "int64", "description": "milliseconds since 1970 UTC" })
            }
            Type::Duration => json!({ "type": "integer", "format": "int64", "description": "milliseconds" }),
            Type::Node => {
                json!({ "type": "string", "pattern": "^sv1[a-z2-7]+$", "description": "a node's identity" })
            }
            Type::Endpoint => json!({ "type": "string", "pattern": "^https?://." }),
            Type::Enum(number) => self.refer(&self.module.enums[*number as usize].name),
            Type::Record(number) => {
                let record = &self.module.records[*number as usize];
                match &record.name {
                    Some(name) if given && self.differs_when_given(record) => {
                        self.refer(&format!("{name}.given"))
                    }
                    Some(name) => self.refer(name),
                    None => self.record(record, None, given),
                }
            }
            Type::List(element) => json!({ "type": "array", "items": self.of(element, given) }),
            Type::Optional(inner) => json!({ "anyOf": [self.of(inner, given), { "type": "null" }] }),
            Type::Nothing => json!({ "type": "null" }),
            Type::Broken => json!({}),
        }
    }

    fn refer(&self, name: &str) -> Value {
        json!({ "$ref": format!("{}{name}", self.prefix) })
    }

    fn record(&self, record: &Record, name: Option<&str>, given: bool) -> Value {
        let found = name.and_then(|name| self.outline.find(Declares::Record, name));
        self.object(&record.fields, given, |field| {
            let member =
                found.and_then(|found| found.members.iter().find(|member| member.name == field.name));
            member.map(|member| member.comment.clone()).unwrap_or_default()
        })
    }

    fn object(&self, fields: &[Field], given: bool, comment: impl Fn(&Field) -> String) -> Value {
        let properties: Map<String, Value> = fields
            .iter()
            .map(|field| (field.name.clone(), described(self.of(&field.kind, given), &comment(field))))
            .collect();
        let needed = fields.iter().filter(|field| !given || field.default.is_none());
        let required: Vec<&str> = needed.map(|field| field.name.as_str()).collect();
        json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
    }

    /// Whether fields of the record, or of a record in it, may be left out by who gives one.
    fn differs_when_given(&self, record: &Record) -> bool {
        record.fields.iter().any(|field| field.default.is_some() || self.differs(&field.kind))
    }

    fn differs(&self, kind: &Type) -> bool {
        match kind {
            Type::Record(number) => self.differs_when_given(&self.module.records[*number as usize]),
            Type::List(inner) | Type::Optional(inner) => self.differs(inner),
            _ => false,
        }
    }
}

/// A schema with a comment before what it says of itself.
pub(super) fn described(mut schema: Value, comment: &str) -> Value {
    if let (false, Some(object)) = (comment.is_empty(), schema.as_object_mut()) {
        let own = object.get("description").and_then(Value::as_str);
        let text = own.map_or_else(|| comment.to_owned(), |own| format!("{comment} ({own})"));
        object.insert("description".into(), text.into());
    }
    schema
}
