//! OpenAPI 3.1 of an app's HTTP face, after `docs/node.md`.

use super::schema::{Schemas, described};
use crate::module::{Door, Module, Type};
use crate::outline::Declares;
use serde_json::{Map, Value, json};

/// What can go wrong: the status, when, and whether it is an answer of posts, of views or of both.
const ERRORS: &[(&str, &str, bool, bool)] = &[
    ("400", "An argument has the wrong shape; the message names it. Nothing changed.", true, true),
    ("401", "The token is missing or wrong.", true, true),
    ("403", "Another origin. Nothing changed.", true, true),
    ("409", "Refused, in the app's words. Nothing changed.", true, true),
    ("413", "The body is too large, or the event or view went over its budget. Nothing changed.", true, true),
    ("415", "The body is not `application/json`. Nothing changed.", true, false),
    ("421", "Another host. Nothing changed.", true, true),
    ("500", "The node stopped before it answered: repeat the post with its key.", true, false),
    ("503", "Full, with `Retry-After`, or stopping. Nothing changed.", true, true),
];

/// The OpenAPI document of an app as its node serves it.
pub fn open_api(module: &Module, source: &str) -> Value {
    let outline = super::outline(module, source);
    let schemas = Schemas { module, outline: &outline, prefix: "#/components/schemas/" };
    let mut paths = Map::new();
    for input in &module.inputs {
        paths.insert(format!("/{}/{}", module.name, input.name), json!({ "post": post(&schemas, input) }));
    }
    for view in &module.views {
        paths.insert(format!("/{}/{}", module.name, view.name), json!({ "get": get(&schemas, view) }));
    }
    let mut types = schemas.types();
    types.insert("error".into(), error());
    let responses: Map<String, Value> =
        ERRORS.iter().map(|(status, says, ..)| (format!("status_{status}"), response(says))).collect();
    json!({
        "openapi": "3.1.0",
        "info": described(json!({ "title": module.name, "version": "1" }), &outline.comment),
        "servers": [{ "url": "http://127.0.0.1:8080", "description": "a node on this machine" }],
        "paths": paths,
        "components": {
            "schemas": types,
            "responses": responses,
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
        // On loopback nobody needs a token.
        "security": [{}, { "token": [] }],
    })
}

fn post(schemas: &Schemas<'_>, input: &Door) -> Value {
    let answer = match &input.answer {
        Some(kind) => json!({
            "type": "object",
            "properties": { "answer": schemas.of(kind, false) },
            "required": ["answer"],
            "additionalProperties": false,
        }),
        None => json!({ "type": "object", "additionalProperties": false }),
    };
    let body = schemas.arguments(input, Declares::Input);
    let key = json!({
        "name": "Idempotency-Key",
        "in": "header",
        "required": false,
        "description": "makes the post safe to repeat: the same key gets the first answer and changes nothing",
        "schema": { "type": "string", "minLength": 1, "maxLength": 128 },
    });
    let operation = json!({
        "operationId": input.name,
        "parameters": [key],
        "requestBody": { "required": true, "content": { "application/json": { "schema": body } } },
        "responses": answers("The event is on disk.", json!({ "application/json": { "schema": answer } }), true),
    });
    described(operation, &schemas.comment(Declares::Input, &input.name))
}

fn get(schemas: &Schemas<'_>, view: &Door) -> Value {
    let found = schemas.outline.find(Declares::View, &view.name);
    let parameters: Vec<Value> = view
        .fields
        .iter()
        .map(|field| {
            let member =
                found.and_then(|found| found.members.iter().find(|member| member.name == field.name));
            // A parameter is left out where a body would have null.
            let kind = if let Type::Optional(inner) = &field.kind { inner } else { &field.kind };
            let schema = schemas.of(kind, true);
            let parameter = json!({ "name": field.name, "in": "query", "required": field.default.is_none() });
            let mut parameter = described(parameter, member.map_or("", |member| &member.comment));
            // Lists and records are JSON text in a parameter.
            let (form, value) = match kind {
                Type::List(_) | Type::Record(_) => {
                    ("content", json!({ "application/json": { "schema": schema } }))
                }
                _ => ("schema", schema),
            };
            parameter[form] = value;
            parameter
        })
        .collect();
    let schema = view.answer.as_ref().map_or_else(|| json!({}), |kind| schemas.of(kind, false));
    let content = json!({
        "application/json": { "schema": schema },
        "text/event-stream": {
            "schema": { "type": "string", "description": "the view now, and again each time it changed" },
        },
    });
    let operation = json!({
        "operationId": view.name,
        "parameters": parameters,
        "responses": answers("The view as it is now.", content, false),
    });
    described(operation, &schemas.comment(Declares::View, &view.name))
}

fn answers(says: &str, content: Value, posts: bool) -> Value {
    let mut answers = Map::new();
    answers.insert("200".into(), json!({ "description": says, "content": content }));
    for (status, _, of_posts, of_views) in ERRORS {
        if (posts && *of_posts) || (!posts && *of_views) {
            let refer = json!({ "$ref": format!("#/components/responses/status_{status}") });
            answers.insert((*status).into(), refer);
        }
    }
    Value::Object(answers)
}

fn response(says: &str) -> Value {
    let content = json!({ "application/json": { "schema": { "$ref": "#/components/schemas/error" } } });
    json!({ "description": says, "content": content })
}

fn error() -> Value {
    json!({
        "type": "object",
        "properties": {
            "error": {
                "type": "object",
                "properties": { "code": { "type": "string" }, "message": { "type": "string" } },
                "required": ["code", "message"],
            },
        },
        "required": ["error"],
    })
}
