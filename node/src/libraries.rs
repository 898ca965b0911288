//! The libraries of an app, read from the folder of its file.

use std::path::{Path, PathBuf};

use crate::source::{self, SourceError};

/// Gives the compiler the libraries of an app: files in the folder of its file and below, wherever links lead.
pub fn beside(app: &Path) -> impl FnMut(&str) -> Result<String, String> + use<> {
    let folder = match app.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    move |path| read(&folder, path)
}

fn read(folder: &Path, path: &str) -> Result<String, String> {
    let said = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => format!("there is no file {}", folder.join(path).display()),
        std::io::ErrorKind::PermissionDenied => {
            format!("{error}: let whoever runs this read {}", folder.join(path).display())
        }
        _ => error.to_string(),
    };
    let inside = folder.canonicalize().map_err(said)?;
    let file = inside.join(path).canonicalize().map_err(said)?;
    if !file.starts_with(&inside) {
        return Err(format!("it leads out of {}, to {}", folder.display(), file.display()));
    }
    source::read(&file).map_err(|error| match error {
        SourceError::System(error) => said(error),
        error => error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use weft::SOURCE_BYTES_MAX;

    use super::*;

    #[test]
    fn only_files_below_the_folder_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        std::fs::create_dir_all(root.join("app/lib")).unwrap();
        std::fs::write(root.join("outside.weft"), "library outside").unwrap();
        std::fs::write(root.join("app/near.weft"), "library near").unwrap();
        std::fs::write(root.join("app/lib/far.weft"), "library far").unwrap();
        std::fs::write(root.join("app/latin.weft"), [b'a', 0xe9]).unwrap();
        std::fs::write(root.join("app/large.weft"), vec![b' '; SOURCE_BYTES_MAX + 1]).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(root.join("outside.weft"), root.join("app/link.weft")).unwrap();
        let mut read = beside(&root.join("app/a.weft"));
        assert_eq!(read("near.weft").unwrap(), "library near");
        assert_eq!(read("lib/far.weft").unwrap(), "library far");
        let mut check = |path: &str, expected: &str| {
            let why = read(path).unwrap_err();
            assert!(why.contains(expected), "{path}: {why}");
        };
        check("none.weft", "there is no file");
        check("lib", "it is a folder");
        check("latin.weft", "byte 1 of it is not UTF-8");
        check("large.weft", "it has more than 1048576 bytes, the most");
        #[cfg(unix)]
        check("link.weft", "it leads out of");
        check("../outside.weft", "it leads out of");
    }

    #[test]
    fn an_app_is_kept_with_its_libraries() {
        let folder = tempfile::tempdir().unwrap();
        let (app, library) = (folder.path().join("a.weft"), folder.path().join("b.weft"));
        std::fs::write(&app, "app a\nuse \"b.weft\" as b\nview v = b.f(1)\n").unwrap();
        std::fs::write(&library, "library b\nfn f(n: int) = n\n").unwrap();
        let sources = crate::compile(std::slice::from_ref(&app)).unwrap();
        let kept = weft::Sources::from_text(&sources[0].text);
        assert_eq!(kept.libraries["b.weft"], "library b\nfn f(n: int) = n\n");
        let wrong = crate::compile(&[library]).unwrap_err().to_string();
        assert!(wrong.contains("this is a library, not an app"), "{wrong}");
        std::fs::write(folder.path().join("b.weft"), "library b\nfn f(n: int) = m\n").unwrap();
        let wrong = crate::compile(&[app]).unwrap_err().to_string();
        assert!(wrong.contains("b.weft:2:16") && wrong.contains("fn f(n: int) = m"), "{wrong}");
    }
}
