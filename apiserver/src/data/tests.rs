use std::path::PathBuf;
use std::sync::Arc;

use serde_json::json;

use super::{Credentials, DataFile, Writer};
use crate::storage::{Journal, Store};

/// A folder that is removed with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("windlass-data-{}-{name}", std::process::id()));
        drop(std::fs::remove_dir_all(&path));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("data")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// Opens a file and lets a store go on from that file.
fn store(file: DataFile) -> (Store, Writer) {
    let (store, journal) = (Store::new(), Arc::new(Journal::default()));
    store.load(file.state.as_ref().unwrap_or(&store.backup()), journal.clone());
    (store, Writer::start(file, journal, || {}).unwrap())
}

/// Opens a file with credentials, as in a server.
fn opened(folder: &Folder) -> DataFile {
    let mut file = DataFile::open(&folder.file()).unwrap();
    file.keep(Credentials::from([("token".to_owned(), b"t".to_vec())])).unwrap();
    file
}

#[tokio::test]
async fn a_store_goes_on_with_objects_and_versions_of_its_file() {
    let folder = Folder::new("goes-on");
    let (first, writer) = store(opened(&folder));
    let deep = (0..150).fold(json!(0.1 + 0.2), |inner, _| json!({"a": inner}));
    let x = first.put("a", "n/x", None, json!({"metadata": {}, "deep": deep})).unwrap();
    let y = first.put("a", "n/y", None, json!({"metadata": {}})).unwrap();
    first.remove("a", "n/y", &y).unwrap();
    first.durable().await;
    let revision = first.revision();
    drop(first);
    writer.closed().await;

    let file = opened(&folder);
    assert_eq!(file.credentials["token"], b"t");
    let (second, _writer) = store(file);
    assert_eq!(second.revision(), revision);
    assert_eq!(second.get("a", "n/x").unwrap().value, x.value);
    assert_eq!(second.get("a", "n/x").unwrap().revision, x.revision);
    assert!(second.get("a", "n/y").is_none());
    assert!(second.follow_from("a", revision - 1).is_err(), "the history is not kept");
    assert!(second.follow_from("a", revision).is_ok());
    assert_eq!(second.put("b", "z", None, json!({"metadata": {}})).unwrap().revision, revision + 1);
}

#[tokio::test]
async fn a_restored_backup_takes_the_place_of_everything_in_the_file() {
    let folder = Folder::new("restored");
    let (first, writer) = store(opened(&folder));
    first.put("a", "x", None, json!({"metadata": {}})).unwrap();
    let backup = first.backup();
    first.put("a", "y", None, json!({"metadata": {}})).unwrap();
    first.put("b", "y", None, json!({"metadata": {}})).unwrap();
    first.durable().await;
    first.restore(&backup);
    first.durable().await;
    drop(first);
    writer.closed().await;
    let state = opened(&folder).state.unwrap();
    assert_eq!(state.revision(), backup.revision());
    let names: Vec<_> =
        state.resources().iter().map(|(name, held)| (name.as_str(), held.size())).collect();
    assert_eq!(names, [("a", 1)]);
}

#[test]
fn a_file_that_another_server_has_open_is_refused() {
    let folder = Folder::new("two");
    let _first = opened(&folder);
    let error = DataFile::open(&folder.file()).unwrap_err().to_string();
    assert!(error.contains("another server has it open; stop that server"), "{error}");
    assert!(error.contains(folder.file().to_str().unwrap()), "{error}");
}

#[tokio::test]
async fn a_file_that_is_cut_or_changed_or_something_else_is_refused() {
    let folder = Folder::new("damaged");
    let (first, writer) = store(opened(&folder));
    let text = "a text that is changed on the disk".repeat(20);
    let mut held = None;
    for i in 0..50 {
        let value = json!({"metadata": {}, "text": format!("{text}{i}")});
        held = Some(
            first
                .put(
                    "a",
                    &format!("k{}", i % 40),
                    first.get("a", &format!("k{}", i % 40)).as_ref(),
                    value,
                )
                .unwrap(),
        );
    }
    drop(held);
    first.durable().await;
    drop(first);
    writer.closed().await;
    let whole = std::fs::read(folder.file()).unwrap();
    let mut changed = whole.clone();
    // All copies: some of them are in pages that are free.
    let places: Vec<usize> = whole
        .windows(9)
        .enumerate()
        .filter(|(_, w)| *w == b"a text th")
        .map(|(at, _)| at)
        .collect();
    assert!(places.len() >= 40);
    places.iter().for_each(|at| changed[*at] = b'A');
    for (name, bytes) in [
        ("cut", &whole[..whole.len() / 2]),
        ("short", &whole[..100]),
        ("changed", &changed[..]),
        ("another file", b"apiVersion: v1\nkind: Config\n"),
    ] {
        std::fs::write(folder.file(), bytes).unwrap();
        let error = DataFile::open(&folder.file()).map(drop).map_err(|error| error.to_string());
        let error = error.expect_err(name);
        assert!(
            error.contains("cannot use the data file") && error.contains("damaged"),
            "{name}: {error}"
        );
    }
    std::fs::write(folder.file(), &whole).unwrap();
    assert!(opened(&folder).state.is_some());
}

#[cfg(unix)]
#[test]
fn a_new_file_is_readable_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("mode");
    drop(opened(&folder));
    let mode = std::fs::metadata(folder.file()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
