//! What suites have in common: sizes, the figures by their names, and how one is measured at all sizes.

use crate::figure::{Declared, Figure, Series};
use crate::pairs::{self, Contender, Length};
use crate::{BenchError, Extent};
use serde_json::{Map, Value};

/// Of this size, in short runs of another one.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// How much of what the figure is of.
    pub units: usize,
    /// Whether it is judged.
    pub length: Length,
}

/// Measures a figure at all sizes. `named` says what a size is; `contenders` loads them for one.
pub fn measure(
    declared: Declared,
    sizes: &[Size],
    named: impl Fn(usize) -> String,
    contenders: impl Fn(usize) -> Result<Vec<Box<dyn Contender>>, BenchError>,
    settings: Map<String, Value>,
) -> Result<Figure, BenchError> {
    let mut judged = None;
    let mut growth = Vec::new();
    for size in sizes {
        let mut contenders = contenders(size.units)?;
        let series = pairs::run(&declared, named(size.units), &mut contenders, size.length)?;
        match size.length {
            Length::Growth => growth.push(series),
            Length::Judged | Length::Short => judged = Some(series),
        }
    }
    let none = || Series { size: named(0), names: Vec::new(), counter: declared.counter, pairs: Vec::new() };
    let short = sizes.iter().any(|size| size.length == Length::Short);
    Ok(Figure { declared, judged: judged.unwrap_or_else(none), growth, settings, short })
}

/// The judged size and others around it, or a tiny one.
pub fn sizes(extent: Extent, tiny: usize, judged: usize, growth: &[usize]) -> Vec<Size> {
    if extent == Extent::Short {
        return vec![Size { units: tiny, length: Length::Short }];
    }
    let growth = if extent == Extent::Once { &[] } else { growth };
    let growth = growth.iter().map(|units| Size { units: *units, length: Length::Growth });
    [Size { units: judged, length: Length::Judged }].into_iter().chain(growth).collect()
}

/// Takes what came of a figure.
pub type Show<'s> = &'s mut dyn FnMut(&Declared, Result<Figure, BenchError>) -> Result<(), BenchError>;

/// A figure and how it is measured.
pub type Measured = (Declared, fn(Declared, Extent) -> Result<Figure, BenchError>);

/// Measures the named figures, or all, in the order of the table. One that fails is shown as failed, and the rest go on.
pub fn run(figures: &[Measured], names: &[String], extent: Extent, show: Show<'_>) -> Result<(), BenchError> {
    if let Some(name) = names.iter().find(|name| figures.iter().all(|(declared, _)| declared.name != **name))
    {
        let there: Vec<&str> = figures.iter().map(|(declared, _)| declared.name).collect();
        return Err(BenchError::NoSuch { name: name.clone(), there: there.join(", ") });
    }
    for (declared, measure) in figures {
        if names.is_empty() || names.iter().any(|name| name == declared.name) {
            show(declared, measure(*declared, extent))?;
        }
    }
    Ok(())
}

/// What else describes a run.
pub fn settings(of: &[(&str, Value)]) -> Map<String, Value> {
    of.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}
