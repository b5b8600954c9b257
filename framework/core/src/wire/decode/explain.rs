//! Errors of JSON that does not decode into a type, without the values of the JSON.
//!
//! serde quotes the offending input (`invalid type: string "…"`, `unknown variant`, `unknown
//! field`), and types put values into texts of their own (`cannot parse "…" as a time`). A value
//! that a user wrote into an object may be a password in the wrong place, and logs, Events and
//! debug pages have other readers than the object.
//!
//! So the input is decoded once more, with an error type that receives the parts of the error and
//! keeps those that come from the type: the path, the kind of value at that path, and the type's
//! expectation. Names of unknown fields and variants are data, and so are the keys of maps (`*` in
//! a path), since serde does not distinguish a misspelt name from a value. Texts of a type's own
//! are left out, because no mark shows which part of such a text is a value.

// DESIGN.md, 71: Decoding errors name no values

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::node::{NodeError, ValueNode};
use super::times;

/// The reason for which JSON does not decode. The texts contain no value.
pub struct Undecodable {
    /// Place and reason.
    text: String,
}

impl Undecodable {
    /// Builds the error without the input: the place, and for invalid JSON the reason.
    #[doc(hidden)]
    pub fn of(error: &serde_json::Error) -> Self {
        let text = if error.is_data() {
            let (line, column) = (error.line(), error.column());
            format!("a value at line {line}, column {column} is not as its type wants it")
        } else {
            error.to_string()
        };
        Self { text }
    }

    /// Builds the error of `bytes`, which gave `error` when they were decoded into a `T`.
    #[doc(hidden)]
    pub fn explain<T: DeserializeOwned>(bytes: &[u8], error: &serde_json::Error) -> Self {
        // For every category: serde_json counts a key that is no number as an error of syntax.
        let value = serde_json::from_slice(bytes).ok();
        let explained = value.and_then(|mut value| {
            bring_near(&mut value);
            fault::<T>(&value)
        });
        explained.unwrap_or_else(|| Self::of(error))
    }

    /// Builds the error of `value`, which gave `error` when it was decoded into a `T`.
    #[doc(hidden)]
    pub fn explain_value<T: DeserializeOwned>(value: &Value, error: &serde_json::Error) -> Self {
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

/// Replaces times beyond the representable range; they are not the cause.
fn bring_near(value: &mut Value) {
    match value {
        Value::String(text) => times::near(text).into_iter().for_each(|near| *text = near),
        Value::Array(items) => items.iter_mut().for_each(bring_near),
        Value::Object(members) => members.values_mut().for_each(bring_near),
        _ => {}
    }
}

/// Returns the fault of `value` as a `T`; `None` when none is found, or only a fault that must not
/// be shown.
fn fault<T: DeserializeOwned>(value: &Value) -> Option<Undecodable> {
    // The type's own code runs a second time, and may panic.
    let decoded = catch_unwind(AssertUnwindSafe(|| T::deserialize(ValueNode(value)).err()));
    let NodeError { mut path, reason } = decoded.ok()??;
    // Steps were added from the value up.
    path.reverse();
    let reason = reason?;
    let path = path.concat();
    let text = if path.is_empty() { reason } else { format!("{path}: {reason}") };
    Some(Undecodable { text })
}

#[cfg(test)]
mod tests;
