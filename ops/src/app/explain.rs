//! `selvedge app explain`: what a diagnostic's code means.

use std::process::ExitCode;

use serde_json::json;
use weft::diagnostics::Code;
use weft::explain::{Page, code, page};

use crate::output::Output;

/// Explains one code, or lists all.
///
/// # Errors
/// There is no such code, or nobody reads any more.
pub fn run(asked: Option<&str>, output: &mut Output) -> anyhow::Result<ExitCode> {
    let Some(asked) = asked else {
        for code in Code::ALL {
            let (text, title) = (code.text(), code.title());
            output.say(|| format!("{text}  {title}"), || json!({ "code": text, "title": title }))?;
        }
        return Ok(ExitCode::SUCCESS);
    };
    let code = code(asked).map_err(|none| anyhow::anyhow!("{none} (`selvedge app explain` lists all)"))?;
    let page = page(code).ok_or_else(|| anyhow::anyhow!("{} has no page in this version", code.text()))?;
    output.say(
        || shown(&page),
        || {
            json!({
                "code": code.text(),
                "title": code.title(),
                "text": page.text,
                "wrong": page.wrong,
                "right": page.right,
            })
        },
    )?;
    Ok(ExitCode::SUCCESS)
}

fn shown(page: &Page) -> String {
    let indented = |source: &str| source.lines().map(|line| format!("    {line}\n")).collect::<String>();
    // The very diagnostic that the wrong source gives.
    let said = weft::check_with(page.wrong, "wrong.weft", &mut |_| Err("there is no such file".into()));
    let said =
        said.map_or_else(|said| said, |module| weft::warnings(&module, page.wrong, "wrong.weft")).to_string();
    let said = said.split("\n\n").next().unwrap_or_default();
    format!(
        "{}: {}\n\n{}\n\nThis is wrong:\n\n{}\nIt says:\n\n{}\nThis is right:\n\n{}",
        page.code.text(),
        page.code.title(),
        page.text,
        indented(page.wrong),
        indented(said),
        indented(page.right).trim_end()
    )
}
