//! Content of an object: the whole content follows from the serial number, so that a reader can
//! distinguish a whole object from a mixture of two.

use serde_json::{Value, json};

use super::kinds::{Subject, body};

/// Values of the index.
const SHARDS: u64 = 8;

/// The content that belongs to a serial number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    /// The number.
    pub serial: u64,
}

impl Content {
    /// Whether the content does not decode into the type.
    pub fn is_bad(self) -> bool {
        self.serial % 50 == 7
    }

    /// Whether the content has the colour that selecting caches watch.
    pub fn is_red(serial: u64) -> bool {
        serial.is_multiple_of(3)
    }

    /// Returns the value of the index.
    pub fn shard(self) -> String {
        format!("s{}", self.serial % SHARDS)
    }

    /// Returns every value of the index.
    pub fn shards() -> impl Iterator<Item = String> {
        (0..SHARDS).map(|shard| format!("s{shard}"))
    }

    /// Returns the uid of the owner; `None` for content without an owner.
    pub fn owner(self) -> Option<String> {
        self.serial.is_multiple_of(4).then(|| format!("owner-{}", self.serial % 5))
    }

    /// Returns a text of changing length; some need escapes.
    pub fn padding(self) -> String {
        let text = "x".repeat(usize::try_from(self.serial * 31 % 300).unwrap_or_default());
        if self.serial.is_multiple_of(5) { format!("\"{text}\n\u{e9}") } else { text }
    }

    /// Returns the metadata of an object with this content.
    pub fn metadata(self, namespace: &str, name: &str, uid: &str) -> Value {
        let colour = if Self::is_red(self.serial) { "red" } else { "blue" };
        let mut metadata = json!({
            "name": name,
            "namespace": namespace,
            "labels": {
                "colour": colour, "serial": self.serial.to_string(), "shard": self.shard(),
            },
            "annotations": { "padding": self.padding() },
        });
        if !uid.is_empty() {
            metadata["uid"] = json!(uid);
            metadata["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        if let Some(owner) = self.owner() {
            metadata["ownerReferences"] =
                json!([{ "apiVersion": "v1", "kind": "Owner", "name": owner, "uid": owner }]);
        }
        metadata
    }
}

impl Content {
    /// Returns an object of a kind with this content, without apiVersion and kind. An empty `uid`
    /// is left to the server.
    pub fn object<K: Subject>(self, namespace: &str, name: &str, uid: &str) -> Value {
        let (field, body) = body(K::KIND, self);
        json!({ "metadata": self.metadata(namespace, name, uid), field: body })
    }
}

/// Returns a number for a uid.
pub fn uid_number(uid: &str) -> u64 {
    uid.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
