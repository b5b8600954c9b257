//! Data file: everything that a server stores, in an embedded database (redb).
//!
//! The file holds the present objects, the newest revision and the server's credentials; histories
//! of watches stay in memory. A commit is a single transaction of redb, so that a file is never
//! between two transactions, whenever the process ends.

// DESIGN.md, 147: The data file holds the present state, and answers wait for shared commits

mod read;
#[cfg(test)]
mod tests;
mod write;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use redb::{Database, DatabaseError, StorageError, TableDefinition};

use crate::files;
use crate::storage::Backup;

pub(crate) use write::Writer;

/// Objects: resource and key, then the revision and the object as JSON.
const OBJECTS: TableDefinition<'_, (&str, &str), (u64, &[u8])> = TableDefinition::new("objects");
/// Numbers of the whole file: `FORMAT` and `REVISION`.
const NUMBERS: TableDefinition<'_, &str, u64> = TableDefinition::new("numbers");
/// Keys, certificates and tokens by name.
const CREDENTIALS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("credentials");

/// Name of the number of the tables' layout.
const FORMAT: &str = "format";
/// Name of the number of the newest revision.
const REVISION: &str = "revision";
/// Layout of the tables that this program reads and writes.
const LAYOUT: u64 = 1;

/// Bytes of pages that the database keeps in memory: all objects are in memory already.
const CACHE: usize = 16 << 20;

/// Keys, certificates and tokens of a server, by name.
pub(crate) type Credentials = BTreeMap<String, Vec<u8>>;

/// An open data file and its content. The `Debug` output shows no object and no key.
pub(crate) struct DataFile {
    database: Database,
    path: PathBuf,
    /// All objects and the newest revision; `None` for a new file.
    pub(crate) state: Option<Backup>,
    /// The server's credentials; empty for a new file.
    pub(crate) credentials: Credentials,
}

impl std::fmt::Debug for DataFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DataFile").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Returns the error about a data file.
fn failed(path: &Path, why: impl std::fmt::Display) -> io::Error {
    io::Error::other(format!("cannot use the data file {}: {why}", path.display()))
}

impl DataFile {
    /// Opens a data file, or creates one that only the owner may read, and reads the file. Blocks
    /// the thread.
    ///
    /// # Errors
    /// The file cannot be opened, is open in another server, is damaged, or no data file.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        // The database asserts conditions that a damaged file breaks.
        let opened = catch_unwind(AssertUnwindSafe(|| Self::try_open(path)));
        opened.unwrap_or_else(|_| Err(failed(path, DAMAGED)))
    }

    fn try_open(path: &Path) -> io::Result<Self> {
        let (file, is_new) = file(path)?;
        let create = || Database::builder().set_cache_size(CACHE).create_file(file);
        let mut database = create().map_err(|error| failed(path, explain(&error)))?;
        let is_whole = database.check_integrity().map_err(|error| failed(path, explain(&error)))?;
        if !is_whole {
            return Err(failed(path, REPAIRED));
        }
        if is_new {
            // Otherwise a power failure could take the new file's name with all its content.
            sync_folder(path).map_err(|error| failed(path, error))?;
        }
        let (state, credentials) = read::all(&database).map_err(|why| failed(path, why))?;
        Ok(Self { database, path: path.to_owned(), state, credentials })
    }

    /// Stores the server's credentials. Blocks the thread.
    pub(crate) fn keep(&mut self, credentials: Credentials) -> io::Result<()> {
        write::credentials(&self.database, &credentials)
            .map_err(|error| failed(&self.path, error))?;
        self.credentials = credentials;
        Ok(())
    }
}

/// Text about a file whose contents are not those of a database.
const DAMAGED: &str =
    "it is damaged or no data file of this program; restore a copy, or name another file";
/// Text about a file that lost commits.
const REPAIRED: &str = "it was damaged, and its last commits are lost; the state before them is in place \
     and is served at the next start, unless you restore a copy";

/// Returns the reason why a file cannot be opened.
fn explain(error: &DatabaseError) -> String {
    match error {
        DatabaseError::DatabaseAlreadyOpen => {
            "another server has it open; stop that server, or name another file".to_owned()
        }
        DatabaseError::Storage(StorageError::Corrupted(why)) => format!("{DAMAGED} ({why})"),
        DatabaseError::Storage(StorageError::Io(error))
            if matches!(
                error.kind(),
                io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof
            ) =>
        {
            DAMAGED.to_owned()
        }
        DatabaseError::UpgradeRequired(_) => {
            format!("a version of this program before the present database wrote it: {error}")
        }
        other => other.to_string(),
    }
}

/// Opens a file for reading and writing; returns whether it is new.
fn file(path: &Path) -> io::Result<(File, bool)> {
    let is_new = !path.exists();
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let file = files::open(path, &mut options).map_err(|error| failed(path, error))?;
    Ok((file, is_new))
}

/// Makes the name of a new file durable.
#[cfg(unix)]
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Makes the name of a new file durable: not known on this system.
#[cfg(not(unix))]
fn sync_folder(_path: &Path) -> io::Result<()> {
    Ok(())
}
