//! `selvedge app fmt`: the one layout of a source.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use serde_json::json;

use crate::output::{Output, in_words};

/// Lays each file out, or says which would change.
///
/// # Errors
/// Nobody reads any more.
pub fn run(files: &[PathBuf], check: bool, output: &mut Output) -> anyhow::Result<ExitCode> {
    let mut all = true;
    for file in files {
        let name = file.display().to_string();
        match lay_out(file, check) {
            Ok(first) => {
                let changed = first.is_some();
                all &= !(check && changed);
                if changed || output.is_json() {
                    let line = first.unwrap_or_default();
                    let says = || match check {
                        true => format!(
                            "{name}:{line}: it has another layout from here; run `selvedge app fmt {name}`"
                        ),
                        false => format!("{name}: laid out"),
                    };
                    let mut programs = json!({ "file": name, "changed": changed });
                    if changed && check {
                        programs["line"] = line.into();
                    }
                    output.say(says, || programs)?;
                }
            }
            Err(error) => {
                all = false;
                let why = in_words(&error);
                if output.is_json() {
                    output.say(String::new, || json!({ "file": name, "error": why }))?;
                } else {
                    output.error(&why);
                }
            }
        }
    }
    Ok(if all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The first line of the file that has, or had, another layout, if one has.
fn lay_out(file: &Path, check: bool) -> anyhow::Result<Option<usize>> {
    let source = super::read(file)?;
    let formatted = weft::format::format(&source, &file.display().to_string()).map_err(|error| {
        anyhow::anyhow!("{} is left as it is\n{}", file.display(), error.to_string().trim_end())
    })?;
    let changed = first_changed(&source, &formatted);
    if changed.is_some() && !check {
        write_whole(file, &formatted).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(changed)
}

/// The first line in which two texts differ, counted from 1; the last one where only what ends it is missing.
fn first_changed(before: &str, after: &str) -> Option<usize> {
    let same = before.split('\n').zip(after.split('\n')).take_while(|(before, after)| before == after);
    (before != after).then(|| (same.count() + 1).min(before.lines().count().max(1)))
}

/// Replaces a file by one beside it, so that it is the old one or the new one whatever happens.
fn write_whole(file: &Path, text: &str) -> anyhow::Result<()> {
    // A link stays one: what it leads to is replaced.
    let file = file.canonicalize()?;
    let folder = file.parent().context("it is in no folder")?;
    // The name of the file beside it is nobody's: the folder's is.
    let mut beside = tempfile::NamedTempFile::new_in(folder).map_err(|error| {
        anyhow::anyhow!("no file can be made in its folder {}: {}", folder.display(), error.kind())
    })?;
    beside.write_all(text.as_bytes())?;
    beside.as_file().set_permissions(std::fs::metadata(&file)?.permissions())?;
    beside.as_file().sync_all()?;
    beside.persist(&file).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_keeps_its_mode() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.weft");
        std::fs::write(&file, "app   a\n").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
        let link = folder.path().join("link.weft");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(lay_out(&link, true).unwrap(), Some(1));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "app   a\n");
        assert_eq!(lay_out(&link, false).unwrap(), Some(1));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "app a\n");
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(lay_out(&file, false).unwrap(), None);
        for (text, line) in
            [("app a\n\n\n\nview v = 1\n", 3), ("app a\nview v = 1", 2), ("app a\nview  v = 1\n", 2)]
        {
            std::fs::write(&file, text).unwrap();
            assert_eq!(lay_out(&file, true).unwrap(), Some(line), "{text:?}");
        }
        std::fs::write(&file, "app a\n").unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left beside it");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_folder_that_takes_no_file_is_named() {
        let said = write_whole(Path::new("/proc/version"), "").unwrap_err();
        assert_eq!(in_words(&said), "no file can be made in its folder /proc: entity not found");
    }

    #[test]
    fn what_does_not_parse_is_left_with_its_diagnostics() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.weft");
        std::fs::write(&file, "app   a\nview = 1\n").unwrap();
        let said = lay_out(&file, false).unwrap_err().to_string();
        assert!(said.contains("is left as it is") && said.contains("error[W0004]"), "{said}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "app   a\nview = 1\n");
    }
}
