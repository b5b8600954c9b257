//! The kinds that sequences write, read from `kinds.yaml`, and random objects of them.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::dice::Dice;

/// Values of a field.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Field {
    /// Pointer to the field.
    pub(super) at: String,
    /// Values that are valid by themselves.
    pub(super) good: Vec<Value>,
    /// Values that the server refuses or changes, or that need other fields.
    pub(super) bad: Vec<Value>,
}

/// A kind.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Kind {
    pub(super) kind: String,
    pub(super) api_version: String,
    pub(super) plural: String,
    pub(super) is_cluster: bool,
    pub(super) is_custom: bool,
    /// Whether there is a second form beside JSON.
    pub(super) protobuf: bool,
    /// Whether there is a subresource `status`.
    pub(super) status: bool,
    /// Whether there is a subresource `scale`.
    pub(super) scale: bool,
    /// The least valid object, but for name and kind.
    base: Value,
    pub(super) fields: Vec<Field>,
    pub(super) status_fields: Vec<Field>,
    /// More places of JSON patches.
    pub(super) deep: Vec<String>,
    /// Strategic merge patches.
    pub(super) patches: Vec<Value>,
}

/// Returns the kinds, each with the fields that all have.
///
/// # Errors
/// The file has another form.
pub(super) fn kinds() -> Result<Vec<Kind>, String> {
    let mut kinds: Vec<Kind> = serde_saphyr::from_str(include_str!("kinds.yaml"))
        .map_err(|error| format!("kinds.yaml: {error}"))?;
    let common = kinds.remove(0);
    for kind in &mut kinds {
        kind.fields.extend(common.fields.iter().cloned());
        kind.deep.extend(common.deep.iter().cloned());
    }
    Ok(kinds)
}

/// Sets a value in an object and makes the objects on the way to the pointer.
pub(super) fn set(object: &mut Value, pointer: &str, value: Value) {
    let mut place = object;
    for part in pointer.split('/').skip(1) {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        place = &mut place[part];
    }
    *place = value;
}

impl Kind {
    /// Returns the path of the kind's objects.
    pub(super) fn path(&self) -> String {
        let root = if self.api_version.contains('/') { "/apis" } else { "/api" };
        let space = if self.is_cluster { "" } else { "/namespaces/${u}" };
        format!("{root}/{}{space}/{}", self.api_version, self.plural)
    }

    /// Returns an object's name: names of cluster-scoped objects carry the sequence's unique part.
    pub(super) fn name(&self, short: &str) -> String {
        if self.is_cluster { format!("${{u}}-{short}") } else { short.to_owned() }
    }

    /// Returns the least valid object of a name.
    pub(super) fn least(&self, name: &str) -> Value {
        let mut object = if self.base.is_object() { self.base.clone() } else { json!({}) };
        object["apiVersion"] = json!(self.api_version);
        object["kind"] = json!(self.kind);
        object["metadata"] = json!({"name": name, "labels": {"u": "${u}"}});
        object
    }

    /// Returns an object with some random fields, and whether all of them are good.
    pub(super) fn object(&self, dice: &mut Dice, name: &str, bad: usize) -> (Value, bool) {
        let mut object = self.least(name);
        let is_good = fill(&mut object, &self.fields, dice, bad);
        (object, is_good)
    }
}

/// Sets one to four random fields, a bad field in `bad` of a hundred cases; returns whether all are
/// good.
///
/// From two bad values Go's decoder names the first in the text, or the last that is no JSON type.
pub(super) fn fill(object: &mut Value, fields: &[Field], dice: &mut Dice, bad: usize) -> bool {
    let mut is_good = true;
    for _ in 0..=dice.below(4) {
        let Some(field) = dice.of(fields) else { continue };
        let (value, good) = value(field, dice, if is_good { bad } else { 0 });
        if let Some(value) = value {
            set(object, &field.at, value);
            is_good &= good;
        }
    }
    is_good
}

/// Returns a random value of a field, and whether the value is good.
pub(super) fn value(field: &Field, dice: &mut Dice, bad: usize) -> (Option<Value>, bool) {
    if dice.percent(bad) {
        return (dice.of(&field.bad).cloned(), false);
    }
    (dice.of(&field.good).cloned(), true)
}
