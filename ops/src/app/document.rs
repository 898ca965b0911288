//! `selvedge app doc`: what an app takes and gives.

use std::path::Path;
use std::process::ExitCode;

use serde_json::Value;

use crate::output::Output;

/// Writes the document that was asked for to standard output.
///
/// # Errors
/// The file cannot be read, the app is not right, or nobody reads any more.
pub fn run(file: &Path, openapi: bool, json_schema: bool, output: &mut Output) -> anyhow::Result<ExitCode> {
    let (module, source) = super::checked(file)?;
    let text = if openapi {
        format!("{:#}", weft::document::open_api(&module, &source))
    } else if json_schema {
        format!("{:#}", weft::document::json_schema(&module, &source))
    } else {
        weft::document::markdown(&module, &source).trim_end().to_owned()
    };
    output.say(|| text, || Value::Null)?;
    Ok(ExitCode::SUCCESS)
}
