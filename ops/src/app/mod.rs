//! `selvedge app`: writing apps. Nothing here needs a node.
//!
//! `arguments` is what can be asked; a module for each command does it. The language is `weft`'s and running is
//! `engine`'s: what is here reads files, shows, and writes. `position` turns bytes of a source into lines and columns,
//! `difference` shows what is not the same in two values.

pub mod arguments;
mod begin;
mod check;
mod difference;
mod document;
mod explain;
mod format;
mod language_server;
mod plan;
mod position;
mod run;
mod session;
mod test;

use std::path::Path;
use std::process::ExitCode;

use crate::app::arguments::AppCommand;
use crate::nearby;
use crate::output::Output;

/// Does what was asked for.
///
/// # Errors
/// Why it was not done.
pub fn run(command: AppCommand, output: &mut Output) -> anyhow::Result<ExitCode> {
    match command {
        AppCommand::Check { files, deny_warnings, queries } => {
            check::run(&files.files, &check::Wanted { deny_warnings, queries }, output)
        }
        AppCommand::Fmt { files, check } => format::run(&files.files, check, output),
        AppCommand::Explain { code, .. } => explain::run(code.as_deref(), output),
        AppCommand::New { name, dir, .. } => begin::run(&name, &dir, output),
        AppCommand::Run(file) => run::run(&file.file, output),
        AppCommand::Test { files, filter } => test::run(&files.files, filter.as_deref(), output),
        AppCommand::Plan { file, new: Some(new), .. } => plan::of_files(&file, &new, output),
        AppCommand::Plan { file, backup: Some(backup), .. } => plan::of_backup(&file, &backup, output),
        AppCommand::Plan { file, node, .. } => plan::of_node(&file, &node.unwrap_or_default(), output),
        AppCommand::Doc { file, openapi, json_schema } => document::run(&file, openapi, json_schema, output),
        AppCommand::Lsp => language_server::run(),
    }
}

/// Reads a source.
fn read(path: &Path) -> anyhow::Result<String> {
    node::source::read(path).map_err(|error| {
        let advice = nearby::advice(path, &error).map_or_else(String::new, |advice| format!("; {advice}"));
        anyhow::anyhow!("cannot read {}: {error}{advice}", path.display())
    })
}

/// Reads and checks an app or a library.
fn checked(path: &Path) -> anyhow::Result<(weft::Module, String)> {
    let source = read(path)?;
    let name = path.display().to_string();
    let module = weft::check_with(&source, &name, &mut node::libraries::beside(path))
        .map_err(|wrong| anyhow::anyhow!("the app is not right\n{}", wrong.to_string().trim_end()))?;
    Ok((module, source))
}
