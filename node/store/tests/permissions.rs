//! What others may use is refused. In a file of its own: a child that is being started has this process's locks for an
//! instant, and other tests of the folder would meet it.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use store::{Folder, StoreError, write_whole};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn what_others_may_use_is_refused_with_the_command_that_mends_it() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("it's");
    let mut folder = Folder::open(&path).unwrap();
    write_whole(&mut folder, "identity", b"secret").unwrap();
    drop(folder);
    for (file, loose) in [(path.clone(), 0o750), (path.clone(), 0o701), (path.join("identity"), 0o640)] {
        let right = mode(&file);
        set_mode(&file, loose);
        let error = Folder::open(&path).unwrap_err();
        let StoreError::Permissions { command, .. } = &error else { panic!("{error}") };
        let done = std::process::Command::new("sh").arg("-c").arg(command).status().unwrap();
        assert!(done.success() && mode(&file) == right, "{command}");
        Folder::open(&path).unwrap();
    }
}
