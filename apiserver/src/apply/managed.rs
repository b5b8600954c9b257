//! The entries of `metadata.managedFields`.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::set::PathSet;

/// Largest number of Update entries; the oldest beyond it are merged into [`ANCIENT`].
const MAX_UPDATERS: usize = 10;
/// Manager of the merged entries.
const ANCIENT: &str = "ancient-changes";

/// Key of an entry: a manager with operation, version and subresource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Owner {
    /// Name of the manager.
    pub(crate) manager: String,
    /// Whether the operation is Apply, and not Update.
    pub(crate) apply: bool,
    /// Version of an Update; empty for Apply: a manager has one Apply entry,
    /// whatever the version.
    pub(crate) api_version: String,
    /// Subresource of the write; empty for the main endpoint.
    pub(crate) subresource: String,
}

impl Owner {
    /// Returns an owner; a manager without a name is `unknown`.
    pub(crate) fn new(manager: &str, apply: bool, version: &str, subresource: &str) -> Owner {
        Owner {
            manager: if manager.is_empty() { "unknown" } else { manager }.to_owned(),
            apply,
            api_version: if apply { "" } else { version }.to_owned(),
            subresource: subresource.to_owned(),
        }
    }

    /// Returns the owner as conflict messages print it: `"m"`, `"m" using v1`,
    /// `"m" with subresource "scale" using apps/v1`.
    pub(crate) fn print(&self) -> String {
        let mut text = format!("{:?}", self.manager);
        if !self.subresource.is_empty() {
            text.push_str(&format!(" with subresource {:?}", self.subresource));
        }
        if !self.apply {
            text.push_str(&format!(" using {}", self.api_version));
        }
        text
    }
}

/// The fields of an owner.
#[derive(Clone, Debug)]
pub(crate) struct OwnedFields {
    /// Paths of the fields.
    pub(crate) set: PathSet,
    /// Version in which the paths are written.
    pub(crate) api_version: String,
}

/// All entries of `managedFields`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Managed {
    /// The fields of each owner.
    pub(crate) owners: BTreeMap<Owner, OwnedFields>,
    /// Time of the last change, RFC 3339; absent if the entry never changed the object.
    pub(crate) times: BTreeMap<Owner, String>,
}

impl Managed {
    /// Reads the entries of an object's metadata.
    ///
    /// # Errors
    ///
    /// The fault of the first bad entry.
    pub(crate) fn decode(object: &Value) -> Result<Managed, String> {
        let mut managed = Managed::default();
        let list = object.pointer("/metadata/managedFields").and_then(Value::as_array);
        for (index, entry) in list.into_iter().flatten().enumerate() {
            let (owner, owned, time) = decode_entry(index, entry)?;
            // Among two entries with equal keys the last entry counts, with its time.
            match time {
                Some(time) => managed.times.insert(owner.clone(), time),
                None => managed.times.remove(&owner),
            };
            managed.owners.insert(owner, owned);
        }
        Ok(managed)
    }

    /// Writes the entries into an object's metadata; without entries the field is removed.
    pub(crate) fn encode(&self, object: &mut Value) {
        let mut entries: Vec<(&Owner, &OwnedFields)> = self.owners.iter().collect();
        entries.sort_by(|a, b| self.order(a.0, b.0));
        let list: Vec<Value> =
            entries.into_iter().map(|(owner, owned)| self.entry(owner, owned)).collect();
        let Some(map) = object.as_object_mut() else { return };
        let meta = map.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
        if meta.is_null() {
            *meta = Value::Object(Map::new());
        }
        let Some(meta) = meta.as_object_mut() else { return };
        if list.is_empty() {
            meta.remove("managedFields");
        } else {
            meta.insert("managedFields".to_owned(), Value::Array(list));
        }
    }

    /// Returns an entry.
    fn entry(&self, owner: &Owner, owned: &OwnedFields) -> Value {
        let mut entry = json!({
            "manager": owner.manager,
            "operation": if owner.apply { "Apply" } else { "Update" },
            "apiVersion": owned.api_version,
            "fieldsType": "FieldsV1",
            "fieldsV1": owned.set.to_json(),
        });
        if let Some(time) = self.times.get(owner) {
            entry["time"] = time.as_str().into();
        }
        if !owner.subresource.is_empty() {
            entry["subresource"] = owner.subresource.as_str().into();
        }
        entry
    }

    /// Order of entries: Apply before Update, then by time, manager, version and subresource.
    fn order(&self, a: &Owner, b: &Owner) -> Ordering {
        b.apply
            .cmp(&a.apply)
            // Whole seconds: the precision of the stored times.
            .then_with(|| self.seconds(a).cmp(&self.seconds(b)))
            .then_with(|| a.manager.cmp(&b.manager))
            .then_with(|| self.version(a).cmp(self.version(b)))
            .then_with(|| a.subresource.cmp(&b.subresource))
    }

    /// Returns the version of an owner's entry.
    fn version(&self, owner: &Owner) -> &str {
        self.owners.get(owner).map_or("", |owned| &owned.api_version)
    }

    /// Returns the time of an entry in seconds; 0 without one.
    fn seconds(&self, owner: &Owner) -> i64 {
        let time = self.times.get(owner).and_then(|t| t.parse::<jiff::Timestamp>().ok());
        time.map_or(0, jiff::Timestamp::as_second)
    }

    /// Merges the oldest Update entries of each version, as upstream does, until at most ten
    /// entries are left, or no two of one version.
    pub(crate) fn cap_updaters(&mut self) {
        let mut updaters: Vec<Owner> =
            self.owners.keys().filter(|owner| !owner.apply).cloned().collect();
        let mut count = updaters.len();
        if count <= MAX_UPDATERS {
            return;
        }
        // Oldest first; the owner decides between entries of the same second, so that the result is
        // deterministic.
        updaters.sort_by_cached_key(|owner| (self.seconds(owner), owner.clone()));
        let mut first_of: BTreeMap<String, Owner> = BTreeMap::new();
        for owner in updaters {
            if count <= MAX_UPDATERS {
                break;
            }
            // Only entries of the same version can be merged: their fields mean the same.
            let version = self.version(&owner).to_owned();
            let Some(first) = first_of.get(&version) else {
                first_of.insert(version, owner);
                continue;
            };
            let bucket = Owner::new(ANCIENT, false, &version, "");
            // The bucket of a version is its entry of the manager `ancient-changes`. The first
            // entry becomes the bucket only when a second entry joins; an existing bucket takes the
            // second entry, and the first one stays.
            if !self.owners.contains_key(&bucket)
                && let Some(owned) = self.owners.remove(first)
            {
                self.owners.insert(bucket.clone(), owned);
            }
            let Some(owned) = self.owners.remove(&owner) else { continue };
            let old = self.owners.remove(&bucket).map(|old| old.set).unwrap_or_default();
            self.owners.insert(bucket.clone(), OwnedFields { set: owned.set.union(&old), ..owned });
            // The newer time: that of the entry that was merged.
            match self.times.get(&owner).cloned() {
                Some(time) => self.times.insert(bucket, time),
                None => self.times.remove(&bucket),
            };
            count -= 1;
        }
    }
}

/// Reads an entry: the owner, the fields, and the time of the last change.
fn decode_entry(
    index: usize,
    entry: &Value,
) -> Result<(Owner, OwnedFields, Option<String>), String> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
    let apply = match text("operation") {
        "Apply" => true,
        "Update" => false,
        _ => return Err("operation must be `Apply` or `Update`".to_owned()),
    };
    let version = text("apiVersion");
    if version.is_empty() {
        return Err("apiVersion must not be empty".to_owned());
    }
    match text("fieldsType") {
        "FieldsV1" => {}
        "" => return Err(format!("missing fieldsType in managed fields entry {index}")),
        other => {
            return Err(format!("invalid fieldsType {other:?} in managed fields entry {index}"));
        }
    }
    let set = match entry.get("fieldsV1") {
        None | Some(Value::Null) => PathSet::default(),
        Some(fields) => {
            PathSet::from_json(fields).map_err(|e| format!("error decoding set: {e}"))?
        }
    };
    // Taken literally, not through `Owner::new`: an empty name is a separate owner.
    let owner = Owner {
        manager: text("manager").to_owned(),
        apply,
        api_version: if apply { String::new() } else { version.to_owned() },
        subresource: text("subresource").to_owned(),
    };
    let time = Some(text("time").to_owned()).filter(|time| !time.is_empty());
    Ok((owner, OwnedFields { set, api_version: version.to_owned() }, time))
}

/// Whether the list asks to reset the tracking: `[]` or `[{}]`.
pub(crate) fn is_reset(object: &Value) -> bool {
    match object.pointer("/metadata/managedFields").and_then(Value::as_array) {
        Some(list) => match list.as_slice() {
            [] => true,
            [one] => one.as_object().is_some_and(Map::is_empty),
            _ => false,
        },
        None => false,
    }
}

/// Whether objects differ in nothing but the times of their managed fields.
pub(crate) fn are_equal_but_times(old: &Value, new: &Value) -> bool {
    let same = |name: &str, old: &Value, new: &Value| match (name, old, new) {
        ("managedFields", Value::Array(old), Value::Array(new)) => {
            old.len() == new.len() && old.iter().zip(new).all(|(old, new)| is_same_entry(old, new))
        }
        _ => old == new,
    };
    let below = |name: &str, old: &Value, new: &Value| match (name, old, new) {
        ("metadata", Value::Object(old), Value::Object(new)) => are_equal_by(old, new, same),
        _ => old == new,
    };
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => are_equal_by(old, new, below),
        _ => old == new,
    }
}

/// Whether two entries are equal but for their times.
fn is_same_entry(old: &Value, new: &Value) -> bool {
    let (Value::Object(old), Value::Object(new)) = (old, new) else { return old == new };
    let timeless =
        |fields: &Map<String, Value>| fields.len() - usize::from(fields.contains_key("time"));
    let mut fields = old.iter().filter(|(name, _)| *name != "time");
    timeless(old) == timeless(new) && fields.all(|(name, value)| new.get(name) == Some(value))
}

/// Whether maps have the same fields, and those are equal in the sense of `same`.
fn are_equal_by(
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    same: impl Fn(&str, &Value, &Value) -> bool,
) -> bool {
    old.len() == new.len()
        && old
            .iter()
            .all(|(name, value)| new.get(name).is_some_and(|other| same(name, value, other)))
}

/// Returns a copy of an object without the list, which is often the larger half of the object.
pub(crate) fn without(object: &Value) -> Value {
    let copy_but =
        |map: &Map<String, Value>, left_out: &str, below: &dyn Fn(&str, &Value) -> Value| {
            let kept = map.iter().filter(|(name, _)| *name != left_out);
            Value::Object(kept.map(|(name, value)| (name.clone(), below(name, value))).collect())
        };
    let of_metadata = |name: &str, value: &Value| match (name, value) {
        ("metadata", Value::Object(map)) => copy_but(map, "managedFields", &|_, it| it.clone()),
        _ => value.clone(),
    };
    match object {
        Value::Object(map) => copy_but(map, "", &of_metadata),
        other => other.clone(),
    }
}
