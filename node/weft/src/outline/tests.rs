//! Places in a source, marked by `|`, and what is told about them.

use super::*;
use proptest::prelude::*;

const SOURCE: &str = "\
// What is played.
// And by whom.

app scores

// How far it is.
enum Stage { open, done }

// One player's.
record Score {
  player: text,
  points: int = 0, // won so far
  stage: Stage = .open,
  since: time?,
}

state board: list of Score by player index stage
state last: Score?
setting most: int = 10

// Adds up.
on add(player: text, points: int) by user -> int {
  let s = board[player] else board add Score { player, points: 0 }
  s.points += points
  for o in board where o.stage == .done { o.points = most }
  if last is l and l.points > 1 { note(l.player) }
  send told(points, \"a\") to me
  return s.points
}

on told(n: int, why: text) from peer { note(why) }
on refused told(n, why) to whom because reason { note(\"{n}\") }

do note(line: text) { remove o for o in board where o.player == line }

fn half(n: int) = n / 2
view top(n: int = 10) -> list of Score = [b for b in board order by b.points desc take half(n)]
";

/// The source without its mark, and where the mark was.
fn marked(mark: &str, nth: usize, inside: usize) -> usize {
    SOURCE.match_indices(mark).nth(nth).unwrap_or_else(|| panic!("{mark} stands there")).0 + inside
}

#[test]
fn declarations_are_found_with_their_comments() {
    let outline = Outline::new(SOURCE);
    assert_eq!(outline.comment, "What is played.\nAnd by whom.");
    let add = outline.find(Declares::Input, "add").expect("it is declared");
    assert_eq!(add.signature, "on add(player: text, points: int) by user -> int");
    assert_eq!((add.comment.as_str(), add.kind.as_deref()), ("Adds up.", Some("int")));
    let score = outline.find(Declares::Record, "Score").expect("it is declared");
    assert_eq!(
        (score.members[1].comment.as_str(), score.members[1].text.as_str()),
        ("won so far", "points: int = 0")
    );
    let names: Vec<&str> = outline.declarations.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(
        names,
        ["scores", "Stage", "Score", "board", "last", "most", "add", "told", "told", "note", "half", "top"]
    );
}

#[test]
fn a_word_says_what_it_is() {
    let outline = Outline::new(SOURCE);
    let check = |mark: &str, nth: usize, inside: usize, expected: &str| {
        let hover = outline.hover(SOURCE, marked(mark, nth, inside));
        assert_eq!(hover.map_or("nothing".into(), |hover| hover.code), expected, "{mark} {nth}");
    };
    check("s.points +=", 0, 0, "s: Score");
    check("s.points +=", 0, 2, "Score.points: int = 0");
    check("+= points", 0, 3, "points: int");
    check("o.stage", 0, 0, "o: Score");
    check("o.stage", 0, 2, "Score.stage: Stage = .open");
    check(".done {", 0, 1, "Stage.done");
    check("l.points", 0, 0, "l: Score");
    check("note(l", 0, 0, "do note(line: text)");
    check("told(points", 0, 0, "on told(n: int, why: text) from peer");
    check("\"{n}\"", 0, 0, "nothing");
    check("refused told", 0, 9, "on told(n: int, why: text) from peer");
    check("n, why) to", 0, 0, "n: int");
    check("board where", 0, 0, "state board: list of Score by player index stage");
    check(
        "Score {",
        1,
        0,
        "record Score { player: text, points: int = 0, stage: Stage = .open, since: time?, }",
    );
    check("points: 0 }", 0, 0, "Score.points: int = 0");
    check("half(n)]", 0, 0, "fn half(n: int)");
    check("b for b", 0, 0, "b: Score");
    check("most }", 0, 0, "setting most: int = 10");
    check("return", 0, 0, "nothing");
}

#[test]
fn an_answer_is_of_the_type_of_its_handler_or_none() {
    let source = "app a\nstate last: text?\non ask(n: int) from peer -> text { return \"\" }\n\
                  on delivered ask(_) to _ with answer { last = answer }\n";
    let at = source.rfind("answer }").expect("it stands there");
    let hover = Outline::new(source).hover(source, at);
    assert_eq!(hover.map(|hover| hover.code).as_deref(), Some("answer: text?"));
}

#[test]
fn a_word_is_declared_somewhere() {
    let outline = Outline::new(SOURCE);
    let check = |mark: &str, nth: usize, inside: usize, expected: &str, which: usize| {
        let found = outline.definitions(SOURCE, marked(mark, nth, inside));
        let wanted = marked(expected, which, 0) as u32;
        assert_eq!(found.iter().map(|span| span.start).collect::<Vec<_>>(), [wanted], "{mark} {nth}");
    };
    check("s.points +=", 0, 0, "s = board", 0);
    check("s.points +=", 0, 2, "points: int = 0", 0);
    check("note(why)", 0, 0, "note(line", 0);
    check("note(why)", 0, 5, "why: text", 0);
    check("list of Score by", 0, 9, "Score {", 0);
    check("b.points", 0, 0, "b in board order", 0);
    check("told(points", 0, 0, "told(n: int", 0);
}

#[test]
fn what_could_stand_at_a_place_is_offered() {
    let check = |typed: &str, has: &[&str], has_not: &[&str]| {
        let source = SOURCE.replace("  return s.points\n", typed);
        let at = source.find('|').expect("a mark");
        let source = source.replace('|', "");
        let offered: Vec<String> =
            Outline::new(&source).completions(&source, at).into_iter().map(|one| one.label).collect();
        for one in has {
            assert!(offered.iter().any(|label| label == one), "{typed}: {one} is not in {offered:?}");
        }
        for one in has_not {
            assert!(offered.iter().all(|label| label != one), "{typed}: {one} is in {offered:?}");
        }
    };
    check("  return s.|\n", &["player", "points"], &["board", "count", "done"]);
    check("  s.stage = .|\n", &["open", "done"], &["player"]);
    check("  return bo|\n", &["board", "s", "user", "points", "half", "count", "none"], &["o", "why"]);
    check("  send |\n", &["told"], &["add", "note"]);
    check("  let x: |\n", &["int", "Score", "Stage"], &["count_"]);
}

/// Each is a size at which the square of it would take minutes.
#[test]
fn a_large_source_has_an_outline_in_time() {
    let lets: String = (0..20_000).map(|number| format!("  let name{number} = board[{number}]\n")).collect();
    for source in
        ["(".repeat(200_000), format!("app a\non f() {{\n{lets}}}\n"), "on f(a: int) {}\n".repeat(20_000)]
    {
        let outline = Outline::new(&source);
        let _ = outline.hover(&source, source.len() / 2);
        let _ = outline.completions(&source, source.len() / 2);
    }
}

#[test]
fn what_the_checker_knows_is_told() {
    let source = "app a\nrecord R { id: int, at: time }\nrecord S { id: text }\nstate rows: list of R by id\n\
                  state strings: list of S by id\n\
                  view days = [{ day: g.key, last: max(r.at for r in g.rows) } for r in rows group by floor(r.at, 1 d) as g]\n\
                  fn twice(n: int) = n * 2\n\
                  view some = first(x for x in all_of() where x.id != \"\")\nfn all_of() = strings\n\
                  on f() -> int {\n  let t = twice(2) + 1\n  let one = rows[1] else refuse \"none\"\n  \
                  let wrong = 1 + \"a\"\n  one.at = now\n  return t\n}\n";
    let mut outline = Outline::new(source);
    outline.learn(crate::types(source, "a.weft", &mut |_| Err("none".into())));
    let check = |mark: &str, inside: usize, expected: &str| {
        let at = source.find(mark).unwrap_or_else(|| panic!("{mark} stands there")) + inside;
        assert_eq!(
            outline.hover(source, at).map_or("nothing".into(), |hover| hover.code),
            expected,
            "{mark}"
        );
    };
    check("as g]", 3, "g: { key, rows }");
    check("g.rows", 2, "rows: list of R");
    check("for x in", 4, "x: S");
    check("x.id", 2, "S.id: text");
    check("let t", 4, "t: int");
    check("return t", 7, "t: int");
    check("let one", 4, "one: R");
    check("let wrong", 4, "wrong: int");
    check("twice(2)", 0, "fn twice(n: int) -> int");
    check("view days", 5, "view days -> list of { day, last }");
}

#[test]
fn what_is_behind_libraries_in_the_text_is_told_where_it_stands() {
    let source = "app a\nuse \"c.weft\" as c\nstate all: list of c.Place by x\n\
                  view w = first(p for p in all)\n";
    let library = "library c\n// Where it is.\nrecord Place { x: int }\n";
    let mut outline = Outline::new(source);
    outline.learn(crate::types(source, "a.weft", &mut |_| Ok(library.into())));
    let hover = |mark: &str| outline.hover(source, source.find(mark).expect(mark)).map(|hover| hover.code);
    assert_eq!(hover("p for p").as_deref(), Some("p: c.Place"));
}

proptest! {
    #[test]
    fn any_text_has_an_outline(source in "([ -~\n]|app a\n|on f\\(|let |for x in |\\{|é){0,60}", at in 0usize..100) {
        let outline = Outline::new(&source);
        let _ = outline.hover(&source, at);
        let _ = outline.definitions(&source, at);
        let _ = outline.completions(&source, at);
    }

    #[test]
    fn a_source_cut_anywhere_has_an_outline(at in 0..SOURCE.len(), place in 0..SOURCE.len()) {
        let source = format!("{}{}", &SOURCE[..at.min(place)], &SOURCE[at.max(place)..]);
        let outline = Outline::new(&source);
        let _ = outline.hover(&source, place);
        let _ = outline.completions(&source, at);
    }
}

#[test]
fn words_of_libraries_are_told() {
    let source = "app a\nuse \"lib/c.weft\" as c\nview v(p: c.Place, q: int) = c.far(p) + c. + c\nview w(r: R) = r.c.far(c)\n";
    let outline = Outline::new(source);
    let check = |mark: &str, inside: usize, expected: &str| {
        let found = outline.of_library(source, source.find(mark).expect(mark) + inside);
        let found = found.map(|found| format!("{} {}", found.path, found.word));
        assert_eq!(found.as_deref().unwrap_or("nothing"), expected, "{mark}");
    };
    check("c.Place", 0, "nothing");
    check("c.Place", 3, "lib/c.weft Place");
    check("c.far", 2, "lib/c.weft far");
    check("c. +", 2, "lib/c.weft ");
    check("+ c\n", 3, "nothing");
    check("r.c.far", 5, "nothing");
    let hover = outline.hover(source, source.find("c.far").unwrap()).unwrap();
    assert_eq!(hover.code, "use \"lib/c.weft\" as c");
    let library = Outline::new("library c\n// A place.\nrecord Place { x: int }\nfn far(p: Place) = p.x\n");
    assert_eq!(library.exported("Place").unwrap().comment, "A place.");
    assert!(library.exported("c").is_none());
    let labels: Vec<String> = library.export_completions().into_iter().map(|one| one.label).collect();
    assert_eq!(labels, ["Place", "far"]);
}
