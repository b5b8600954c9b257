//! One object as the cache holds it: key, head, compact bytes, and the decoded value while in use.

use std::any::Any;
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::Invalid;
use super::core::Core;
use crate::resource::{ClusterId, ObjectKey, Resource, ResourceInfo};
use crate::wire::{Head, Skim, path_at};

/// A decoded object of whatever type.
pub(crate) type Decoded = Arc<dyn Any + Send + Sync>;

/// An object of the cache; immutable but for the share of its decoded value.
pub(crate) struct Object {
    key: ObjectKey,
    head: Head,
    body: Box<[u8]>,
    decoded: Mutex<Weak<dyn Any + Send + Sync>>,
    home: Arc<Home>,
}

/// Where an object belongs: its kind, and the store that wants to know when it does not decode.
pub(crate) struct Home {
    pub(crate) info: ResourceInfo,
    pub(crate) core: Weak<Core>,
}

impl Object {
    pub(crate) fn new(skim: &Skim<'_>, home: &Arc<Home>) -> Arc<Self> {
        Arc::new(Self {
            key: ObjectKey::new(skim.namespace.as_deref(), &skim.name),
            head: skim.head(),
            body: skim.compact(),
            decoded: Mutex::new(Weak::<()>::new()),
            home: Arc::clone(home),
        })
    }

    pub(crate) fn key(&self) -> &ObjectKey {
        &self.key
    }

    pub(crate) fn head(&self) -> &Head {
        &self.head
    }

    pub(crate) fn version(&self) -> &str {
        self.head.resource_version()
    }

    pub(crate) fn body(&self) -> &[u8] {
        &self.body
    }

    /// The object as a `K`, shared with whoever holds it already.
    pub(crate) fn decode<K: Resource>(self: &Arc<Self>) -> Result<Arc<K>, Invalid> {
        let shared = self.decoded.lock().upgrade();
        if let Some(Ok(shared)) = shared.map(Arc::downcast::<K>) {
            return Ok(shared);
        }
        match self.parse::<K>() {
            Ok(value) => {
                let value = Arc::new(value);
                let shared: Decoded = Arc::<K>::clone(&value);
                *self.decoded.lock() = Arc::downgrade(&shared);
                Ok(value)
            }
            Err(message) => {
                let message: Arc<str> = Arc::from(message);
                if let Some(core) = self.home.core.upgrade() {
                    core.note_invalid(self, &message);
                }
                Err(Invalid { message })
            }
        }
    }

    fn parse<K: Resource>(&self) -> Result<K, String> {
        let named;
        // Types that know their kind do not need to read it; those that do not would lose it.
        let bytes = if K::static_info().is_none() {
            named = self.named();
            &named
        } else {
            &*self.body
        };
        match catch_unwind(AssertUnwindSafe(|| serde_json::from_slice::<K>(bytes))) {
            Ok(decoded) => decoded.map_err(|error| explain(bytes, &error, self.is_secret())),
            Err(_) => Err("decoding it panicked".to_owned()),
        }
    }

    fn is_secret(&self) -> bool {
        self.home.info.group.is_empty() && self.home.info.kind == "Secret"
    }

    /// The body with `apiVersion` and `kind`.
    fn named(&self) -> Vec<u8> {
        let info = &self.home.info;
        let rest = self.body.trim_ascii_start().strip_prefix(b"{").unwrap_or_default();
        let mut bytes = serde_json::to_vec(&serde_json::json!({
            "apiVersion": info.api_version(),
            "kind": info.kind,
        }))
        .unwrap_or_default();
        bytes.pop();
        if !rest.trim_ascii_start().starts_with(b"}") {
            bytes.push(b',');
        }
        bytes.extend_from_slice(rest);
        bytes
    }
}

/// What serde said, after the path of the field it stumbled over. serde quotes the value, which
/// must not reach a log when it is a secret.
fn explain(bytes: &[u8], error: &serde_json::Error, is_secret: bool) -> String {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let line_start: usize = lines.take(error.line().saturating_sub(1)).map(<[u8]>::len).sum();
    let path = path_at(bytes, line_start + error.column().saturating_sub(1));
    match (is_secret, path.as_str()) {
        (true, path) => format!("{path}: the value is not of the right type"),
        (false, "") => error.to_string(),
        (false, path) => format!("{path}: {error}"),
    }
}

/// The parts of a key, borrowed: lets a map of keys be searched without building one.
pub(crate) trait KeyParts {
    fn parts(&self) -> (ClusterId, Option<&str>, &str);
}

impl KeyParts for ObjectKey {
    fn parts(&self) -> (ClusterId, Option<&str>, &str) {
        (self.cluster(), self.namespace(), self.name())
    }
}

impl KeyParts for (ClusterId, Option<&str>, &str) {
    fn parts(&self) -> (ClusterId, Option<&str>, &str) {
        *self
    }
}

impl<'a> Borrow<dyn KeyParts + 'a> for ObjectKey {
    fn borrow(&self) -> &(dyn KeyParts + 'a) {
        self
    }
}

// The same order as `ObjectKey`'s own, as `Borrow` demands.
impl Ord for dyn KeyParts + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        self.parts().cmp(&other.parts())
    }
}

impl PartialOrd for dyn KeyParts + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for dyn KeyParts + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for dyn KeyParts + '_ {}
