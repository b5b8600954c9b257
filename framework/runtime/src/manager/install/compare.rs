//! Comparison of the program's definition with the stored one, and state of the stored one.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionCondition,
};
use semver::Version;
use serde_json::{Map, Value};

use super::VERSION;
use windlass_core::crd::compat::plain_numbers;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::ResourceExt;

/// Fields of a definition that an API server fills in.
const SERVER_DEFAULTS: [&str; 4] = ["conversion", "listKind", "preserveUnknownFields", "singular"];

/// Returns the names of the served versions.
pub(super) fn served_versions(definition: &CustomResourceDefinition) -> impl Iterator<Item = &str> {
    let versions = definition.spec.versions.iter().filter(|version| version.served);
    versions.map(|version| version.name.as_str())
}

/// Whether `stored` serves every version that `own` does.
pub(super) fn has_versions_of(
    own: &CustomResourceDefinition,
    stored: &CustomResourceDefinition,
) -> bool {
    served_versions(own).all(|wanted| served_versions(stored).any(|version| version == wanted))
}

/// Returns the version of the program that wrote the definition, from the annotation.
pub(super) fn version_of(definition: &CustomResourceDefinition) -> Option<&str> {
    definition.metadata.annotations.as_ref()?.get(VERSION).map(String::as_str)
}

/// Whether a newer version of the program than the program of `own` wrote the stored definition.
pub(super) fn is_newer(stored: &CustomResourceDefinition, own: &CustomResourceDefinition) -> bool {
    let versions = version_of(stored).zip(version_of(own));
    // A text that is no version has no order, so such a text does not protect the definition. Build
    // metadata does not count.
    versions.is_some_and(|(stored, own)| match (Version::parse(stored), Version::parse(own)) {
        (Ok(stored), Ok(own)) => stored.cmp_precedence(&own).is_gt(),
        _ => false,
    })
}

/// Whether applying `own` would change nothing.
pub(super) fn is_same(own: &CustomResourceDefinition, stored: &CustomResourceDefinition) -> bool {
    let value = |definition: &CustomResourceDefinition| {
        let mut value = serde_json::to_value(&definition.spec).unwrap_or_default();
        plain_numbers(&mut value);
        value
    };
    version_of(own) == version_of(stored) && equals_without_defaults(&value(own), &value(stored))
}

/// Whether `stored` equals `own`, except for fields that an API server fills in.
pub(super) fn equals_without_defaults(own: &Value, stored: &Value) -> bool {
    match (own, stored) {
        (Value::Object(own), Value::Object(stored)) => {
            let is_default = |(key, _): &(&String, &Value)| SERVER_DEFAULTS.contains(&key.as_str());
            let extra = |map: &Map<String, Value>| map.iter().filter(|at| !is_default(at)).count();
            let is_equal = |(key, own): (&String, &Value)| {
                stored.get(key).is_some_and(|stored| equals_without_defaults(own, stored))
            };
            own.iter().all(is_equal)
                // A field that only the stored definition has is a difference, too.
                && extra(own) == extra(stored)
        }
        (Value::Array(own), Value::Array(stored)) => {
            own.len() == stored.len()
                && own.iter().zip(stored).all(|(own, stored)| equals_without_defaults(own, stored))
        }
        _ => own == stored,
    }
}

/// Whether the definition is established. An error if it never will be.
pub(super) fn served(definition: &CustomResourceDefinition) -> Result<bool, Error> {
    let conditions = definition.status.as_ref().and_then(|status| status.conditions.as_deref());
    let condition = |kind: &str| -> Option<&CustomResourceDefinitionCondition> {
        conditions?.iter().find(|condition| condition.type_ == kind)
    };
    if let Some(refused) = condition("NamesAccepted").filter(|names| names.status == "False") {
        let text = format!(
            "the API server does not accept the names of {:?}: {}; another definition has them",
            definition.name(),
            refused.message.as_deref().unwrap_or("no message")
        );
        return Err(Error::new(ErrorKind::Config, text));
    }
    Ok(condition("Established").is_some_and(|established| established.status == "True"))
}
