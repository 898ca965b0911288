//! Documents of an app with every type in them.

use super::*;
use crate::compile;
use serde_json::{Value, json};

const SOURCE: &str = "\
// Who won how often.

app scores

// How it stands.
enum Stage { open, done }

record Score {
  player: text, // as they sign
  points: int = 0,
  stage: Stage = .open,
  since: time?,
}

state board: list of Score by player

// Counts a game.
on add(player: text, points: int = 1) by user -> int {
  let s = board[player] else board add Score { player }
  s.points += points
  return s.points
}

on take(scores: list of Score) {
  for s in scores { board put s }
}

// The best, best first.
view top(
  n: int = 10, // how many
) = [{ s.player, s.stage, half: s.points / 2 } for s in board order by s.points desc take n]
view of(player: text) = board[player]
view near(scores: list of Score, to: node?) = count(scores)
";

fn module() -> Module {
    compile(SOURCE, "scores.weft").unwrap_or_else(|wrong| panic!("{wrong}"))
}

#[test]
fn the_page_has_inputs_views_state_and_types() {
    let page = markdown(&module(), SOURCE);
    let expected = "\
# scores

Who won how often.

## Inputs

### add

Counts a game.

`POST /scores/add` — `on add(player: text, points: int = 1) by user -> int`

### take

`POST /scores/take` — `on take(scores: list of Score)`

## Views

### top

The best, best first.

`GET /scores/top` — `view top(n: int = 10) -> list of { player: text, stage: Stage, half: int }`

| | |
| --- | --- |
| `n: int = 10` | how many |

### of

`GET /scores/of` — `view of(player: text) -> Score?`

### near

`GET /scores/near` — `view near(scores: list of Score, to: node?) -> int`

## State

### board

`state board: list of Score by player`

## Types

### Stage

How it stands.

| | |
| --- | --- |
| `open` |  |
| `done` |  |

### Score

| | |
| --- | --- |
| `player: text` | as they sign |
| `points: int = 0` |  |
| `stage: Stage = .open` |  |
| `since: time?` |  |
";
    assert_eq!(page, expected);
}

/// Every `$ref` of a document leads somewhere.
fn references_lead_somewhere(document: &Value, part: &Value) {
    match part {
        Value::Object(object) => {
            if let Some(to) = object.get("$ref").and_then(Value::as_str) {
                let pointer = to.strip_prefix('#').expect("references stay in the document");
                assert!(document.pointer(pointer).is_some(), "{to}");
            }
            object.values().for_each(|part| references_lead_somewhere(document, part));
        }
        Value::Array(list) => list.iter().for_each(|part| references_lead_somewhere(document, part)),
        _ => {}
    }
}

#[test]
fn the_schema_says_what_may_be_left_out_and_what_is_always_there() {
    let schema = json_schema(&module(), SOURCE);
    references_lead_somewhere(&schema, &schema);
    let definitions = &schema["$defs"];
    assert_eq!(definitions["input.add"]["required"], json!(["player"]));
    assert_eq!(definitions["input.add"]["description"], "Counts a game.");
    assert_eq!(definitions["input.take"]["properties"]["scores"]["items"]["$ref"], "#/$defs/Score.given");
    assert_eq!(definitions["Score"]["required"], json!(["player", "points", "stage", "since"]));
    assert_eq!(definitions["Score.given"]["required"], json!(["player"]));
    assert_eq!(definitions["Score"]["properties"]["player"]["description"], "as they sign");
    assert_eq!(definitions["view.top"]["items"]["required"], json!(["player", "stage", "half"]));
    assert_eq!(definitions["view.of"]["anyOf"][0]["$ref"], "#/$defs/Score");
    assert_eq!(definitions["Stage"]["enum"], json!(["open", "done"]));
}

#[test]
fn the_interface_has_a_path_for_each_input_and_view() {
    let interface = open_api(&module(), SOURCE);
    references_lead_somewhere(&interface, &interface);
    assert_eq!(interface["openapi"], "3.1.0");
    let paths: Vec<&String> = interface["paths"].as_object().expect("paths").keys().collect();
    assert_eq!(paths, ["/scores/add", "/scores/take", "/scores/top", "/scores/of", "/scores/near"]);
    let add = &interface["paths"]["/scores/add"]["post"];
    let answer = &add["responses"]["200"]["content"]["application/json"]["schema"];
    assert_eq!(answer["required"], json!(["answer"]));
    let near = &interface["paths"]["/scores/near"]["get"]["parameters"];
    assert_eq!(near[0]["content"]["application/json"]["schema"]["type"], "array");
    assert_eq!((&near[1]["required"], &near[1]["schema"]["type"]), (&json!(false), &json!("string")));
    let top = &interface["paths"]["/scores/top"]["get"]["parameters"][0];
    assert_eq!((&top["required"], &top["description"]), (&json!(false), &json!("how many")));
}

#[test]
fn names_in_documents_are_fit_to_be_keys() {
    let interface = open_api(&module(), SOURCE);
    let allowed = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || ".-_".contains(c));
    for part in ["schemas", "responses", "securitySchemes"] {
        let object = interface["components"][part].as_object().expect("components");
        assert!(object.keys().all(|name| allowed(name)), "{part}: {:?}", object.keys());
    }
}

#[test]
fn types_of_libraries_are_documented_after_them() {
    let library = "library games\n// How it stands.\nenum Stage { open, done }\nfn next(s: Stage) = Stage2 { s }\nrecord Stage2 { s: Stage = .open, all: list of Stage? = [] }\n";
    let app = "app a\nuse \"lib/games.weft\" as g\nview v(s: g.Stage) = g.next(s)\nrecord Row { n: int, s: g.Stage2? }\nstate rows: list of Row by n\nview r -> list of g.Stage2 = []\n";
    let mut read = |_: &str| Ok(library.to_owned());
    let module = crate::compile_with(app, "a.weft", &mut read).unwrap_or_else(|wrong| panic!("{wrong}"));
    let page = markdown(&module, app);
    assert!(page.contains("view v(s: games.Stage) -> games.Stage2`"), "{page}");
    for text in [
        "`view r -> list of games.Stage2`",
        "| `s: games.Stage2?` |",
        "| `s: games.Stage = .open` |",
        "| `all: list of games.Stage? = []` |",
    ] {
        assert!(page.contains(text), "{text} in {page}");
    }
    assert!(page.contains("### games.Stage\n\nHow it stands.\n"), "{page}");
    let schema = json_schema(&module, app);
    assert_eq!(schema["$defs"]["games.Stage"]["description"], "How it stands.");
    assert_eq!(schema["$defs"]["view.v"]["$ref"], "#/$defs/games.Stage2");
    let module =
        crate::check_with(library, "games.weft", &mut read).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert!(module.is_library && markdown(&module, library).contains("## Functions\n\n### next\n"));
}
