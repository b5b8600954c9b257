//! Tests of applies and updates: their effect on objects and owners, as seen on kube-apiserver
//! 1.36.

mod conflicts;
mod endpoints;
mod lists;
mod ownership;
mod sets;

use std::sync::Arc;

use serde_json::{Value, json};

use super::{ApplyError, ApplyRequest, ScaleChange, apply, track_scale, track_update};
use crate::typed::TypeSchema;

/// An object on a server that only applies and tracks.
struct World {
    schema: Arc<TypeSchema>,
    api_version: &'static str,
    kind: &'static str,
    now: u32,
    live: Option<Value>,
}

impl World {
    fn builtin(api_version: &'static str, kind: &'static str) -> World {
        let schema = TypeSchema::builtin(api_version, kind).expect("a built-in kind");
        World { schema, api_version, kind, now: 0, live: None }
    }

    fn config_map() -> World {
        World::builtin("v1", "ConfigMap")
    }

    fn widget() -> World {
        let schema = Arc::new(TypeSchema::from_openapi(&widget_schema()));
        World { schema, api_version: "g/v1", kind: "Widget", now: 0, live: None }
    }

    fn complete(&self, body: Value) -> Value {
        let mut object = json!({
            "apiVersion": self.api_version, "kind": self.kind,
            "metadata": { "name": "a", "namespace": "ns" },
        });
        merge_into(&mut object, body);
        object
    }

    fn tick(&mut self) -> String {
        self.now += 1;
        format!("2026-01-01T00:{:02}:00Z", self.now)
    }

    fn try_apply_to(
        &mut self,
        subresource: Option<&str>,
        manager: &str,
        force: bool,
        body: Value,
    ) -> Result<(), ApplyError> {
        let (intent, now) = (self.complete(body), self.tick());
        let mut result = apply(&ApplyRequest {
            schema: &self.schema,
            live: self.live.as_ref(),
            intent: &intent,
            manager,
            force,
            api_version: self.api_version,
            subresource,
            now: &now,
        })?;
        result["metadata"]["uid"] = "u".into();
        self.live = Some(result);
        Ok(())
    }

    fn apply(&mut self, manager: &str, body: Value) {
        self.try_apply_to(None, manager, false, body).expect("the apply succeeds");
    }

    fn force(&mut self, manager: &str, body: Value) {
        self.try_apply_to(None, manager, true, body).expect("the forced apply succeeds");
    }

    fn refuse(&mut self, manager: &str, body: Value) -> ApplyError {
        self.try_apply_to(None, manager, false, body).expect_err("the apply is refused")
    }

    /// Creates or merges the object by an ordinary write.
    fn write_to(&mut self, subresource: Option<&str>, manager: &str, body: Value) {
        let now = self.tick();
        let mut new = self.live.clone().unwrap_or_else(|| self.complete(json!({})));
        merge_into(&mut new, body);
        let old = self.live.as_ref();
        let mut result = match (subresource, old) {
            (Some("scale"), Some(old)) => {
                let replicas = |object: &Value| object["spec"]["replicas"].as_i64().unwrap_or(0);
                let change = ScaleChange::between(replicas(old), replicas(&new));
                let path = ["spec".to_owned(), "replicas".to_owned()];
                track_scale((old, &new), &path, change, manager, self.api_version)
            }
            _ => {
                track_update(&self.schema, old, &new, manager, self.api_version, subresource, &now)
            }
        };
        result["metadata"]["uid"] = "u".into();
        self.live = Some(result);
    }

    fn write(&mut self, manager: &str, body: Value) {
        self.write_to(None, manager, body);
    }

    fn object(&self) -> &Value {
        self.live.as_ref().expect("the object exists")
    }

    fn get(&self, pointer: &str) -> Value {
        self.object().pointer(pointer).cloned().unwrap_or_default()
    }

    fn entries(&self) -> Vec<Value> {
        self.get("/metadata/managedFields").as_array().cloned().unwrap_or_default()
    }

    /// Returns `fieldsV1` of a manager's first entry; null without an entry.
    fn owned(&self, manager: &str) -> Value {
        let entries = self.entries();
        let entry = entries.iter().find(|entry| entry["manager"] == manager);
        entry.map(|entry| entry["fieldsV1"].clone()).unwrap_or_default()
    }

    fn managers(&self) -> Vec<String> {
        let name = |entry: &Value| {
            let operation = entry["operation"].as_str().unwrap_or_default();
            format!("{}/{operation}", entry["manager"].as_str().unwrap_or_default())
        };
        self.entries().iter().map(name).collect()
    }
}

/// Sets keys; a null is stored as a value.
fn merge_into(target: &mut Value, source: Value) {
    match (target, source) {
        (Value::Object(target), Value::Object(source)) => {
            for (key, value) in source {
                merge_into(target.entry(key).or_insert(Value::Null), value);
            }
        }
        (target, source) => *target = source,
    }
}

fn widget_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "spec": { "type": "object", "properties": {
                "n": { "type": "integer" },
                "tags": { "type": "array", "items": { "type": "string" },
                          "x-kubernetes-list-type": "set" },
                "plain": { "type": "array", "items": { "type": "string" } },
                "items": { "type": "array", "x-kubernetes-list-type": "map",
                           "x-kubernetes-list-map-keys": ["name"],
                           "items": { "type": "object", "required": ["name"], "properties": {
                               "name": { "type": "string" }, "v": { "type": "integer" } } } },
                "whole": { "type": "object", "x-kubernetes-map-type": "atomic",
                           "properties": { "a": { "type": "string" }, "b": { "type": "string" } } },
                "o": { "type": "object", "properties": { "x": { "type": "integer" } } },
                "any": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
                "port": { "x-kubernetes-int-or-string": true },
            } },
            "status": { "type": "object", "properties": { "c": { "type": "integer" } } },
        },
    })
}
