//! The fields that some field managers have applied to the objects of a store.
//!
//! `metadata.managedFields` are cut from every object. For the kinds that a controller owns, the
//! entry of the controller's own applies is kept beside the object, so that a child is compared
//! with the intent without a request. Objects of the same shape have the same entry but for the uid
//! of their owner: with a mark in place of the uid the text is shared.

// DESIGN.md, 167: The cache keeps the entry of the controller's own applies

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::interned_meta::InternedMeta;

/// Most managers of a store; the entries of further managers are not kept.
const MOST_MANAGERS: usize = 16;
/// Between the parts of a kept text; no JSON text has that character.
const SEPARATOR: char = '\0';
/// The uid of an owner within the text of an entry, which is the key of a list as a text within
/// JSON.
const OWNER: [&str; 2] = ["\\\"uid\\\":\\\"", "\\\""];
/// In place of the uid of the object's controller.
const MARK: &str = "*";
/// Bytes of a shared text beside the content: two counters, pointer and length.
const TEXT: usize = 4 * size_of::<usize>();
/// Bytes of an object's entry; the nodes of the map are about half full, as the numbers of objects
/// grow.
const ENTRY: usize = 4 * size_of::<usize>();

/// The tree of fields that a manager has applied to an object.
#[derive(Clone, Debug, PartialEq)]
#[doc(hidden)]
pub struct FieldTree {
    /// Group and version in which they were applied.
    pub api_version: String,
    /// The tree of fields, in the form of `FieldsV1`.
    pub fields: Value,
}

/// The kept entries of a store.
#[derive(Default)]
pub(in crate::store) struct AppliedEntries {
    /// Whether any manager's entries are kept; read for each object without the lock.
    is_used: AtomicBool,
    entries: Mutex<EntriesBySerial>,
    texts: InternedMeta<Box<[u8]>>,
}

#[derive(Default)]
struct EntriesBySerial {
    managers: Vec<String>,
    /// Texts by the number of the object.
    by_serial: BTreeMap<u64, Arc<Box<[u8]>>>,
    /// Bytes of all texts, each counted once.
    text_bytes: usize,
}

/// An entry of `managedFields`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ManagedFieldsEntry<'a> {
    #[serde(borrow, default)]
    manager: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    operation: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    subresource: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    api_version: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "fieldsV1")]
    fields: Option<&'a RawValue>,
}

impl AppliedEntries {
    /// Keeps the entries of that manager from now on.
    pub(in crate::store) fn keep(&self, manager: &str) {
        let mut entries = self.entries.lock();
        let is_known = entries.managers.iter().any(|known| known == manager);
        if !is_known && entries.managers.len() < MOST_MANAGERS {
            entries.managers.push(manager.to_owned());
        }
        // Relaxed: an object that misses the flag is applied once more, which is harmless.
        self.is_used.store(true, Ordering::Relaxed);
    }

    /// Whether any entries are kept.
    pub(in crate::store) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }

    /// Keeps the entries of an object; `managed` is the JSON of the object's `managedFields`,
    /// `owner` the uid of the object's controller.
    pub(super) fn note(&self, serial: u64, managed: &[u8], owner: Option<&str>) {
        let read: Vec<ManagedFieldsEntry<'_>> = serde_json::from_slice(managed).unwrap_or_default();
        let mut entries = self.entries.lock();
        let kept = read.iter().filter(|entry| entry.is_of(&entries.managers));
        let text: String = kept.filter_map(|entry| entry.text(owner)).collect();
        if text.is_empty() {
            return;
        }
        let text = self.texts.share(text.as_bytes(), |_| true, |text| text.into());
        entries.add(serial, text);
    }

    /// Keeps the entries of an object for another form of the object.
    pub(in crate::store) fn carry(&self, from: u64, to: u64) {
        if !self.is_used() {
            return;
        }
        let mut entries = self.entries.lock();
        if let Some(text) = entries.by_serial.get(&from).map(Arc::clone) {
            entries.add(to, text);
        }
    }

    /// Forgets an object.
    pub(super) fn release(&self, serial: u64) {
        if self.is_used() {
            self.entries.lock().remove(serial);
        }
    }

    /// Returns the fields that the manager has applied to an object, whose controller has the uid
    /// `owner`.
    pub(super) fn get(&self, serial: u64, manager: &str, owner: Option<&str>) -> Option<FieldTree> {
        // Copied under the lock: a reference that a reader holds would count as an object's.
        let text = self.entries.lock().by_serial.get(&serial)?.to_vec();
        let text = String::from_utf8(text).ok()?;
        let parts: Vec<&str> = text.split(SEPARATOR).collect();
        let mut entries = parts.chunks_exact(3);
        let entry = entries.find(|entry| entry[0] == manager)?;
        let [before, after] = OWNER;
        let fields = match owner {
            Some(owner) => entry[2]
                .replace(&format!("{before}{MARK}{after}"), &format!("{before}{owner}{after}")),
            None => entry[2].to_owned(),
        };
        let fields = serde_json::from_str(&fields).ok()?;
        Some(FieldTree { api_version: entry[1].to_owned(), fields })
    }

    /// Bytes of the entries.
    pub(in crate::store) fn resident(&self) -> usize {
        let entries = self.entries.lock();
        entries.by_serial.len() * ENTRY + entries.text_bytes
    }
}

impl EntriesBySerial {
    fn add(&mut self, serial: u64, text: Arc<Box<[u8]>>) {
        let length = text.len() + TEXT;
        // All references are in the map, so the first reference is alone.
        if Arc::strong_count(&text) == 1 {
            self.text_bytes += length;
        }
        self.by_serial.insert(serial, text);
    }

    fn remove(&mut self, serial: u64) {
        if let Some(text) = self.by_serial.remove(&serial)
            && Arc::strong_count(&text) == 1
        {
            self.text_bytes -= text.len() + TEXT;
        }
    }
}

impl ManagedFieldsEntry<'_> {
    /// Whether the entry is about the object's own fields, applied by any of the managers.
    fn is_of(&self, managers: &[String]) -> bool {
        let manager = self.manager.as_deref().unwrap_or_default();
        self.operation.as_deref() == Some("Apply")
            && self.subresource.as_deref().unwrap_or_default().is_empty()
            && managers.iter().any(|known| known == manager)
    }

    /// Returns the text that is kept.
    fn text(&self, owner: Option<&str>) -> Option<String> {
        let (manager, api_version) = (self.manager.as_deref()?, self.api_version.as_deref()?);
        if manager.contains(SEPARATOR) || api_version.contains(SEPARATOR) {
            return None;
        }
        let fields = self.fields?.get();
        let [before, after] = OWNER;
        let marked = format!("{before}{MARK}{after}");
        let fields = match owner {
            // A text that has the mark already could not be distinguished from a marked text.
            _ if fields.contains(&marked) => return None,
            Some(owner) => Cow::Owned(fields.replace(&format!("{before}{owner}{after}"), &marked)),
            None => Cow::Borrowed(fields),
        };
        Some([manager, "\0", api_version, "\0", &fields, "\0"].concat())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const UID: &str = "3b2c0d1e-0000-4000-8000-000000000001";

    fn managed(uid: &str) -> Vec<u8> {
        let owners = json!({ format!("k:{}", json!({ "uid": uid })): {} });
        let entry = |manager: &str, operation: &str, subresource: Option<&str>| {
            let fields = json!({ "f:data": { "f:color": {} }, "f:metadata": { "f:ownerReferences": owners } });
            let mut entry = json!({ "manager": manager, "operation": operation, "apiVersion": "v1",
                "fieldsType": "FieldsV1", "fieldsV1": fields });
            if let Some(subresource) = subresource {
                entry["subresource"] = subresource.into();
            }
            entry
        };
        let entries = [
            entry("others", "Apply", None),
            entry("pages", "Update", None),
            entry("pages", "Apply", Some("status")),
            entry("pages", "Apply", None),
        ];
        serde_json::to_vec(&entries).expect("it encodes")
    }

    #[test]
    fn the_own_applies_are_kept_and_no_others() {
        let kept = AppliedEntries::default();
        kept.note(1, &managed(UID), Some(UID));
        assert_eq!(kept.get(1, "pages", Some(UID)), None, "nothing was asked for");
        kept.keep("pages");
        kept.note(1, &managed(UID), Some(UID));
        let fields = kept.get(1, "pages", Some(UID)).expect("it is kept");
        assert_eq!(fields.api_version, "v1");
        let owner = format!("k:{{\"uid\":\"{UID}\"}}");
        assert_eq!(fields.fields["f:metadata"]["f:ownerReferences"], json!({ owner: {} }));
        assert_eq!(kept.get(1, "others", Some(UID)), None);
        kept.note(2, b"no JSON", None);
        kept.note(3, br#"[{"manager":"pages","operation":"Apply"},7]"#, None);
        assert_eq!((kept.get(2, "pages", None), kept.get(3, "pages", None)), (None, None));
    }

    #[test]
    fn objects_that_differ_in_their_owner_share_a_text_and_the_last_one_frees_it() {
        let kept = AppliedEntries::default();
        kept.keep("pages");
        kept.note(1, &managed(UID), Some(UID));
        let one = kept.resident();
        let other = UID.replace('1', "2");
        kept.note(2, &managed(&other), Some(&other));
        kept.carry(2, 3);
        assert_eq!(kept.resident(), one + 2 * ENTRY, "no text more");
        let fields = kept.get(3, "pages", Some(&other)).expect("it was carried over");
        assert!(fields.fields.to_string().contains(&other));
        kept.note(4, &managed(UID), None);
        assert!(kept.resident() > one + 3 * ENTRY, "the uid of another owner stays");
        assert!(kept.get(4, "pages", None).expect("it is kept").fields.to_string().contains(UID));
        for serial in 1..5 {
            kept.release(serial);
        }
        assert_eq!(kept.resident(), 0);
    }
}
