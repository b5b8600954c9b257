//! Types of objects: fields, merge behaviour of lists, atomic parts.
//!
//! Server-side apply, strategic merge patches, field validation and the OpenAPI documents all need
//! the same facts about a kind. This module provides them for built-in kinds (recorded from a real
//! server, see [`TypeSchema::builtin`]), for custom resources (from their `openAPIV3Schema`) and
//! for objects without any schema. Value validation (minimum, pattern, CEL), defaulting and pruning
//! of custom resources are elsewhere.

mod builtin;
mod canonical;
mod check;
pub(crate) mod descriptions;
pub(crate) mod enums;
mod fields;
pub(crate) mod internal;
pub(crate) mod line_diff;
mod openapi;
pub(crate) mod quantity;
mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

pub(crate) use table::{
    Id, ListMerge, ObjectType, ScalarType, TypeShape, TypeTable, TypedField, ValueTreatment,
};

/// The type of a kind of object. Clones are cheap.
#[derive(Clone, Debug)]
pub struct TypeSchema {
    table: Arc<TypeTable>,
    root: Id,
    kind: Option<String>,
    /// Whether the kind is built in: only then is the canonical form known.
    builtin: bool,
    /// Whether the kind has the status subresource.
    status: bool,
}

impl TypeSchema {
    /// Returns the type of a built-in kind, such as `("apps/v1", "Deployment")`.
    ///
    /// `None` for a kind that kube-apiserver 1.36 does not have. The types are parsed once per
    /// process, in about two milliseconds.
    pub fn builtin(api_version: &str, kind: &str) -> Option<Arc<TypeSchema>> {
        builtin::find(api_version, kind)
    }

    /// Returns every built-in kind as `(apiVersion, kind)`, sorted.
    pub fn builtin_kinds() -> Vec<(String, String)> {
        builtin::kinds()
    }

    /// Returns the table of all built-in types.
    pub(crate) fn builtin_table() -> &'static TypeTable {
        builtin::table()
    }

    /// Returns the type of a custom resource, from the `openAPIV3Schema` of the version.
    ///
    /// Reads properties, items, additionalProperties, required, default, format and the extensions
    /// `x-kubernetes-list-type`, `-list-map-keys`, `-map-type`, `-preserve-unknown-fields`,
    /// `-int-or-string` and `-embedded-resource`; metadata is always the built-in `ObjectMeta`.
    pub fn from_openapi(schema: &Value) -> TypeSchema {
        openapi::read(schema)
    }

    /// Returns a type without a schema: the type of every value is deduced. Maps merge, lists are
    /// atomic.
    pub fn untyped() -> TypeSchema {
        // Shared: a table without types is the same for all objects.
        static UNTYPED: OnceLock<Arc<TypeTable>> = OnceLock::new();
        let table = UNTYPED.get_or_init(|| Arc::new(TypeTable::new()));
        TypeSchema::new(Arc::clone(table), TypeTable::ANY, None, false)
    }

    /// Whether two values at a path, such as `spec.template` or `spec.containers[]` for an item,
    /// are equal to the server: for built-in kinds empty lists and maps are the same as none, and
    /// quantities are compared by their amounts.
    pub(crate) fn same(&self, path: &str, a: &Value, b: &Value) -> bool {
        if self.builtin { canonical::same(self, path, a, b) } else { a == b }
    }

    /// Replaces empty lists of fields that are always written by null, as the way through the store
    /// does.
    pub(crate) fn persist(&self, value: &mut Value) {
        canonical::persist(self, value);
    }

    /// Replaces null items of lists by Go's zero values, as decoding does.
    pub(crate) fn fill(&self, value: &mut Value) {
        canonical::fill(self, value);
    }

    /// Returns the first value that the converter of strategic merge patches cannot convert, in the
    /// converter's words.
    pub(crate) fn unconvertible(&self, value: &Value) -> Option<String> {
        check::unconvertible(self, value)
    }

    /// Returns the type of a kind whose object is `root`.
    fn new(table: Arc<TypeTable>, root: Id, kind: Option<String>, builtin: bool) -> TypeSchema {
        let root_object = table.object(root);
        let status = builtin && root_object.is_some_and(|o| o.fields.contains_key("status"));
        TypeSchema { table, root, kind, builtin, status }
    }

    /// Sets whether the kind has the status subresource, for field ownership: if so, status has no
    /// owner through the main endpoint. Default: built-in kinds with a status have the subresource,
    /// custom resources do not.
    #[must_use]
    pub fn with_status_subresource(mut self, on: bool) -> TypeSchema {
        self.status = on;
        self
    }

    /// Whether the kind has the status subresource.
    pub(crate) fn has_status_subresource(&self) -> bool {
        self.status
    }

    /// Whether this is the type of a built-in kind.
    pub fn is_builtin(&self) -> bool {
        self.builtin
    }

    /// Returns the kind; `None` unless built in.
    pub(crate) fn kind(&self) -> Option<&str> {
        self.kind.as_deref()
    }

    /// Returns the table that holds this type and all types that it needs.
    pub(crate) fn table(&self) -> &TypeTable {
        &self.table
    }

    /// Returns the type of the object at the root.
    pub(crate) fn root(&self) -> Id {
        self.root
    }

    /// Returns the paths of fields that the type does not have, such as `spec.containers[0].bogus`,
    /// in order.
    pub fn unknown_fields(&self, value: &Value) -> Vec<String> {
        fields::unknown(self, value)
    }

    /// Removes the fields that the type does not have, and returns their paths like
    /// [`TypeSchema::unknown_fields`].
    pub fn drop_unknown(&self, value: &mut Value) -> Vec<String> {
        fields::drop_unknown(self, value)
    }

    /// Returns the error of Go's decoder for the first value that is not of the declared type; only
    /// for built-in kinds. The object's own metadata is not checked.
    pub(crate) fn mismatch(&self, value: &Value) -> Option<String> {
        if self.builtin { check::mismatch(self, value) } else { None }
    }

    /// Rewrites an object as after a read into the server's own types and a write back.
    ///
    /// Only for built-in kinds; other objects are not changed. Nulls and empty lists and maps of
    /// optional fields vanish; fields that are always written (`spec: {}` of a Deployment, `name:
    /// ""` of a container) appear. Optional scalars stay as they are.
    pub fn canonicalize(&self, value: &mut Value) {
        if self.builtin {
            canonical::rewrite(self, value);
        }
    }

    /// Returns an object in that form.
    pub(crate) fn canonical(&self, mut value: Value) -> Value {
        self.canonicalize(&mut value);
        value
    }

    /// Returns an object of this kind before any field is set; `{}` unless the kind is built in.
    pub fn empty_object(&self) -> Value {
        self.canonical(Value::Object(serde_json::Map::new()))
    }

    /// Returns the OpenAPI v3 schema. Named types are `$ref`s to `#/components/schemas/…`, which
    /// [`TypeSchema::components`] returns.
    pub fn to_openapi(&self) -> Value {
        openapi::write(&self.table, self.root)
    }

    /// Returns every named type that this type needs, by name, itself included if named.
    pub fn components(&self) -> BTreeMap<String, Value> {
        openapi::components(&self.table, self.root)
    }

    /// Returns the name of the type in OpenAPI documents, such as `io.k8s.api.core.v1.Pod`.
    pub fn openapi_name(&self) -> Option<&str> {
        self.table.node(self.root).name.as_deref()
    }
}
