//! The verdict of an API server on a whole definition: names, rules with their cost, the parts of
//! each version, size.
//!
//! A single field is judged by [`schema`](super::schema); rules need the whole schema,
//! because their cost counts the lists and maps around them.

mod limits;
mod version;

pub(super) use self::version::{SELECTABLE, SELECTABLE_REASON, selects_by};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;
use windlass_cel::rules::{Reason, Violation, check_definition};

use super::faults::Faults;
use crate::error::{Error, ErrorKind};

/// Most bytes of a definition. etcd takes a request of 1.5 MiB; the rest is left for the parts that
/// the server adds: managedFields with a path per field of the schema, status, the key.
const MOST_BYTES: usize = 1 << 20;
/// Most bytes of all annotations; `kubectl apply` keeps the whole object in a single annotation.
const MOST_ANNOTATED: usize = 256 << 10;
/// Most bytes of a kind, and of a list kind.
const MOST_NAME_BYTES: usize = 63;

/// Judges a definition; warnings are logged, or collected by
/// [`collect`](super::faults::collect).
///
/// # Errors
/// [`ErrorKind::Usage`] with everything for which an API server would refuse the definition, in the
/// server's words, and the remedy.
pub(super) fn validate(definition: &CustomResourceDefinition) -> Result<(), Error> {
    let name = definition.metadata.name.clone().unwrap_or_default();
    let tried = format!("derive the definition of {name}");
    let value = serde_json::to_value(definition).map_err(|error| {
        Error::new(ErrorKind::Usage, format!("cannot {tried}: it does not encode")).because(error)
    })?;
    let mut faults = Faults::default();
    names(&value["spec"]["names"], &mut faults);
    for version in value["spec"]["versions"].as_array().into_iter().flatten() {
        for violation in check_definition(&version["schema"]["openAPIV3Schema"]) {
            faults.add(rule(&violation));
        }
        self::version::judge(version, &mut faults);
        limits::judge(&version["schema"]["openAPIV3Schema"], "", &mut faults);
    }
    size(&value, &mut faults);
    faults.into_result(&tried)
}

/// Checks kind and list kind, for definitions whose names were changed in code.
fn names(names: &Value, faults: &mut Faults) {
    let text = |key: &str| names[key].as_str().unwrap_or_default();
    for key in ["kind", "listKind"] {
        let bytes = text(key).len();
        if bytes > MOST_NAME_BYTES {
            faults.add(format!(
                "spec.names.{key}: Invalid value: \"{}\": may have mixed case, but should otherwise match: must be \
                 no more than {MOST_NAME_BYTES} bytes; a kind has at most {} letters, since `List` is added",
                text(key),
                MOST_NAME_BYTES - "List".len()
            ));
        }
    }
}

/// The text of a fault of a rule, with the path as users write it.
fn rule(violation: &Violation) -> String {
    let remedy = match violation.reason {
        Reason::Forbidden => {
            "the cost counts the largest list, map and string that the schema allows: bound each on the way to the \
             rule by `items`, `length` and `properties` of `#[schema]`, `#[schemars(length(max = …))]`, or \
             \"maxProperties\""
        }
        Reason::Internal => {
            "the field has no type that expressions could see, as it may be a string or an object: write the \
             rule on a field with a type, above or below"
        }
        _ if violation.detail.contains("undefined field") => {
            "expressions use JSON names (`minSize` for `min_size` with `rename_all = \"camelCase\"`), and fields \
             that the schema lists"
        }
        _ if violation.detail.contains("oldSelf cannot be used") => {
            "items of a list without keys have no old value: write the rule on the list, or make it a list of \
             type `map`"
        }
        _ => "correct the rule in `x-kubernetes-validations`",
    };
    format!("{violation}; {remedy} (in the definition, at {})", place(violation.path.as_str()))
}

/// The field that a path within a schema means: `.spec.size` for
/// `properties[spec].properties[size]…`.
fn place(path: &str) -> String {
    let mut place = String::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some((name, after)) =
            rest.strip_prefix("properties[").and_then(|inner| inner.split_once(']'))
        {
            place = format!("{place}.{name}");
            rest = after;
        } else if let Some(after) = rest.strip_prefix("items") {
            place.push_str("[]");
            rest = after;
        } else if let Some(after) = rest.strip_prefix("additionalProperties") {
            place.push_str(".*");
            rest = after;
        } else {
            break;
        }
        rest = rest.strip_prefix('.').unwrap_or(rest);
    }
    if place.is_empty() { "the root".to_owned() } else { place }
}

/// Checks the size of the definition.
fn size(definition: &Value, faults: &mut Faults) {
    let bytes = definition.to_string().len();
    let remedy = "leave `#[schema(full)]` out at embedded Kubernetes types (in a type that derives schemars' `JsonSchema`: \
                  describe them by `#[schemars(schema_with = \"windlass::crd::object\")]`), and shorten doc comments";
    if bytes > MOST_BYTES {
        faults.add(format!(
            "the definition has {bytes} bytes; etcd stores 1.5 MiB with managedFields and status, so at most \
             {MOST_BYTES} are accepted here; {remedy}"
        ));
    } else if bytes > MOST_ANNOTATED {
        faults.warn(format!(
            "the definition has {bytes} bytes, and `kubectl apply` fails above {MOST_ANNOTATED}, which it keeps in an \
             annotation (`kubectl apply --server-side` does not); {remedy}"
        ));
    }
}

#[cfg(test)]
mod tests;
