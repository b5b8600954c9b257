//! The schema of a kind inside of another kind.

use std::any::TypeId;
use std::cell::RefCell;

use schemars::Schema;
use serde_json::{Map, Value};

use crate::crd::CustomResource;

thread_local! {
    /// Kinds whose definition is being built: a kind may contain itself.
    static OPEN: RefCell<Vec<TypeId>> = const { RefCell::new(Vec::new()) };
}

/// Returns the schema of an embedded object of that kind: the schema of its definition, as an
/// embedded resource. A kind inside of itself, and one whose definition has faults (which its own
/// `crd()` reports), may contain anything.
pub fn embedded_schema<K: CustomResource + 'static>() -> Schema {
    let id = TypeId::of::<K>();
    if OPEN.with_borrow(|open| open.contains(&id)) {
        return opaque();
    }
    OPEN.with_borrow_mut(|open| open.push(id));
    let schema = schema::<K>();
    OPEN.with_borrow_mut(|open| open.retain(|other| *other != id));
    schema.map_or_else(opaque, Schema::from)
}

/// Returns the schema of the definition's only version.
fn schema<K: CustomResource>() -> Option<Map<String, Value>> {
    let definition = K::crd().ok()?;
    let version = definition.spec.versions.into_iter().next()?;
    let schema = version.schema?.open_api_v3_schema?;
    let Ok(Value::Object(mut schema)) = serde_json::to_value(schema) else { return None };
    schema.insert("x-kubernetes-embedded-resource".to_owned(), true.into());
    schema.remove("x-kubernetes-preserve-unknown-fields");
    Some(schema)
}

/// Returns the schema of an object of any kind.
fn opaque() -> Schema {
    schemars::json_schema!({
        "type": "object",
        "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true,
    })
}
