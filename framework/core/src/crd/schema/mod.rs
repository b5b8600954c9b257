//! Structural schemas, the form that API servers accept, from schemars' schemas.

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

/// Schema of a type in the form that API servers accept.
///
/// The warnings concern rules that an API server cannot express; serde still enforces them when an
/// object is read.
#[derive(Clone, Debug, PartialEq)]
pub struct StructuralSchema {
    /// The schema, as in a definition.
    pub schema: Value,
    /// Fields that the API server checks less strictly than serde, with the reasons.
    pub warnings: Vec<String>,
}

/// Returns the structural schema of a type.
///
/// The schema of a type is computed anew in each call: some milliseconds for a large one.
///
/// # Errors
/// [`ErrorKind::Usage`] naming every field without one, and the change that it needs.
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
    // Once more with references, for the rules of types; see `rules`.
    let mut by_name = settings().with(|it| it.inline_subschemas = false).into_generator();
    let named = schema(&mut by_name).to_value();
    rules::restore(&mut raw, &named, &by_name.take_definitions(false));
    let mut lower = Lower::new(&definitions, faults);
    if !name.is_empty() {
        lower.enter(name);
    }
    let mut schema = lower.schema(&raw);
    defaults::check(&schema, &mut lower);
    // After the check of defaults, which expects `enum` in its usual place.
    nullable_choices(&mut schema);
    schema
}

/// Moves the `enum` of nullable fields into `allOf`: the API server checks `enum` against null even
/// if null is allowed, but not an `enum` inside of `allOf` (seen on Kubernetes 1.36).
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

/// Settings of the generator: references only for types that contain themselves, and the dialect
/// with the most keywords.
fn settings() -> SchemaSettings {
    SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    })
}

/// Collects the faults of the types.
#[derive(Debug, Default)]
pub(super) struct Faults {
    /// Faults that make a definition impossible, each once.
    errors: Vec<String>,
    /// Faults that the API server will not check, each once.
    warnings: Vec<String>,
}

impl Faults {
    /// Adds a fault that makes a definition impossible.
    pub(super) fn add(&mut self, message: String) {
        // A position may be translated more than once, and the fault is reported once.
        if !self.errors.contains(&message) {
            self.errors.push(message);
        }
    }

    /// Adds a fault that the API server will not check.
    pub(super) fn warn(&mut self, message: String) {
        if !self.warnings.contains(&message) {
            self.warnings.push(message);
        }
    }

    /// Returns all errors as one; warnings are logged.
    pub(super) fn into_result(self, tried: &str) -> Result<(), Error> {
        for warning in self.into_warnings(tried)? {
            tracing::warn!("{tried}: {warning}");
        }
        Ok(())
    }

    /// Returns the warnings, or all errors as one.
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
