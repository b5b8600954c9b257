//! Structural schemas: what an API server accepts, from what schemars says.

mod defaults;
mod lower;
mod merge;
mod rules;
mod union;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::error::{Error, ErrorKind};

use lower::Lower;

/// A type's schema in the form that API servers accept.
#[derive(Clone, Debug, PartialEq)]
pub struct StructuralSchema {
    /// The schema, as it stands in a definition.
    pub schema: Value,
    /// Fields that the API server will check less strictly than serde does, and why.
    pub warnings: Vec<String>,
}

/// The structural schema of a type.
///
/// # Errors
/// [`ErrorKind::Usage`] naming every field that has none, and what to change.
pub fn structural_schema<T: JsonSchema>() -> Result<StructuralSchema, Error> {
    let mut faults = Faults::default();
    let schema = field_schema("", SchemaGenerator::subschema_for::<T>, &mut faults);
    let tried = format!("derive the schema of {}", T::schema_name());
    let warnings = faults.into_warnings(&tried)?;
    Ok(StructuralSchema { schema: Value::Object(schema), warnings })
}

/// The structural schema of the root's field `name`.
pub(super) fn field_schema(
    name: &str,
    schema: fn(&mut SchemaGenerator) -> Schema,
    faults: &mut Faults,
) -> Map<String, Value> {
    let mut generator = settings().into_generator();
    let mut raw = schema(&mut generator).to_value();
    let definitions = generator.take_definitions(false);
    let mut by_name = settings().with(|it| it.inline_subschemas = false).into_generator();
    let named = schema(&mut by_name).to_value();
    rules::restore(&mut raw, &named, &by_name.take_definitions(false));
    let mut lower = Lower::new(&definitions, faults);
    if !name.is_empty() {
        lower.enter(name);
    }
    let mut schema = lower.schema(&raw);
    defaults::check(&schema, &mut lower);
    nullable_choices(&mut schema);
    schema
}

/// The API server checks `enum` against null even where null is allowed, but not an `enum` inside
/// of `allOf` (seen on Kubernetes 1.36): there the values of a nullable field are listed.
fn nullable_choices(node: &mut Map<String, Value>) {
    if node.get("nullable") == Some(&Value::Bool(true))
        && let Some(values) = node.remove("enum")
    {
        let all = node.entry("allOf").or_insert_with(|| json!([]));
        if let Value::Array(all) = all {
            all.push(json!({ "enum": values }));
        }
    }
    let below = |value: &mut Value| {
        if let Value::Object(node) = value {
            nullable_choices(node);
        }
    };
    if let Some(Value::Object(properties)) = node.get_mut("properties") {
        properties.values_mut().for_each(below);
    }
    for key in ["items", "additionalProperties"] {
        node.get_mut(key).into_iter().for_each(below);
    }
}

/// References only where a type contains itself; the dialect whose keywords say most.
fn settings() -> SchemaSettings {
    SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    })
}

/// What is wrong with the types, collected.
#[derive(Debug, Default)]
pub(super) struct Faults {
    errors: Vec<String>,
    warnings: Vec<String>,
}

impl Faults {
    /// Adds what makes a definition impossible.
    pub(super) fn add(&mut self, message: String) {
        if !self.errors.contains(&message) {
            self.errors.push(message);
        }
    }

    /// Adds what the API server will not check.
    pub(super) fn warn(&mut self, message: String) {
        if !self.warnings.contains(&message) {
            self.warnings.push(message);
        }
    }

    /// All errors as one; warnings are logged.
    pub(super) fn into_result(self, tried: &str) -> Result<(), Error> {
        for warning in self.into_warnings(tried)? {
            tracing::warn!("{tried}: {warning}");
        }
        Ok(())
    }

    fn into_warnings(self, tried: &str) -> Result<Vec<String>, Error> {
        if self.errors.is_empty() {
            return Ok(self.warnings);
        }
        let message = format!("cannot {tried}: {}", self.errors.join("; "));
        Err(Error::new(ErrorKind::Usage, message))
    }
}

#[cfg(test)]
mod tests;
