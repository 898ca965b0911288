//! The examples of the language's page compile, and so do the apps.

#[test]
fn every_example_compiles() {
    let page = include_str!("../../../docs/language.md");
    let examples: Vec<&str> = page
        .split("```weft\n")
        .skip(1)
        .map(|rest| rest.split_once("```").expect("the example is closed").0)
        .collect();
    assert!(examples.len() >= 3, "the page has {} examples", examples.len());
    for example in examples {
        weft::compile(example, "docs/language.md").unwrap_or_else(|wrong| panic!("{wrong}"));
    }
}

#[test]
fn the_messenger_has_a_shape() {
    let source = include_str!("../../../apps/messenger/messenger.weft");
    let module = weft::compile(source, "messenger.weft").unwrap_or_else(|wrong| panic!("{wrong}"));
    assert_eq!(
        module.shape(),
        "state contacts: list of Contact by node\n\
         state lines: list of Line by id\n\
         record Contact { node: node, name: text, verified: bool }\n\
         record Line { id: int, peer: node, mine: bool, number: int, text: text, at: time, progress: Progress, why: text }\n\
         enum Progress { waiting, delivered, read, refused }\n"
    );
    // What no row holds is not part of it.
    let more =
        format!("{source}\nenum Unused {{ a }}\nview more = [{{ l.id, twice: l.id * 2 }} for l in lines]\n");
    let more = weft::compile(&more, "more.weft").unwrap_or_else(|wrong| panic!("{wrong}"));
    assert_eq!(more.shape(), module.shape());
    let other = source.replace("why: text = \"\"", "why: text?");
    let other = weft::compile(&other, "other.weft").unwrap_or_else(|wrong| panic!("{wrong}"));
    assert_ne!(other.shape(), module.shape());
}
