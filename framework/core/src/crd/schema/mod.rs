//! Structural schemas, the form that API servers accept, from schemars' schemas.

mod contracts;
mod defaults;
mod finish;
mod fits;
mod graph;
mod keywords;
mod lists;
mod lower;
mod map_keys;
mod marks;
mod merge;
mod names;
mod node;
mod reference;
mod translate;
mod union;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value};

use super::faults::Faults;
use crate::error::Error;

pub(in crate::crd) use defaults::first_status_fault;
pub use keywords::FORMATS;
pub(super) use keywords::{EACH, OWN_FORMAT};

use lower::Lower;
pub(super) use lower::Mark;
pub use map_keys::key_type;
pub(in crate::crd) use map_keys::{each_value, mark_key_type, mark_keys, value_of_option};
pub(crate) use marks::INSIDE;
pub(in crate::crd) use marks::parsed;
pub(crate) use node::STRUCTURAL;
pub(super) use node::{second_type, tighten};

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
/// The schema of a type is computed anew in each call: some milliseconds for a large type.
///
/// # Errors
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage) naming every field without a structural schema,
/// and the necessary change.
pub fn structural_schema<T: JsonSchema>() -> Result<StructuralSchema, Error> {
    let mut faults = Faults::default();
    // Without a kind there is nothing that could have columns.
    let (schema, _) = field_schema("", with_marked_keys::<T>, &mut faults);
    let tried = format!("derive the schema of {}", T::schema_name());
    let warnings = faults.into_warnings(&tried)?;
    Ok(StructuralSchema { schema: Value::Object(schema), warnings })
}

/// The schema of a type, with the mark of a map's keys that `derive(Schema)` leaves on fields.
fn with_marked_keys<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = generator.subschema_for::<T>();
    if schema.get("$ref").is_none() {
        mark_keys(&mut schema, &T::schema_id());
    }
    schema
}

/// The reason for which a value does not fit a structural schema; `None` if the value fits.
///
/// Rules are not evaluated.
pub fn misfit(value: &Value, schema: &Value) -> Option<String> {
    let (place, message) = fits::fits(value, schema.as_object()?).err()?;
    Some(format!("{value}{place} {message}"))
}

/// The structural schema of the root's field `name`, and the marked fields in the schema.
pub(super) fn field_schema(
    name: &str,
    schema: fn(&mut SchemaGenerator) -> Schema,
    faults: &mut Faults,
) -> (Map<String, Value>, Vec<Mark>) {
    let mut generator = settings().into_generator();
    let mut raw = schema(&mut generator).to_value();
    let mut definitions = generator.take_definitions(false);
    // Once more as serde writes the type: the differences say more about options and names.
    let mut writer = settings().for_serialize().into_generator();
    let written = schema(&mut writer).to_value();
    contracts::compare(&mut raw, &written);
    contracts::compare_all(&mut definitions, &writer.take_definitions(false));
    let mut lower = Lower::new(&definitions, faults);
    if !name.is_empty() {
        lower.enter_root(name);
    }
    let mut schema = lower.schema(&raw);
    lower.further_cuts();
    defaults::check(&schema, &mut lower);
    let marks = std::mem::take(&mut lower.marks);
    finish::finish(&mut schema, name != "status");
    (schema, marks)
}

/// Settings of the generator: the dialect with the most keywords, and references to types, which
/// keep the keywords of a field apart from those of its type.
fn settings() -> SchemaSettings {
    SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
    })
}

#[cfg(test)]
mod tests;
