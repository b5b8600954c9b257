//! Reading of a data file when the server starts.

use std::collections::BTreeMap;
use std::sync::Arc;

use redb::{Database, ReadableDatabase, ReadableTable, TableError};
use serde::Deserialize;
use serde_json::Value;

use super::{CREDENTIALS, Credentials, FORMAT, LAYOUT, NUMBERS, OBJECTS, REVISION};
use crate::storage::{Backup, LARGEST, Snapshot, StoredObject};

/// Returns all objects, `None` for a new file, and the credentials.
pub(super) fn all(database: &Database) -> Result<(Option<Backup>, Credentials), String> {
    let text = |error: &dyn std::error::Error| error.to_string();
    let read = database.begin_read().map_err(|error| text(&error))?;
    let numbers = match read.open_table(NUMBERS) {
        Ok(numbers) => numbers,
        // Nothing has been written yet.
        Err(TableError::TableDoesNotExist(_)) => return Ok((None, Credentials::new())),
        Err(error) => return Err(text(&error)),
    };
    let number = |name: &str| {
        let found = numbers.get(name).map_err(|error| error.to_string())?;
        Ok::<_, String>(found.map(|found| found.value()))
    };
    let layout = number(FORMAT)?.unwrap_or(0);
    if layout != LAYOUT {
        return Err(format!(
            "its layout is number {layout}, and this program reads number {LAYOUT}; use the version of the program that wrote it"
        ));
    }
    let table = read.open_table(CREDENTIALS).map_err(|error| text(&error))?;
    let mut credentials = Credentials::new();
    for entry in table.iter().map_err(|error| text(&error))? {
        let (name, bytes) = entry.map_err(|error| text(&error))?;
        credentials.insert(name.value().to_owned(), bytes.value().to_vec());
    }
    // The credentials are written first: a server may have ended before the first object.
    let Some(revision) = number(REVISION)? else { return Ok((None, credentials)) };
    if revision > LARGEST {
        return Err(format!("its revision {revision} is above {LARGEST}, the largest"));
    }
    let objects = read.open_table(OBJECTS).map_err(|error| text(&error))?;
    let mut resources: BTreeMap<String, Snapshot> = BTreeMap::new();
    for entry in objects.iter().map_err(|error| text(&error))? {
        let (place, state) = entry.map_err(|error| text(&error))?;
        let ((resource, key), (written, bytes)) = (place.value(), state.value());
        let value =
            parse(bytes).map_err(|why| format!("{resource} {key} is not an object: {why}"))?;
        let object = Arc::new(StoredObject::new(value, written));
        resources.entry(resource.to_owned()).or_default().insert_mut(key.into(), object);
    }
    Ok((Some(Backup::new(revision, resources)), credentials))
}

/// Reads an object of any depth: the request bounded the depth of the write.
fn parse(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    reader.disable_recursion_limit();
    let value = Value::deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}
