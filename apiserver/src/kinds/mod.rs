//! The kinds the server knows: built-in ones by table, custom ones from their definitions.
//!
//! Request handling asks a [`Kind`] for facts instead of matching on names. Storage and HTTP are not
//! known here.

pub(crate) mod admission;
pub(crate) mod builtin;
pub(crate) mod custom;
pub(crate) mod defaults;
pub(crate) mod events;
pub(crate) mod meta;
pub(crate) mod names;
pub(crate) mod pods;
pub(crate) mod registry;
pub(crate) mod workloads;

use std::sync::Arc;

use serde_json::Value;

use crate::served::{Served, Subresource};
use crate::typed::TypeSchema;

/// One served version of a resource with all the server must know of it.
#[derive(Debug)]
pub(crate) struct Kind {
    /// What clients see of it.
    pub(crate) served: Served,
    /// Name of its resource in the store.
    pub(crate) storage: String,
    /// apiVersion of stored objects.
    pub(crate) stored_as: String,
    /// How it behaves.
    pub(crate) facts: Facts,
    /// Field types, for apply and strategic patches.
    pub(crate) types: Arc<TypeSchema>,
    /// Only for custom resources.
    pub(crate) custom: Option<custom::Custom>,
}

/// When `metadata.generation` grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generation {
    /// Never; clients may set it.
    Unmanaged,
    /// With changes outside metadata and status.
    Spec,
    /// The same and with changed annotations.
    SpecOrAnnotations,
    /// Set to 1 at creation, then kept.
    Fixed,
}

/// What names must look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameRule {
    /// RFC 1123 subdomain.
    Subdomain,
    /// RFC 1123 label.
    Label,
    /// RFC 1035 label.
    Label1035,
    /// Anything that fits into a path.
    Path,
}

/// How a kind behaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// Generation rule.
    pub(crate) generation: Generation,
    /// Is an update without resourceVersion allowed?
    pub(crate) unconditional: bool,
    /// Does an update create what is missing?
    pub(crate) create_on_update: bool,
    /// Does DELETE answer with the object?
    pub(crate) returns_object: bool,
    /// Without a policy, does DELETE orphan?
    pub(crate) orphans: bool,
    /// Only POST, nothing is stored.
    pub(crate) review: bool,
    /// Rule for names.
    pub(crate) names: NameRule,
    /// Fields for selectors besides name and namespace.
    pub(crate) fields: &'static [&'static str],
}

impl Facts {
    /// What most built-in kinds do.
    pub(crate) const PLAIN: Self = Self {
        generation: Generation::Unmanaged,
        unconditional: true,
        create_on_update: false,
        returns_object: false,
        orphans: false,
        review: false,
        names: NameRule::Subdomain,
        fields: &[],
    };
}

impl Kind {
    /// `Kind` text for causes and errors.
    pub(crate) fn name(&self) -> &str {
        &self.served.kind
    }

    /// Is it `resource` (plural) of `group`?
    pub(crate) fn is(&self, group: &str, resource: &str) -> bool {
        self.served.group == group && self.served.plural == resource
    }

    /// A subresource by name.
    pub(crate) fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.served.subresources.iter().find(|sub| sub.name == name)
    }

    /// Has it a status subresource?
    pub(crate) fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }

    /// A stored object as this version shows it.
    pub(crate) fn present(&self, stored: &Value) -> Value {
        let mut value = stored.clone();
        if self.storage == "events" && self.served.group == events::GROUP {
            value = events::from_core(value);
        }
        value["apiVersion"] = Value::from(self.served.api_version());
        value["kind"] = Value::from(self.served.kind.clone());
        if let Some(custom) = &self.custom {
            custom.schema.default(&mut value);
        }
        value
    }

    /// An object of this version as it is stored.
    pub(crate) fn store(&self, mut value: Value) -> Value {
        if self.storage == "events" && self.served.group == events::GROUP {
            value = events::to_core(value);
        }
        value["apiVersion"] = Value::from(self.stored_as.clone());
        value["kind"] = Value::from(self.served.kind.clone());
        value
    }
}
