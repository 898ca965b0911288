//! The real folder: owner, permissions, and the log on a disk.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use store::{Change, Folder, Log, Storage, StoreError, write_whole};

fn change(number: u8) -> Change {
    Change { list: 1, key: vec![number], row: Some(vec![number; 100]) }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_log_on_a_disk_is_there_again() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("node");
    for run in 1..4_u8 {
        let mut replayed = Vec::new();
        let folder = Folder::open(&path).unwrap();
        let (mut log, opened) = Log::open(folder, [run; 32], &mut |change| replayed.push(change)).unwrap();
        assert_eq!(opened.run, u64::from(run));
        assert_eq!(replayed, (1..run).map(change).collect::<Vec<_>>());
        let appended = log.append(opened.next_sequence, &[change(run)]).unwrap();
        assert_eq!(log.sync(appended).unwrap().sequence(), opened.next_sequence);
        write_whole(log.storage(), "beside", &[run]).unwrap();
    }
    assert_eq!(fs::read(path.join("beside")).unwrap(), [3]);
    assert_eq!(mode(&path), 0o700);
    for entry in fs::read_dir(&path).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
}

#[test]
fn a_second_owner_is_refused_with_the_pid_of_the_first() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("node");
    assert_eq!(Folder::owner(&path).unwrap(), None);
    let folder = Folder::open(&path).unwrap();
    let pid = std::process::id();
    let error = Folder::open(&path).unwrap_err();
    assert!(matches!(error, StoreError::Locked { pid: Some(owner), .. } if owner == pid));
    assert!(error.to_string().contains(&format!("is in use by process {pid}")), "{error}");
    assert_eq!(Folder::owner(&path).unwrap(), Some(pid));
    drop(folder);
    assert_eq!(Folder::owner(&path).unwrap(), None);
    Folder::open(&path).unwrap();
}

#[test]
fn what_is_no_folder_and_names_that_are_no_names_are_refused() {
    let parent = tempfile::tempdir().unwrap();
    let file = parent.path().join("file");
    fs::write(&file, "x").unwrap();
    set_mode(&file, 0o600);
    let error = Folder::open(&file).unwrap_err();
    assert!(error.to_string().contains("file is a file, not a folder"), "{error}");
    assert!(matches!(Folder::open(&file.join("below")), Err(StoreError::Io { .. })));
    let mut folder = Folder::open(&parent.path().join("node")).unwrap();
    for name in ["", ".", "..", "a/b", "../file", "lock"] {
        assert!(folder.create(name).is_err(), "{name:?}");
    }
    assert_eq!(folder.list().unwrap(), Vec::<String>::new());
}

#[test]
fn only_a_new_or_empty_folder_is_taken() {
    let parent = tempfile::tempdir().unwrap();
    let missing = parent.path().join("missing");
    let error = Folder::open(&missing.join("node")).unwrap_err();
    assert!(matches!(&error, StoreError::NoParent { parent, .. } if *parent == missing), "{error}");
    assert!(!missing.exists());
    if cfg!(target_os = "linux") {
        // It is there, and takes no folders.
        let error = Folder::open(Path::new("/proc/none")).unwrap_err();
        assert!(matches!(&error, StoreError::CannotMake { .. }), "{error}");
    }

    let empty = parent.path().join("empty");
    fs::create_dir(&empty).unwrap();
    set_mode(&empty, 0o755);
    drop(Folder::open(&empty).unwrap());
    assert_eq!(mode(&empty), 0o700);

    let home = parent.path().join("home");
    fs::create_dir(&home).unwrap();
    fs::write(home.join("letter"), "x").unwrap();
    for loose in [0o755, 0o700] {
        set_mode(&home, loose);
        let error = Folder::open(&home).unwrap_err();
        assert!(
            error.to_string().ends_with("home is not empty and no node's folder: name a new or empty one")
        );
        assert_eq!((mode(&home), fs::read_dir(&home).unwrap().count()), (loose, 1));
    }
}
