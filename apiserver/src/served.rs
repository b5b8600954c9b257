//! Served resources: a value per group, version and resource.
//!
//! Built-in kinds and custom resources are described alike, so discovery, tables, OpenAPI and the
//! request handlers need no second path. The values hold facts only; behaviour is elsewhere.

// DESIGN.md, 6: The API server describes built-in and custom kinds by `Served` values

use std::sync::Arc;

use serde_json::Value;

/// A resource of a group and version.
#[derive(Clone, Debug, PartialEq)]
pub struct Served {
    /// API group; empty for the core group.
    pub group: String,
    /// Version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Kind of lists.
    pub list_kind: String,
    /// Plural, as in URLs.
    pub plural: String,
    /// Singular.
    pub singular: String,
    /// Short names, as in `kubectl get cm`.
    pub short_names: Vec<String>,
    /// Categories, as in `kubectl get all`.
    pub categories: Vec<String>,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Verbs, in the order in which discovery prints them.
    pub verbs: Vec<String>,
    /// Subresources.
    pub subresources: Vec<Subresource>,
    /// Whether this is a custom resource.
    pub custom: bool,
    /// The `openAPIV3Schema` of a custom resource's version.
    pub schema: Option<Arc<Value>>,
    /// Printer columns of a custom resource, without the name.
    pub columns: Vec<Column>,
    /// Fields besides name and namespace that field selectors may name, such as `.spec.host`.
    pub selectable: Vec<String>,
    /// Group, version and kind in which objects are stored, as `apps/v1/Deployment`.
    pub stored_as: String,
    /// Text of the deprecation warning; `None` if the version is not deprecated.
    pub deprecated: Option<String>,
}

/// A subresource of a [`Served`] resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subresource {
    /// `status`, `scale`, `eviction`, …
    pub name: String,
    /// Group of the kind when different from the parent's (`autoscaling` for `scale`).
    pub group: String,
    /// Version of the kind.
    pub version: String,
    /// Kind of the object.
    pub kind: String,
    /// Verbs of the subresource.
    pub verbs: Vec<String>,
    /// `scale` of a custom resource: `specReplicasPath`, `statusReplicasPath`, `labelSelectorPath`.
    pub paths: Vec<String>,
}

/// An `additionalPrinterColumn`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Heading.
    pub name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub kind: String,
    /// OpenAPI format; may be empty.
    pub format: String,
    /// Help text; may be empty.
    pub description: String,
    /// Priority: a column with 0 is always shown, a column with more only in wide output.
    pub priority: i64,
    /// Simple JSON path, such as `.spec.host`.
    pub json_path: String,
}

/// A fault in an object, in the shape of a Status cause.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cause {
    /// `FieldValueInvalid`, `FieldValueRequired`, …
    pub reason: String,
    /// Text without the field: `Invalid value: 0: spec.size in body should be …`.
    pub message: String,
    /// Path of the field, such as `spec.size`.
    pub field: String,
}

impl Served {
    /// Returns `group/version`, or the version alone for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Returns `plural.group`, or the plural alone for the core group.
    pub fn group_resource(&self) -> String {
        if self.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }
}
