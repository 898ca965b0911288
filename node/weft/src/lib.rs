//! Weft, the app language: one source file in, a checked [`Module`] or all of the file's [`Diagnostics`] out.
//!
//! Must not know: the engine, a node, a file, a clock, a random source. It is handed text and returns data.
//!
//! How the parts meet: `syntax` turns text into a tree and recovers from errors; `check` resolves names, types and
//! effects and lowers each function to the typed register code of [`code`]; [`module`] is what comes out, and
//! [`value`] what constants in it and the engine's registers are made of. [`diagnostics`] says what is wrong,
//! and [`explain`] says it at length; `warnings` finds what is right and likely not meant. Beside the compiler, [`format`](mod@format) lays a source out, [`outline`] tells what
//! one declares without checking it, [`document`] makes documents of an app, [`change`]
//! plans the way from one version of an app to the next; [`syntax::parse`] gives the tree itself.

pub mod change;
mod check;
pub mod code;
pub mod diagnostics;
pub mod document;
pub mod explain;
pub mod format;
mod libraries;
pub mod module;
pub mod outline;
pub mod syntax;
pub mod value;
mod warnings;

pub use diagnostics::Diagnostics;
pub use libraries::{LIBRARIES_MAX, Loader, PATH_BYTES_MAX, Sources, USE_DEPTH_MAX, library_path};
pub use module::Module;
pub use value::Value;

use diagnostics::{Code, Diagnostic, Report, Span};

/// The largest source: a thousand times the largest app of the design, and bounds what compiling costs.
pub const SOURCE_BYTES_MAX: usize = 1 << 20;

/// Checks and compiles the text of one app that uses no library. `file` is the name that diagnostics show.
///
/// # Errors
/// Every error of the file, in the order of the text.
pub fn compile(source: &str, file: &str) -> Result<Module, Diagnostics> {
    compile_with(source, file, &mut |_| Err("there are no libraries here".into()))
}

/// Checks and compiles the text of one app, whose libraries the loader reads.
///
/// # Errors
/// Every error of the file and of its libraries; that it is itself a library.
pub fn compile_with(source: &str, file: &str, loader: &mut Loader<'_>) -> Result<Module, Diagnostics> {
    read(source, file, loader, true)
}

/// Checks and compiles the text of an app or a library: a library's module has types, functions and tests alone.
///
/// # Errors
/// Every error of the file and of the libraries that it uses.
pub fn check_with(source: &str, file: &str, loader: &mut Loader<'_>) -> Result<Module, Diagnostics> {
    read(source, file, loader, false)
}

fn read(source: &str, file: &str, loader: &mut Loader<'_>, must_be_app: bool) -> Result<Module, Diagnostics> {
    let mut report = Report::default();
    if source.len() > SOURCE_BYTES_MAX {
        let message = format!("the file has {} bytes; an app has at most {SOURCE_BYTES_MAX}", source.len());
        report.push(Diagnostic::new(Code::TooLarge, Span::default(), message));
        return Err(report.finish("", file));
    }
    let loaded = libraries::load(source, file, loader, &mut report);
    let checked = check::check(&loaded, must_be_app, report);
    match checked {
        Ok(mut module) => {
            module.sources = loaded.sources;
            Ok(module)
        }
        Err(report) => Err(report.finish_files(loaded.files)),
    }
}

/// The types of the names and fields in an app or a library, where they stand, as far as it is right: for editors.
pub fn types(source: &str, file: &str, loader: &mut Loader<'_>) -> Vec<(Span, String)> {
    let mut report = Report::default();
    if source.len() > SOURCE_BYTES_MAX {
        return Vec::new();
    }
    let loaded = libraries::load(source, file, loader, &mut report);
    check::types(&loaded, report)
}

/// What is likely not meant in an app, given what compiling its source gave. `file` is the name that diagnostics show.
pub fn warnings(module: &Module, source: &str, file: &str) -> Diagnostics {
    let mut report = Report::default();
    if source.len() > SOURCE_BYTES_MAX {
        return report.finish("", file);
    }
    let tree = syntax::parser::parse(source, &mut report);
    if !report.is_empty() {
        return Report::default().finish(source, file);
    }
    warnings::find(module, source, &tree, &mut report);
    report.finish(source, file)
}
