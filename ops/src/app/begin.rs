//! `selvedge app new`: an app to begin with.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use serde_json::json;

use crate::output::Output;

/// The app that everybody begins with; its name, `notes`, stands for the one that was asked for.
const SOURCE: &str = include_str!("template/notes.weft");
const README: &str = include_str!("template/README.md");
/// What a name may be long, in characters: it is a folder, a file and a part of addresses.
const NAME_CHARACTERS_MAX: usize = 64;

/// Makes the folder, the app and its README.
///
/// # Errors
/// The name is none, something of that name is there, or it cannot be written.
pub fn run(name: &str, dir: &Path, output: &mut Output) -> anyhow::Result<ExitCode> {
    let source = source(name)?;
    let folder = dir.join(name);
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let app = folder.join(format!("{name}.weft"));
    let readme = folder.join("README.md");
    let there = [&app, &readme].into_iter().find(|file| file.symlink_metadata().is_ok());
    if let Some(there) = there {
        bail!("{} is there already, and nothing is overwritten: choose another name", there.display());
    }
    write_new(&app, &source)?;
    let readme_text =
        README.replace("# notes", &format!("# {name}")).replace("notes.weft", &format!("{name}.weft"));
    write_new(&readme, &readme_text)?;
    let app = app.display().to_string();
    output.say(
        || format!("{app} is there. Try it: selvedge app run {app}"),
        || json!({ "app": app, "readme": readme }),
    )?;
    Ok(ExitCode::SUCCESS)
}

/// The source of the new app, which is right and has the one layout.
fn source(name: &str) -> anyhow::Result<String> {
    let letters = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase());
    if !letters || !begins || name.len() > NAME_CHARACTERS_MAX {
        bail!(
            "{name:?} is no name of an app: it begins with a small letter, goes on with small letters, digits and _, \
             and has at most {NAME_CHARACTERS_MAX} characters"
        );
    }
    let source =
        SOURCE.replacen("app notes", &format!("app {name}"), 1).replace("/notes/", &format!("/{name}/"));
    let source = source.replace("notes.weft", &format!("{name}.weft"));
    if let Err(wrong) = weft::compile(&source, &format!("{name}.weft")) {
        bail!("{name:?} cannot be the name of an app\n{}", wrong.to_string().trim_end());
    }
    Ok(source)
}

fn write_new(file: &Path, text: &str) -> anyhow::Result<()> {
    let opened = OpenOptions::new().write(true).create_new(true).open(file);
    let written = opened.and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => anyhow::anyhow!("{} is there already", file.display()),
        _ => anyhow::Error::from(error).context(format!("cannot write {}", file.display())),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_app_is_right_and_laid_out() {
        for name in ["notes", "a", "a_2"] {
            let source = source(name).unwrap();
            assert_eq!(weft::format::format(&source, "new.weft").unwrap(), source);
            let module = weft::compile(&source, "new.weft").unwrap();
            assert_eq!(module.name, name);
            let results = engine::testing::run(&std::sync::Arc::new(module), &|_| true);
            assert!(!results.is_empty());
            for result in results {
                assert_eq!(result.outcome, engine::testing::Outcome::Passed, "{}", result.name);
            }
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for name in ["", "Notes", "2", "my-app", "../up", "a/b", "é", "for", &"a".repeat(65)] {
            assert!(source(name).is_err(), "{name}");
        }
    }

    #[test]
    fn nothing_is_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let mut output = Output::new(true);
        run("notes", folder.path(), &mut output).unwrap();
        let app = folder.path().join("notes/notes.weft");
        std::fs::write(&app, "mine").unwrap();
        let said = run("notes", folder.path(), &mut output).unwrap_err().to_string();
        assert!(said.contains("is there already"), "{said}");
        assert_eq!(std::fs::read_to_string(&app).unwrap(), "mine");
        std::fs::remove_file(&app).unwrap();
        assert!(run("notes", folder.path(), &mut output).is_err(), "the README is not overwritten either");
        assert!(!app.exists());
    }
}
