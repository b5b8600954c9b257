//! Choices by a seed, and the metadata that all intents have.

use std::collections::BTreeMap;

use super::*;

/// Choices by a seed.
pub(super) struct Choices {
    rng: Rng,
    /// Uids of two objects that may own others.
    owners: [String; 2],
    /// Choices that an object keeps, because the API server refuses a change of them.
    kept: Mutex<BTreeMap<&'static str, Value>>,
}

impl Choices {
    pub(super) fn new(rng: Rng, owners: [String; 2]) -> Self {
        Self { rng, owners, kept: Mutex::default() }
    }

    /// Forgets the choices of the last object.
    pub(super) fn begin(&self) {
        self.kept.lock().clear();
    }

    pub(super) fn below(&self, bound: usize) -> usize {
        usize::try_from(self.rng.below(bound as u64)).unwrap_or_default()
    }

    pub(super) fn one_in(&self, bound: usize) -> bool {
        self.below(bound) == 0
    }

    pub(super) fn of(&self, values: &[Value]) -> Value {
        values[self.below(values.len())].clone()
    }

    /// Inserts one of the values, or none.
    pub(super) fn put(&self, object: &mut Value, name: &str, values: &[Value]) {
        if !self.one_in(3) {
            object[name] = self.of(values);
        }
    }

    /// Inserts one of the values, and for most intents of an object the same.
    pub(super) fn keep(&self, object: &mut Value, name: &'static str, values: &[Value]) {
        let first = self.of(values);
        let kept = self.kept.lock().entry(name).or_insert(first).clone();
        object[name] = if self.one_in(20) { self.of(values) } else { kept };
        // Null stands for none.
        if object[name].is_null() {
            object.as_object_mut().expect("an object").remove(name);
        }
    }

    /// Returns some of the values, mostly in order.
    pub(super) fn some(&self, values: &[Value]) -> Vec<Value> {
        let mut some: Vec<Value> = values.iter().filter(|_| !self.one_in(3)).cloned().collect();
        if self.one_in(6) {
            some.reverse();
        }
        some
    }
}

pub(super) fn metadata(choices: &Choices) -> Value {
    let mut metadata = json!({ "name": "x" });
    choices.put(
        &mut metadata,
        "labels",
        &[json!({ "a": "1" }), json!({ "a": "2", "b": "" }), json!({})],
    );
    choices.put(&mut metadata, "annotations", &[json!({ "n": "1" }), json!({ "m/n": "2" })]);
    choices.put(&mut metadata, "finalizers", &[json!(["x.io/a"]), json!(["x.io/a", "x.io/b"])]);
    let owner = |at: usize| {
        let (name, uid) = (format!("owner-{at}"), &choices.owners[at]);
        json!([{ "apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "controller": true }])
    };
    choices.put(&mut metadata, "ownerReferences", &[owner(0), owner(1)]);
    metadata
}
