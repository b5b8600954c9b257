//! Says why JSON does not decode into a type, and no value of it.
//!
//! serde quotes what it stumbles over (`invalid type: string "…"`, `unknown variant`, `unknown field`), and
//! types put values into texts of their own (`cannot parse "…" as a time`). What people wrote into an object
//! may be a password in the wrong place, and logs, Events and debug pages have other readers than
//! the object. So what failed is decoded once more, with an error type that is told the parts and
//! keeps those that come from the type: the path, the kind of value that stands there, and what the
//! type expects. Names of unknown fields and variants are data, and so are the keys of maps (`*` in a
//! path), since serde does not tell a misspelt name from a value. Texts of a type's own are left out:
//! nothing says which part of them is a value.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::ask::{Ask, Fault, Node};
use super::times;

/// Why something does not decode. Its texts name no value.
pub(crate) struct Undecodable {
    text: String,
}

impl Undecodable {
    /// Of what is not known any more: where it failed, and for what is no JSON why.
    pub(crate) fn of(error: &serde_json::Error) -> Self {
        let text = if error.is_data() {
            let (line, column) = (error.line(), error.column());
            format!("a value at line {line}, column {column} is not as its type wants it")
        } else {
            error.to_string()
        };
        Self { text }
    }

    /// Of `bytes`, which gave `error` when they were decoded into a `T`.
    pub(crate) fn explain<T: DeserializeOwned>(bytes: &[u8], error: &serde_json::Error) -> Self {
        // Whatever the category: serde_json counts a key that is no number among errors of syntax.
        let value = serde_json::from_slice(bytes).ok();
        let told = value.and_then(|mut value| {
            bring_near(&mut value);
            fault::<T>(&value)
        });
        told.unwrap_or_else(|| Self::of(error))
    }

    /// Of `value`, which gave `error` when it was decoded into a `T`.
    pub(crate) fn explain_value<T: DeserializeOwned>(
        value: &Value,
        error: &serde_json::Error,
    ) -> Self {
        fault::<T>(value).unwrap_or_else(|| Self::of(error))
    }
}

impl fmt::Display for Undecodable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Undecodable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Undecodable {}

/// Times that were too late to be held were not what failed.
fn bring_near(value: &mut Value) {
    match value {
        Value::String(text) => times::near(text).into_iter().for_each(|near| *text = near),
        Value::Array(items) => items.iter_mut().for_each(bring_near),
        Value::Object(members) => members.values_mut().for_each(bring_near),
        _ => {}
    }
}

/// What is wrong with `value` as a `T`; `None` when nothing is found, or only what cannot be told.
fn fault<T: DeserializeOwned>(value: &Value) -> Option<Undecodable> {
    // Code of the type runs, a second time.
    let decoded = catch_unwind(AssertUnwindSafe(|| T::deserialize(Ask::Value(Node(value))).err()));
    let Fault { mut path, reason, .. } = decoded.ok()??;
    path.reverse();
    let reason = reason?;
    let path = path.concat();
    let text = if path.is_empty() { reason } else { format!("{path}: {reason}") };
    Some(Undecodable { text })
}

#[cfg(test)]
mod tests;
