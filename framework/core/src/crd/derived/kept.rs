//! Schemas of the keys `opaque`, `embedded` and `int_or_string`, which replace that of the field's
//! type.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde::de::DeserializeOwned;

use super::form::{self, JsonForm};
use crate::crd::shapes::{REFUSED, UNCHECKED, object};
pub(super) use crate::crd::shapes::{embedded_object as embedded, int_or_string};

/// Remark on a value of which the server checks nothing.
const ANY: &str =
    "an API server stores any value here; serde refuses one that its type does not fit";

/// The fault of an embedded type without the texts that make a value an object.
const NO_OBJECT: &str = "`embedded` is for whole Kubernetes objects: an API server demands `apiVersion` and `kind` there, \
     which this type does not have; leave the key out, or write `opaque`";

/// The schema of a value whose fields have these names, if they are known.
type KeptSchemaFn = fn(Option<&[&str]>, &mut SchemaGenerator) -> Schema;

/// A list, replaced as a whole by server-side apply.
fn list(items: &Schema) -> Schema {
    json_schema!({ "type": "array", "items": items, "x-kubernetes-list-type": "atomic" })
}

/// A map to values of that schema.
fn map(values: &Schema) -> Schema {
    json_schema!({ "type": "object", "additionalProperties": values })
}

macro_rules! containers {
    ($($of:ident: $list:ident, $map:ident;)*) => {$(
        /// A list of them, replaced as a whole by server-side apply.
        pub fn $list(generator: &mut SchemaGenerator) -> Schema {
            list(&$of(generator))
        }

        /// A map to them.
        pub fn $map(generator: &mut SchemaGenerator) -> Schema {
            map(&$of(generator))
        }
    )*};
}

containers! {
    embedded: embedded_list, embedded_map;
    int_or_string: int_or_string_list, int_or_string_map;
}

/// Any value of the form that serde reads as `T`, kept and not checked.
pub(super) fn opaque_of<T: DeserializeOwned>(generator: &mut SchemaGenerator) -> Schema {
    opaque(&form::of::<T>(), false, generator)
}

/// Any value of that form; `null` is one in a list or a map, where it could be one of the type's
/// values. For a field, serde says whether it may be null.
fn opaque(form: &JsonForm, is_inside: bool, generator: &mut SchemaGenerator) -> Schema {
    match form {
        JsonForm::Nullable(form) => null_if(is_inside, opaque(form, is_inside, generator)),
        JsonForm::Object(_) => object(generator),
        JsonForm::List(items) => list(&opaque(items, true, generator)),
        JsonForm::Map(values) => map(&opaque(values, true, generator)),
        JsonForm::Any => any(is_inside),
    }
}

fn any(is_nullable: bool) -> Schema {
    let schema = json_schema!({
        "x-kubernetes-preserve-unknown-fields": true,
        (UNCHECKED): ANY
    });
    null_if(is_nullable, schema)
}

/// Allows null if that is said.
fn null_if(is_nullable: bool, mut schema: Schema) -> Schema {
    if is_nullable {
        schema.insert("nullable".to_owned(), true.into());
    }
    schema
}

/// Any value, kept and not checked: of a type of which serde tells nothing, or that a function
/// reads.
pub fn unknown(_: &mut SchemaGenerator) -> Schema {
    any(true)
}

/// A whole object, or those in the list or map that serde reads as `T`.
pub(super) fn embedded_of<T: DeserializeOwned>(generator: &mut SchemaGenerator) -> Schema {
    let object: KeptSchemaFn = |names, generator| {
        let mut schema = embedded(generator);
        let is_object = |names: &[&str]| ["apiVersion", "kind"].iter().all(|it| names.contains(it));
        if names.is_some_and(|names| !is_object(names)) {
            schema.insert(REFUSED.to_owned(), NO_OBJECT.into());
        }
        schema
    };
    // A map to values of an unknown form may be the object itself.
    inside(&form::of::<T>(), false, (object, |values| !values.is_any()), generator)
}

/// A number or a text, or those in the list or map that serde reads as `T`.
pub(super) fn int_or_string_of<T: DeserializeOwned>(generator: &mut SchemaGenerator) -> Schema {
    let number: KeptSchemaFn = |_, generator| int_or_string(generator);
    inside(&form::of::<T>(), false, (number, |_| true), generator)
}

/// The schema in lists, and in maps whose values have a form that `is_map` accepts.
fn inside(
    form: &JsonForm,
    is_inside: bool,
    (schema, is_map): (KeptSchemaFn, fn(&JsonForm) -> bool),
    generator: &mut SchemaGenerator,
) -> Schema {
    let mut below = |form, is_inside| inside(form, is_inside, (schema, is_map), generator);
    match form {
        JsonForm::Nullable(form) => null_if(is_inside, below(form, is_inside)),
        JsonForm::List(items) => list(&below(items, true)),
        JsonForm::Map(values) if is_map(values) => map(&below(values, true)),
        JsonForm::Object(names) => schema(Some(*names), generator),
        _ => schema(None, generator),
    }
}
