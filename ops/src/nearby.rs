//! What a path that leads nowhere likely meant: a neighbour with almost the same name.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use ::node::source::{NoFile, SourceError};

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
    // An ending that they share makes no two names alike.
    let (stem, ending) = (path.file_stem()?.to_str()?, path.extension());
    let shares = |neighbour: &&String| ending.is_some() && Path::new(neighbour).extension() == ending;
    let stems = neighbours.iter().filter(shares).filter_map(|one| Path::new(one).file_stem()?.to_str());
    if let (Some(near), Some(ending)) = (::node::suggest(stem, stems), ending) {
        return Some(path.with_file_name(near).with_extension(ending));
    }
    let others = neighbours.iter().filter(|neighbour| !shares(neighbour)).map(String::as_str);
    Some(path.with_file_name(::node::suggest(name, others)?))
}

/// What to do about a source that was not read, where its error cannot know it.
pub fn advice(path: &Path, error: &SourceError) -> Option<String> {
    let is_source = |path: &Path| path.extension().is_some_and(|extension| extension == "weft");
    match error {
        SourceError::System(error) if error.kind() == ErrorKind::NotFound => {
            meant(path, is_source).map(|near| format!("did you mean {}?", near.display()))
        }
        SourceError::System(error) if error.kind() == ErrorKind::PermissionDenied => {
            Some("let the user who runs this read it".to_owned())
        }
        SourceError::NoFile(NoFile::Folder) => {
            let entries = fs::read_dir(path).ok()?.take(NEIGHBOURS_MAX);
            let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
            paths.filter(|path| is_source(path)).min().map(|one| format!("such as {}", one.display()))
        }
        _ => None,
    }
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
        for name in ["bom.weft", "score.weft", "a.weft"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        check("nope.weft", None);
        check("b.weft", None);
        check("scores.weft", Some("score.weft"));
        check("bob.weft", Some("bom.weft"));
        check("bom.wef", Some("bom.weft"));
        check("elsewhere", None);
        check("none/ann", None);
    }

    #[test]
    fn a_source_that_is_not_read_comes_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_owned();
        let said = |path: &Path, error: SourceError| advice(path, &error);
        let system = |kind: ErrorKind| SourceError::System(kind.into());
        assert_eq!(said(&path, SourceError::NoFile(NoFile::Folder)), None);
        for name in ["b.weft", "a.txt", "c.weft"] {
            fs::write(path.join(name), "").unwrap();
        }
        let such = format!("such as {}", path.join("b.weft").display());
        assert_eq!(said(&path, SourceError::NoFile(NoFile::Folder)), Some(such));
        let meant = format!("did you mean {}?", path.join("b.weft").display());
        assert_eq!(said(&path.join("bb.weft"), system(ErrorKind::NotFound)), Some(meant));
        assert_eq!(said(&path.join("elsewhere.weft"), system(ErrorKind::NotFound)), None);
        let read = Some("let the user who runs this read it".to_owned());
        assert_eq!(said(&path.join("b.weft"), system(ErrorKind::PermissionDenied)), read);
        assert_eq!(said(&path.join("b.weft"), SourceError::Large), None);
    }
}
