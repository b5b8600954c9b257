//! Objects whose kind is known at run time only.
//!
//! Invariant: `Debug` of both types shows no credential, because objects of unknown kinds are
//! logged by programs that cannot know their fields. Serialization shows everything.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{FullObject, Resource, ResourceInfo};

/// An object of any kind: metadata typed, the rest as JSON. `Debug` shows no values of a Secret,
/// and no token of a `TokenRequest` or a `TokenReview`.
///
/// Fields that this crate does not know are kept: an object that is read and written again loses
/// nothing. `status` is in [`rest`](Self::rest), too.
///
/// ```
/// # extern crate windlass_core as windlass;
/// use serde_json::json;
/// use windlass::resource::{DynamicObject, ResourceExt};
///
/// let object: DynamicObject = serde_json::from_value(json!({
///     "apiVersion": "example.dev/v1", "kind": "Website",
///     "metadata": { "name": "home" }, "spec": { "host": "home.example" },
/// }))?;
/// assert_eq!((object.name(), object.kind.as_str()), ("home", "Website"));
/// assert_eq!(object.rest["spec"]["host"], "home.example");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DynamicObject {
    /// `group/version`.
    ///
    /// The version alone for the core group. Empty in items of lists as servers send them; the
    /// client fills the field in.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Kind of the object, such as `Website`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Metadata of the object: name, labels, resourceVersion and others.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// Everything else: `spec`, `status`, `data`, …
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// An object's type and metadata, without the content: the result of `Api::metadata`. The type is
/// that of the object, not `PartialObjectMetadata`.
///
/// The type saves memory and decoding where only labels, owners or deletion marks matter. An `Api`
/// refuses to create or replace with a `PartialObject`, since the content would be lost; patch and
/// apply are allowed.
///
/// ```
/// # extern crate windlass_core as windlass;
/// use windlass::resource::{PartialObject, ResourceExt};
///
/// let text = r#"{"kind": "Pod", "metadata": {"name": "web-0"}, "spec": {"nodeName": "a"}}"#;
/// let pod: PartialObject = serde_json::from_str(text)?;
/// assert_eq!(pod.name(), "web-0");
/// // The content was not kept.
/// assert!(!serde_json::to_string(&pod)?.contains("nodeName"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PartialObject {
    /// `group/version`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Kind of the object, such as `Website`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Metadata of the object: name, labels, resourceVersion and others.
    #[serde(default)]
    pub metadata: ObjectMeta,
}

impl fmt::Debug for DynamicObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.rest.clone();
        hidden(&self.kind).iter().for_each(|path| hide(&mut rest, path));
        f.debug_struct("DynamicObject")
            .field("api_version", &self.api_version)
            .field("kind", &self.kind)
            .field("metadata", &shown(&self.metadata, &self.kind))
            .field("rest", &rest)
            .finish()
    }
}

impl fmt::Debug for PartialObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartialObject")
            .field("api_version", &self.api_version)
            .field("kind", &self.kind)
            .field("metadata", &shown(&self.metadata, &self.kind))
            .finish()
    }
}

/// Paths of the credentials in objects of a kind, of any group: other groups have Secrets, too.
/// An object without a kind, such as an item of a list, may be a Secret.
fn hidden(kind: &str) -> &'static [&'static [&'static str]] {
    match kind {
        "Secret" | "" => &[&["data"], &["stringData"]],
        "TokenRequest" => &[&["status", "token"]],
        "TokenReview" => &[&["spec", "token"]],
        _ => &[],
    }
}

/// Text in place of a hidden value.
const REDACTED: &str = "[redacted]";

/// Replaces the values at `path`, and leaves the names of fields.
fn hide(object: &mut Map<String, Value>, path: &[&str]) {
    let Some((first, rest)) = path.split_first() else {
        return object.values_mut().for_each(|value| *value = REDACTED.into());
    };
    match object.get_mut(*first) {
        Some(Value::Object(inner)) => hide(inner, rest),
        // Not the expected object: hidden as a whole.
        Some(other) => *other = REDACTED.into(),
        None => {}
    }
}

/// Annotation in which kubectl keeps a copy of the last applied object, secrets included.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The metadata for `Debug`, without kubectl's copy of an object that holds credentials.
fn shown(metadata: &ObjectMeta, kind: &str) -> ObjectMeta {
    let mut metadata = metadata.clone();
    if !hidden(kind).is_empty()
        && let Some(copy) = metadata.annotations.as_mut().and_then(|all| all.get_mut(LAST_APPLIED))
    {
        REDACTED.clone_into(copy);
    }
    metadata
}

#[diagnostic::do_not_recommend]
impl FullObject for DynamicObject {}

/// An `Api` refuses writes of metadata alone when they are sent, not by type.
#[diagnostic::do_not_recommend]
impl FullObject for PartialObject {}

impl Resource for DynamicObject {
    type Kind = Self;

    fn static_info() -> Option<ResourceInfo> {
        None
    }

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }

    fn set_type(&mut self, info: &ResourceInfo) {
        // A type that the object came with is kept.
        if self.api_version.is_empty() {
            self.api_version = info.api_version();
            self.kind = info.kind.to_string();
        }
    }
}

impl Resource for PartialObject {
    type Kind = Self;

    fn static_info() -> Option<ResourceInfo> {
        None
    }

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }

    fn set_type(&mut self, info: &ResourceInfo) {
        // API servers answer every metadata-only request with this kind.
        if self.api_version.is_empty() || self.kind == "PartialObjectMetadata" {
            self.api_version = info.api_version();
            self.kind = info.kind.to_string();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(api_version: &str, kind: &str) -> DynamicObject {
        let applied = r#"{"stringData":{"password":"canary"}}"#;
        serde_json::from_value(json!({
            "apiVersion": api_version,
            "kind": kind,
            "metadata": {
                "name": "login",
                "annotations": {
                    "kubectl.kubernetes.io/last-applied-configuration": applied,
                    "team": "shop",
                },
            },
            "type": "Opaque",
            "data": { "password": "canary" },
            "stringData": { "password": "canary" },
            "status": { "token": "canary" },
            "spec": { "token": "canary", "audiences": ["shop"] },
        }))
        .unwrap()
    }

    /// S8: secrets are never shown. An object of an unknown kind may be a Secret.
    #[test]
    fn debug_shows_what_a_secret_is_called_and_nothing_that_is_in_it() {
        for (api_version, kind) in
            [("v1", "Secret"), ("secrets.example.dev/v1", "Secret"), ("", "")]
        {
            let mut secret = object(api_version, kind);
            secret.rest.retain(|key, _| key != "status" && key != "spec");
            let text = format!("{secret:?} {secret:#?}");
            assert!(!text.contains("canary"), "{text}");
            assert!(text.contains("login") && text.contains("password"), "{text}");
            assert!(text.contains("[redacted]") && text.contains("shop"), "{text}");
            let partial = PartialObject {
                kind: kind.to_owned(),
                metadata: secret.metadata,
                ..Default::default()
            };
            let text = format!("{partial:?} {partial:#?}");
            assert!(!text.contains("canary") && text.contains("shop"), "{text}");
        }
    }

    #[test]
    fn debug_shows_no_token_of_a_request_or_a_review() {
        for (kind, field) in [("TokenRequest", "status"), ("TokenReview", "spec")] {
            let mut one = object("authentication.k8s.io/v1", kind);
            one.metadata.annotations = None;
            one.rest.retain(|key, _| key == field);
            let text = format!("{one:?} {one:#?}");
            assert!(!text.contains("canary") && text.contains("[redacted]"), "{text}");
        }
    }

    #[test]
    fn debug_of_any_other_object_shows_all_of_it() {
        let map = object("v1", "ConfigMap");
        let text = format!("{map:?}");
        assert_eq!(text.matches("canary").count(), 5, "{text}");
    }
}
