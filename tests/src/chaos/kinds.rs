//! The kinds of the world: two custom kinds, of which the second comes and goes, and a kind that is
//! independent of them.

use k8s_openapi::api::core::v1::ConfigMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass::Projection;
use windlass::prelude::*;
use windlass::resource::{PartialObject, Resource, ResourceInfo};
use windlass::store::Index;

use super::content::Content;

/// Names of the kinds in the book, by number.
pub(super) const NAMES: [&str; 3] = ["gadgets", "gizmos", "configmaps"];
/// Number of [`Gadget`], which most writes go to.
pub const GADGETS: usize = 0;
/// Number of [`Gizmo`]: the definition is removed and added again.
pub const GIZMOS: usize = 1;
/// Number of [`ConfigMap`]: the kind that must not suffer with the others.
pub const CONFIG_MAPS: usize = 2;
/// Group of the custom kinds.
pub(super) const GROUP: &str = "chaos.windlass.dev";

/// The kind that most writes go to.
#[derive(CustomResource, Clone, Debug)]
#[resource(group = "chaos.windlass.dev", version = "v1", namespaced)]
pub struct Gadget {
    /// Metadata.
    pub metadata: ObjectMeta,
    /// Desired state.
    pub spec: GadgetSpec,
}

/// A kind that comes and goes.
#[derive(CustomResource, Clone, Debug)]
#[resource(group = "chaos.windlass.dev", version = "v1", namespaced)]
pub struct Gizmo {
    /// Metadata.
    pub metadata: ObjectMeta,
    /// Desired state.
    pub spec: GadgetSpec,
}

/// The content of both.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GadgetSpec {
    /// The serial number; a word in objects that do not decode.
    pub size: u64,
    /// Follows from the serial number.
    pub shard: String,
}

/// Part of a ConfigMap that projecting caches keep.
#[derive(Projection, Clone, Debug)]
#[projection(of = ConfigMap)]
pub struct ConfigMapView {
    /// Metadata.
    pub metadata: ObjectMeta,
    /// The serial number; a number in objects that do not decode.
    #[projection(path = "data.size")]
    pub size: Option<String>,
    /// Follows from the serial number.
    #[projection(path = "data.shard")]
    pub shard: Option<String>,
}

/// A kind that the world writes and the caches keep, whole or in part.
pub trait Subject: Resource {
    /// Number of the kind.
    const KIND: usize;
    /// Finds objects by [`Content::shard`].
    const BY_SHARD: Index<Self, String>;
    /// Returns the content of a decoded object: the serial number and the shard.
    fn held(&self) -> Option<(u64, &str)>;
    /// Whether objects of this content do not decode.
    fn is_bad(content: Content) -> bool {
        content.is_bad()
    }
    /// Returns group, version, kind and plural.
    fn info() -> ResourceInfo {
        match Self::static_info() {
            Some(info) => info,
            None => panic!("{} must say what it is", std::any::type_name::<Self>()),
        }
    }
}

/// Returns the parts of an object besides metadata, by kind.
pub(super) fn body(kind: usize, content: Content) -> (&'static str, Value) {
    let (field, size) = match (kind, content.is_bad()) {
        (CONFIG_MAPS, true) => ("data", json!(7)),
        (CONFIG_MAPS, false) => ("data", json!(content.serial.to_string())),
        (_, true) => ("spec", json!("none")),
        (_, false) => ("spec", json!(content.serial)),
    };
    (field, json!({ "size": size, "shard": content.shard() }))
}

impl Subject for Gadget {
    const KIND: usize = GADGETS;
    const BY_SHARD: Index<Self, String> = Index::on_path("shard", &["spec", "shard"]);
    fn held(&self) -> Option<(u64, &str)> {
        Some((self.spec.size, &self.spec.shard))
    }
}

impl Subject for Gizmo {
    const KIND: usize = GIZMOS;
    const BY_SHARD: Index<Self, String> = Index::on_path("shard", &["spec", "shard"]);
    fn held(&self) -> Option<(u64, &str)> {
        Some((self.spec.size, &self.spec.shard))
    }
}

impl Subject for ConfigMap {
    const KIND: usize = CONFIG_MAPS;
    const BY_SHARD: Index<Self, String> = Index::on_path("shard", &["data", "shard"]);
    fn held(&self) -> Option<(u64, &str)> {
        let data = self.data.as_ref()?;
        Some((data.get("size")?.parse().ok()?, data.get("shard")?))
    }
}

impl Subject for ConfigMapView {
    const KIND: usize = CONFIG_MAPS;
    const BY_SHARD: Index<Self, String> = Index::on_path("shard", &["data", "shard"]);
    fn held(&self) -> Option<(u64, &str)> {
        Some((self.size.as_ref()?.parse().ok()?, self.shard.as_ref()?))
    }
}

/// Gizmos whose metadata alone is kept.
impl Subject for PartialObject {
    const KIND: usize = GIZMOS;
    const BY_SHARD: Index<Self, String> = Index::on_path("shard", &["metadata", "labels", "shard"]);
    fn held(&self) -> Option<(u64, &str)> {
        Some((self.label("serial")?.parse().ok()?, self.label("shard")?))
    }
    fn is_bad(_: Content) -> bool {
        false
    }
    fn info() -> ResourceInfo {
        ResourceInfo::of::<Gizmo>()
    }
}

/// Returns group and plural of a kind.
pub(super) fn place(kind: usize) -> (&'static str, &'static str) {
    (if kind == CONFIG_MAPS { "" } else { GROUP }, NAMES[kind])
}

/// Returns an object of a kind, without apiVersion and kind.
pub(super) fn object(
    kind: usize,
    namespace: &str,
    name: &str,
    uid: &str,
    content: Content,
) -> Value {
    match kind {
        GADGETS => content.object::<Gadget>(namespace, name, uid),
        GIZMOS => content.object::<Gizmo>(namespace, name, uid),
        _ => content.object::<ConfigMap>(namespace, name, uid),
    }
}

/// Returns the definition of a custom kind; the schema lets everything pass.
pub fn definition(kind: usize) -> Value {
    let (plural, singular, name) =
        if kind == GIZMOS { ("gizmos", "gizmo", "Gizmo") } else { ("gadgets", "gadget", "Gadget") };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{GROUP}") },
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": { "plural": plural, "singular": singular, "kind": name, "listKind": format!("{name}List") },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                } },
            }],
        },
    })
}
