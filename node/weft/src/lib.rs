//! Weft, the app language: one source file in, a checked [`Module`] or all of the file's [`Diagnostics`] out.
//!
//! Must not know: the engine, a node, a file, a clock, a random source. It is handed text and returns data.
//!
//! How the parts meet: [`syntax`] turns text into a tree and recovers from errors; `check` resolves names, types and
//! effects and lowers each function to the typed register code of [`code`]; [`module`] is what comes out, and
//! [`value`] the values that constants in it and the engine's registers are made of.

pub mod diagnostics;
pub mod module;

pub use diagnostics::Diagnostics;
pub use module::Module;

/// Checks and compiles the text of one app. `file` is the name that diagnostics show.
///
/// # Errors
/// Every error of the file, in the order of the text.
pub fn compile(source: &str, file: &str) -> Result<Module, Diagnostics> {
    let _ = (source, file);
    unimplemented!()
}
