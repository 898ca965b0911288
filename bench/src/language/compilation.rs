//! `compile_1000`: checking and compiling an app of 1,000 lines.

use super::{settings, sizes};
use crate::figure::{Bar, Better, Declared, Figure};
use crate::pairs::{Contender, repeat};
use crate::{BenchError, Extent};
use serde_json::json;

/// What the generated app is made of, over and over: a record with its cases, handlers, helpers, views and test.
const BLOCK: &str = include_str!("block.weft");
/// Stands in the block for a name of its own; the second one begins with a capital.
const NAMES: [(&str, &str); 2] = [("thing", "thing"), ("Thing", "Thing")];

pub const COMPILE_1000: Declared = Declared {
    name: "compile_1000",
    unit: "ms",
    better: Better::Lower,
    counter: false,
    bars: &[Bar { of: "ours", against: None, limit: 20.0 }],
};

pub fn measure(declared: Declared, extent: Extent) -> Result<Figure, BenchError> {
    let contenders = |lines: usize| -> Result<Vec<Box<dyn Contender>>, BenchError> {
        Ok(vec![Box::new(Compilation::new(lines))])
    };
    let settings =
        settings(&[("bytes", json!(source(1_000).len())), ("doors", json!(doors_of(&source(1_000))?))]);
    let sizes = sizes(extent, 100, 1_000, &[100, 10_000]);
    super::measure(declared, &sizes, |lines| format!("{lines} lines"), contenders, settings)
}

/// An app of so many lines: whole blocks, then comments.
fn source(lines: usize) -> String {
    let mut source = String::from("app generated\n");
    let blocks = (lines - 1) / BLOCK.lines().count();
    for block in 0..blocks {
        let mut text = BLOCK.to_owned();
        for (name, stem) in NAMES {
            text = text.replace(name, &format!("{stem}{block}"));
        }
        source.push_str(&text);
    }
    for line in source.lines().count()..lines {
        source.push_str(&format!("// line {line}\n"));
    }
    source
}

/// How many inputs and views an app has; that it compiles and passes its tests.
fn doors_of(source: &str) -> Result<usize, BenchError> {
    let module = compile(source)?;
    Ok(module.inputs.len() + module.views.len())
}

fn compile(source: &str) -> Result<weft::Module, BenchError> {
    weft::compile(source, "generated.weft").map_err(|errors| BenchError::Compile(errors.to_string()))
}

struct Compilation {
    source: String,
}

impl Compilation {
    fn new(lines: usize) -> Compilation {
        Compilation { source: source(lines) }
    }
}

impl Contender for Compilation {
    fn name(&self) -> String {
        "ours".into()
    }

    fn trial(&mut self, _: usize) -> Result<f64, BenchError> {
        let blocks = self.source.matches("\ntest ").count();
        let (times, elapsed) = repeat(|_| {
            let module = compile(&self.source)?;
            BenchError::unless("the compiler", blocks, module.tests.len())
        })?;
        Ok(elapsed.as_secs_f64() * 1e3 / times as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::testing::{self, Outcome};
    use std::sync::Arc;

    #[test]
    fn the_generated_app_works_and_has_its_lines() {
        let source = source(300);
        assert_eq!(source.lines().count(), 300);
        let module = Arc::new(compile(&source).unwrap());
        let results = testing::run(&module, &|_| true);
        assert_eq!(results.len(), 3);
        for result in results {
            assert_eq!(result.outcome, Outcome::Passed, "{}", result.name);
        }
    }
}
