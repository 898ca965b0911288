//! Any bytes as the source of an app: compiling, laying out, describing and explaining it neither panics nor hangs, a
//! layout is one that stays, and what compiles runs.

#![no_main]

use engine::{App, Context, Event};
use libfuzzer_sys::fuzz_target;
use sealing::NodeId;
use std::sync::Arc;
use weft::format::FormatError;
use weft::outline::Outline;
use weft::{Module, document, explain};

/// Offsets of a source that an editor asks about.
const LOOKS_MAX: usize = 4;

fuzz_target!(|bytes: &[u8]| {
    let source = String::from_utf8_lossy(bytes);
    let compiled = weft::compile(&source, "a.weft");
    let _ = weft::syntax::parse(&source, "a.weft");
    lay_out(&source, compiled.is_ok());
    look_at(&source);
    match compiled {
        Ok(module) => {
            let _ = weft::warnings(&module, &source, "a.weft").to_string();
            run(module, &source);
        }
        Err(diagnostics) => {
            let _ = diagnostics.to_string();
            for diagnostic in diagnostics.iter() {
                let page = explain::code(diagnostic.code.text()).ok().and_then(explain::page);
                assert!(page.is_some(), "{} has no page", diagnostic.code.text());
            }
        }
    }
});

/// A layout of what fits the grammar is its own layout, and means what the source means.
fn lay_out(source: &str, compiles: bool) {
    let laid_out = match weft::format::format(source, "a.weft") {
        Ok(laid_out) => laid_out,
        Err(FormatError::Syntax(_)) => return assert!(!compiles, "what compiles is not laid out"),
        Err(other) => panic!("{other}"),
    };
    assert_eq!(
        weft::format::format(&laid_out, "a.weft").ok().as_ref(),
        Some(&laid_out),
        "laid out again it is another"
    );
    assert!(!compiles || weft::compile(&laid_out, "a.weft").is_ok(), "laid out it does not compile any more");
}

fn look_at(source: &str) {
    let outline = Outline::new(source);
    for at in 0..LOOKS_MAX {
        let offset = source.floor_char_boundary(source.len() * at / LOOKS_MAX);
        let _ = (
            outline.hover(source, offset),
            outline.definitions(source, offset),
            outline.completions(source, offset),
        );
    }
}

fn run(module: Module, source: &str) {
    let _ = (
        document::markdown(&module, source),
        document::open_api(&module, source),
        document::json_schema(&module, source),
    );
    let module = Arc::new(module);
    let mut app = App::new(Arc::clone(&module), NodeId([9; 32]));
    app.resume(&[], 0);
    let context = Context { now: 1_700_000_000_000, entropy: [7; 32], room: 10 };
    // One of each: budgets bound them, but they are bounds for a second, not for a millisecond.
    for input in module.inputs.iter().take(1) {
        let before = app.snapshot().rows();
        let event = Event::Input { name: &input.name, arguments: b"{}", by: "fuzz" };
        if app.event(event, &context).is_err() {
            assert_eq!(app.snapshot().rows(), before, "a refused event left a trace");
        }
    }
    for view in module.views.iter().take(1) {
        let _ = app.snapshot().view(&view.name, &[], "fuzz", context.now);
    }
    let _ = app.event(Event::Due, &context);
}
