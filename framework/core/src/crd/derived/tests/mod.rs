//! Schemas of derived types: the forms of serde beside schemars' own derive, the keys, the Kubernetes
//! types.

mod forms;
mod keys;
mod kubernetes;
mod options;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// The schema as `crd()` asks for it: without references.
fn schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|it| it.inline_subschemas = true);
    T::json_schema(&mut settings.into_generator()).to_value()
}

/// The schema of a field.
fn field<T: JsonSchema>(name: &str) -> Value {
    schema::<T>()["properties"][name].clone()
}
