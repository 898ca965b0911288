//! Any text as source gives a module or diagnostics: no panic, no hang, no stack overflow.

use proptest::prelude::*;

const SEED: &str = include_str!("../../../apps/messenger/messenger.weft");

fn compile(source: &str) {
    if let Err(wrong) = weft::compile(source, "noise.weft") {
        assert!(wrong.iter().count() > 0, "an error says at least one thing");
        assert!(wrong.iter().count() <= weft::diagnostics::DIAGNOSTICS_MAX);
    }
}

/// Words and signs of the language, in no order that means anything.
fn soup() -> impl Strategy<Value = String> {
    let words = prop::sample::select(
        "app a\n enum Aa record Bb state on do fn view test { } ( ) [ ] , : ; = == += .x .. + - * / % ? -> \n if then else \
         for in where order by take let var require refuse return remove add put send to is and or not none now me \
         count ( sum first x y z x.y x[y] 1 2.5 3 min \"t\" \"{x}\" \"{\" list of int text Aa Bb break continue from \
         delivered refused because _ true timer every setting output transient state test \"t\" expect sent start cancel \
         after at group as 1.5 5 min node() advance by desc"
            .split(' ')
            .collect::<Vec<_>>(),
    );
    prop::collection::vec(words, 0..120).prop_map(|words| format!("app a\n{}", words.join(" ")))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_text(source in any::<String>()) {
        compile(&source);
    }

    #[test]
    fn any_bytes_that_are_text(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        compile(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_words(source in soup()) {
        compile(&source);
    }

    #[test]
    fn a_program_with_a_hole(at in 0..SEED.len(), length in 0..60usize, filling in "[a-z(){}\\[\\]\" .:=+\n]{0,8}") {
        let (mut from, mut to) = (at, (at + length).min(SEED.len()));
        while !SEED.is_char_boundary(from) { from -= 1 }
        while !SEED.is_char_boundary(to) { to += 1 }
        compile(&format!("{}{filling}{}", &SEED[..from], &SEED[to..]));
    }
}

#[test]
fn what_is_deep_or_long_is_an_error_or_compiles() {
    let many = 100_000;
    let mut sources = vec![
        format!("app a\nview v = {}1{}", "(".repeat(many), ")".repeat(many)),
        format!("app a\nview v = {}1{}", "[".repeat(many), "]".repeat(many)),
        format!("app a\nview v = {}1", "-".repeat(many)),
        format!("app a\nview v = {}true", "not ".repeat(many)),
        format!("app a\nview v = 1{}", " + 1".repeat(many)),
        format!("app a\nview v = true{}", " and true".repeat(many)),
        format!("app a\nview v = x{}", ".x".repeat(many)),
        format!("app a\nview v = x{}", "[1]".repeat(many)),
        format!("app a\nview v = x{}", "(1)".repeat(many)),
        format!("app a\nview v = {}1", "if true then 1 else ".repeat(many / 2)),
        format!("app a\nview v = {}", "{a:".repeat(many)),
        format!("app a\nview v = {}", "\"{".repeat(many)),
        format!("app a\non f() {}", "{".repeat(many)),
        format!("app a\non f() {{{}", "if true {".repeat(many / 2)),
        format!("app a\non f() {{ if true {{ }}{} }}", " else if true { }".repeat(many / 2)),
        format!("app a\nstate s: {}int", "list of ".repeat(many)),
        format!("app a\nview v = [1{}]", " for x in [1]".repeat(many / 2)),
        format!("app a\nview v = {}", "[x for a in ".repeat(many / 2)),
        format!("app a\nview v = {}", "[x for a in b where ".repeat(many / 2)),
        "#".repeat(1 << 20),
        "x".repeat(1 << 20),
        "\n".repeat(1 << 20),
        "app a\n".repeat(1 << 17),
        "a".repeat((1 << 20) + 1),
    ];
    // What is reported and skipped: nothing may look back or ahead further than it skips.
    for line in [
        "x = = 1; ",
        "while (",
        "while (x) ",
        "while (x) { ",
        "/*\n",
        "'",
        "“a",
        "`a\n",
        "! ",
        "&& ",
        "f(n: ",
        "= ",
        "??\n",
        "let x = (\n",
        "let mut ",
        "for (let ",
        "on f() {\n",
        "if x {\n}\n",
        "{ \"a\": ",
        "0x ",
        "1e9",
        "5 minutes ",
        "größe ",
        "\u{a0}",
        "# \n",
        "not in ",
        "x is not none ",
        "Stage.a ",
        "Row(",
        "int x = 1\n",
        "remove a from b\n",
        "enum E { a b",
        "record R {\n a: int\n",
        "else { refuse ",
        "} elif ",
        "\n}",
        "a-b-c ",
        "return ",
    ] {
        let many = (1 << 16) / line.len();
        sources.push(format!("app a\n{}", line.repeat(many)));
        sources.push(format!("app a\nstate n: int = 0\non f() {{\n  {}", line.repeat(many)));
        sources.push(format!("app a\nview v = {}", line.repeat(many)));
    }
    sources.push(chain("app a\nrecord R0 { x: int }\n", 5_000, |n| {
        format!("record R{} {{ x: R{n} }}\n", n + 1)
    }));
    sources.push(chain("app a\n", 5_000, |n| format!("record R{n} {{ x: R{} }}\n", n + 1)));
    sources.push(chain("app a\nfn f0() = [1]\n", 5_000, |n| format!("fn f{}() = [f{n}()]\n", n + 1)));
    sources.push(chain("app a\nfn f0() = {{ a: 1 }}\n", 5_000, |n| {
        format!("fn f{}() = {{ a: f{n}(), b: f{n}() }}\n", n + 1)
    }));
    sources.push(chain("app a\n", 5_000, |n| format!("do d{n}() {{ d{}() }}\n", n + 1)));
    // What is many rather than deep: nothing may be looked up so that it takes the square of it.
    let body =
        |line: &dyn Fn(usize) -> String| chain("app a\nstate s: int = 0\non f() {{\n", 60_000, line) + "}\n";
    sources.push(body(&|n| format!("let a{n} = {n}\n")));
    sources.push(body(&|n| format!("s = b{n}\n")));
    sources.push(body(&|_| "s += 1\n".into()));
    sources.push(chain("app a\nview v = {{ ", 100_000, |n| format!("a{n}: 1, ")));
    sources.push(chain("app a\nenum E {{ ", 100_000, |n| format!("a{n}, ")));
    sources.push(chain("app a\nrecord E {{ ", 60_000, |n| format!("a{n}: int, ")));
    sources
        .push(chain("app a\nrecord E {{ a: int }}\nstate s: list of E by a", 90_000, |_| " index a".into()));
    sources.push(chain("app a\n", 60_000, |n| format!("on f{n}() {{}}\n")));
    sources.push(chain("app a\n", 9_000, |n| {
        format!("on f{n}() {{ send f{n}x() to me }}\non f{n}x() from p {{}}\n")
    }));
    sources.push(chain("app a\n", 9_900, |n| format!("fn function{n}(n: int) = functoin{n}(n)\n")));
    for source in sources {
        compile(&source);
    }
}

fn chain(start: &str, count: usize, link: impl Fn(usize) -> String) -> String {
    let mut source = start.replace("{{", "{").replace("}}", "}");
    (0..count).for_each(|number| source.push_str(&link(number)));
    source
}
