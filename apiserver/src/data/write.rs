//! The thread that writes a data file.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use redb::{Database, WriteTransaction};
use tokio_util::sync::CancellationToken;

use super::{CREDENTIALS, Credentials, DataFile, FORMAT, LAYOUT, NUMBERS, OBJECTS, REVISION};
use crate::storage::{Backup, Batch, Journal, StoredObject};

/// The thread that writes a data file.
#[derive(Clone, Debug)]
pub(crate) struct Writer {
    /// Cancelled when the file has been closed.
    closed: CancellationToken,
}

impl Writer {
    /// Starts the thread, which ends when the journal is closed. `stop` is called if the file
    /// fails.
    pub(crate) fn start(
        file: DataFile,
        journal: Arc<Journal>,
        stop: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<Self> {
        let closed = CancellationToken::new();
        let guard = closed.clone().drop_guard();
        // A separate thread, and none of the runtime's: each commit waits for the disk.
        std::thread::Builder::new().name("windlass-data".to_owned()).spawn(move || {
            let path = file.path.clone();
            let ran = catch_unwind(AssertUnwindSafe(|| run(file, &journal)));
            if let Err(why) = ran.unwrap_or_else(|_| Err("the database panicked".to_owned())) {
                let why = format!("cannot write the data file {}: {why}", path.display());
                tracing::error!(why, "the server stops: its writes are not durable");
                journal.fail(why);
                stop();
            }
            drop(guard);
        })?;
        Ok(Self { closed })
    }

    /// Waits until the file has been closed. Cancel safe.
    pub(crate) async fn closed(&self) {
        self.closed.cancelled().await;
    }
}

/// Commits batches until the journal is closed. The file is closed at the end.
fn run(file: DataFile, journal: &Journal) -> Result<(), String> {
    while let Some(batch) = journal.next() {
        commit(&file.database, &batch).map_err(|error| error.to_string())?;
        journal.committed(batch.ticket);
    }
    Ok(())
}

/// Writes a batch in a single transaction.
fn commit(database: &Database, batch: &Batch) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    if let Some(backup) = &batch.replacement {
        replace(&transaction, backup)?;
    }
    {
        let mut objects = transaction.open_table(OBJECTS)?;
        for ((resource, key), object) in &batch.writes {
            let place = (resource.as_str(), &**key);
            match object {
                Some(object) => drop(objects.insert(place, (object.revision, &*bytes(object)))?),
                None => drop(objects.remove(place)?),
            }
        }
        let mut numbers = transaction.open_table(NUMBERS)?;
        numbers.insert(REVISION, batch.revision)?;
    }
    transaction.commit()?;
    Ok(())
}

/// Writes all objects of a backup in place of those that are in the file.
fn replace(transaction: &WriteTransaction, backup: &Backup) -> Result<(), redb::Error> {
    let mut objects = transaction.open_table(OBJECTS)?;
    objects.retain(|_, _| false)?;
    for (resource, snapshot) in backup.resources() {
        for (key, object) in snapshot {
            objects.insert((resource.as_str(), &**key), (object.revision, &*bytes(object)))?;
        }
    }
    Ok(())
}

/// Returns an object in the form of the file.
fn bytes(object: &StoredObject) -> Vec<u8> {
    object.value.to_string().into_bytes()
}

/// Writes the credentials of a server, and the layout of the file.
pub(super) fn credentials(
    database: &Database,
    credentials: &Credentials,
) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut numbers = transaction.open_table(NUMBERS)?;
        numbers.insert(FORMAT, LAYOUT)?;
        // Made now: a file without objects also has the table.
        drop(transaction.open_table(OBJECTS)?);
        let mut table = transaction.open_table(CREDENTIALS)?;
        for (name, bytes) in credentials {
            table.insert(name.as_str(), bytes.as_slice())?;
        }
    }
    transaction.commit()?;
    Ok(())
}
