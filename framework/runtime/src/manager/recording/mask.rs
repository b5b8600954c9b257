//! Masks in place of secrets, before anything is kept.
//!
//! Equal values of a recording have equal masks, so that a copied value is still seen to be equal.
//! A mask is a hash under a random key of the process, which no recording has: a mask does not tell
//! a short value to somebody who tries all of them. A mask of a mask is that mask, because a replay
//! masks the requests of an operator that has read masks.

// DESIGN.md, 281: Secrets of a recording are keyed hashes

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// Beginning of each mask.
const PREFIX: &str = "masked-";
/// Digits behind the beginning.
const DIGITS: usize = 16;
/// Annotation in which kubectl keeps a copy of the whole object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Names of a path that are read: more than any secret has, and a bound for the depth.
const MOST_NAMES: usize = 4;
/// Members of a Secret with values.
const MEMBERS: [&str; 2] = ["data", "stringData"];

/// The masks of one recording.
#[derive(Clone, Debug, Default)]
#[doc(hidden)]
pub struct Mask(RandomState);

impl Mask {
    /// Returns masks under a new key.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether a text is a mask, also as base64.
    pub fn is_mask(text: &str) -> bool {
        let is_plain = |text: &str| {
            text.strip_prefix(PREFIX).is_some_and(|digits| {
                digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
            })
        };
        let decoded = || String::from_utf8(STANDARD.decode(text).ok()?).ok();
        is_plain(text) || decoded().is_some_and(|text| is_plain(&text))
    }

    /// Whether requests to a path, or their answers, have secrets.
    pub fn concerns(path: &str) -> bool {
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        matches!(
            parts.as_slice(),
            ["api", _, "secrets", ..]
                | ["api", _, "namespaces", _, "secrets", ..]
                | ["apis", "authentication.k8s.io", ..]
                | [.., "serviceaccounts", _, "token"]
        )
    }

    /// Masks the secrets in a body: an object, a list, an event of a watch, or a patch.
    pub fn value(&self, body: &mut Value) {
        match body {
            Value::Array(operations) => operations.iter_mut().for_each(|one| self.operation(one)),
            Value::Object(fields) => {
                let inner = ["items", "object"].into_iter().find(|name| fields.contains_key(*name));
                match inner.and_then(|name| fields.get_mut(name)) {
                    Some(Value::Array(items)) => items.iter_mut().for_each(|it| self.object(it)),
                    Some(object) => self.object(object),
                    None => self.object(body),
                }
            }
            // No object that is known: all of it may be secret.
            other => self.texts(other, false),
        }
    }

    /// Masks an operation of a JSON patch: the value at its place in an object, so that a path may
    /// end above, at or below what is secret.
    fn operation(&self, operation: &mut Value) {
        let path = operation["path"].as_str().unwrap_or_default().to_owned();
        let Some(value) = operation.get_mut("value") else { return };
        let names: Vec<String> = path
            .split('/')
            .skip(1)
            .take(MOST_NAMES)
            .map(|name| name.replace("~1", "/").replace("~0", "~"))
            .collect();
        let mut object = names.iter().rev().fold(value.take(), |inner, name| {
            Value::Object([(name.clone(), inner)].into_iter().collect())
        });
        self.object(&mut object);
        let inner = names.iter().try_fold(&mut object, |outer, name| outer.get_mut(name));
        *value = inner.map(Value::take).unwrap_or_default();
    }

    /// Masks a Secret, a `TokenRequest` or a `TokenReview`.
    fn object(&self, object: &mut Value) {
        for member in MEMBERS {
            if let Some(values) = object.get_mut(member) {
                self.texts(values, member == "data");
            }
        }
        for part in ["spec", "status"] {
            if let Some(token) = object.get_mut(part).and_then(|part| part.get_mut("token")) {
                self.texts(token, false);
            }
        }
        let annotations = object.get_mut("metadata").and_then(|it| it.get_mut("annotations"));
        if let Some(copy) = annotations.and_then(|all| all.get_mut(LAST_APPLIED)) {
            self.texts(copy, false);
        }
    }

    /// Masks all texts in a value.
    fn texts(&self, value: &mut Value, is_base64: bool) {
        match value {
            Value::String(text) => *text = self.text(text, is_base64),
            Value::Object(fields) => {
                fields.values_mut().for_each(|value| self.texts(value, is_base64));
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.texts(item, is_base64)),
            _ => {}
        }
    }

    /// Returns the mask of a text.
    fn text(&self, text: &str, is_base64: bool) -> String {
        if Self::is_mask(text) {
            return text.to_owned();
        }
        // The bytes and not their base64: a value may be copied from `data` to `stringData`.
        let decoded = is_base64.then(|| STANDARD.decode(text).ok()).flatten();
        let bytes = decoded.as_deref().unwrap_or(text.as_bytes());
        let mask = format!("{PREFIX}{:016x}", self.0.hash_one(bytes));
        if is_base64 { STANDARD.encode(mask) } else { mask }
    }
}
