//! What a path that leads nowhere likely meant: a neighbour with almost the same name.

use std::fs;
use std::path::{Path, PathBuf};

/// In a folder with more, nobody is helped by a guess.
const NEIGHBOURS_MAX: usize = 1000;

/// The neighbour of a path that has almost its name and is of the kind that was wanted.
pub fn meant(path: &Path, wanted: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let neighbours: Vec<String> = fs::read_dir(parent)
        .ok()?
        .take(NEIGHBOURS_MAX)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|neighbour| wanted(&parent.join(neighbour)))
        .collect();
    let near = ::node::suggest(name, neighbours.iter().map(String::as_str))?;
    Some(path.with_file_name(near))
}

/// The first file in a folder, by name, with an extension.
pub fn first(folder: &Path, extension: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?.take(NEIGHBOURS_MAX);
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.filter(|path| path.extension().is_some_and(|found| found == extension)).min()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_neighbour_of_the_wanted_kind_is_meant() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["ann", "bob"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        fs::write(folder.path().join("annn.txt"), "").unwrap();
        let check = |name: &str, expected: Option<&str>| {
            let found = meant(&folder.path().join(name), Path::is_dir);
            assert_eq!(found, expected.map(|name| folder.path().join(name)), "{name}");
        };
        check("annn", Some("ann"));
        check("bo", Some("bob"));
        check("annn.tx", None);
        check("elsewhere", None);
        check("none/ann", None);
    }
}
