//! The kinds of the server: built-in kinds from a table, custom kinds from definitions.
//!
//! Request handling asks a [`Kind`] for facts instead of matching on names. Storage and HTTP are
//! not known here.

// DESIGN.md, 238: What a schema lost is not shown

pub(crate) mod admission;
mod autoscalers;
pub(crate) mod builtin;
pub(crate) mod conversion;
pub(crate) mod custom;
pub(crate) mod defaults;
pub(crate) mod events;
pub(crate) mod meta;
pub(crate) mod pods;
pub(crate) mod quantity;
pub(crate) mod registry;
mod rows;
pub(crate) mod services;
mod settings;
pub(crate) mod validate;
pub(crate) mod workloads;

use std::sync::Arc;

use serde_json::Value;

use crate::go;
use crate::names::NameRule;
use crate::served::{Served, Subresource};
use crate::status::FailureSubject;
use crate::typed::TypeSchema;

/// A served version of a resource, with everything that request handling needs.
#[derive(Debug)]
pub(crate) struct Kind {
    /// The resource in the clients' view.
    pub(crate) served: Served,
    /// Name of the resource in the store.
    pub(crate) storage: String,
    /// apiVersion of stored objects.
    pub(crate) stored_as: String,
    /// Behaviour of the kind.
    pub(crate) facts: KindStrategy,
    /// Field types, for apply and strategic patches.
    pub(crate) types: Arc<TypeSchema>,
    /// Definition and schema; only for custom resources.
    pub(crate) custom: Option<custom::Custom>,
}

/// Rule for increments of `metadata.generation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generation {
    /// Never; clients may set the generation.
    Unmanaged,
    /// With changes outside metadata and status.
    Spec,
    /// With changes outside metadata and status; an empty list or map that is sent is another value
    /// than none, although neither is stored.
    Sent,
    /// Absent at creation, then with changes outside metadata and status.
    Late,
    /// With changes outside metadata and status, and with changed annotations.
    SpecOrAnnotations,
    /// With changes outside metadata and status, and with changed labels.
    SpecOrLabels,
    /// Set to 1 at creation, then kept.
    Fixed,
}

/// Behaviour of a kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KindStrategy {
    /// Generation rule.
    pub(crate) generation: Generation,
    /// Whether an update without resourceVersion is allowed.
    pub(crate) unconditional: bool,
    /// Whether an update creates a missing object.
    pub(crate) create_on_update: bool,
    /// Whether DELETE answers with the object.
    pub(crate) returns_object: bool,
    /// Whether DELETE orphans dependents if no policy is given.
    pub(crate) orphans: bool,
    /// Whether the kind is a review: POST only, and nothing is stored.
    pub(crate) review: bool,
    /// Rule for names.
    pub(crate) names: NameRule,
    /// Fields for selectors besides name and namespace.
    pub(crate) fields: &'static [&'static str],
}

impl KindStrategy {
    /// Behaviour of most built-in kinds.
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
    /// Returns the name of the kind, for causes and errors.
    pub(crate) fn name(&self) -> &str {
        &self.served.kind
    }

    /// Whether this is `resource` (plural) of `group`.
    pub(crate) fn is(&self, group: &str, resource: &str) -> bool {
        self.served.group == group && self.served.plural == resource
    }

    /// Returns the subject of failures about an invalid object.
    pub(crate) fn invalid<'a>(&'a self, name: &'a str) -> FailureSubject<'a> {
        let about = FailureSubject::kind(&self.served, name);
        // Events of both groups are validated as those of the core group.
        if self.name() == "Event" { FailureSubject { group: "", ..about } } else { about }
    }

    /// Returns the path of the kind's objects in a real server's store.
    pub(crate) fn registry(&self) -> String {
        let (group, plural) = (self.served.group.as_str(), self.served.plural.as_str());
        match (group, plural) {
            ("", "endpoints") => "services/endpoints".to_owned(),
            ("", "nodes") => "minions".to_owned(),
            ("", "replicationcontrollers") => "controllers".to_owned(),
            ("", "services") => "services/specs".to_owned(),
            ("networking.k8s.io", "ingresses") => "ingress".to_owned(),
            ("apiextensions.k8s.io" | "apiregistration.k8s.io", _) => format!("{group}/{plural}"),
            _ if self.served.custom => format!("{group}/{plural}"),
            _ => plural.to_owned(),
        }
    }

    /// Returns a subresource by name.
    pub(crate) fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.served.subresources.iter().find(|sub| sub.name == name)
    }

    /// Whether the kind has a status subresource.
    pub(crate) fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }

    /// Returns a stored object in the form of this version.
    pub(crate) fn present(&self, stored: &Value) -> Value {
        let mut value = stored.clone();
        if self.storage == "events" && self.served.group == events::GROUP {
            value = events::from_core(value);
        }
        if autoscalers::is_older(self) {
            value = autoscalers::to_older(value);
        }
        // Stored objects carry the stored version, whichever version a request names.
        value["apiVersion"] = Value::from(self.served.api_version());
        value["kind"] = Value::from(self.served.kind.clone());
        // The schema may have changed since the object was stored: lost fields are not shown, and
        // new defaults are.
        if let Some(custom) = &self.custom {
            // Read as the stored version, whose defaults count; another version only drops fields.
            // What a webhook has converted is of this version already.
            let stored = custom.stored.as_ref().filter(|_| custom.conversion.is_none());
            let read = stored.unwrap_or(&custom.schema);
            read.prune(&mut value);
            read.default(&mut value);
            custom.schema.prune(&mut value);
            meta::drop_empty(&mut value);
        }
        value
    }

    /// Returns a decoded object with what the way through the newest version gives it.
    pub(crate) fn settled(&self, value: Value) -> Value {
        if autoscalers::is_older(self) {
            return autoscalers::to_older(autoscalers::to_newer(value));
        }
        value
    }

    /// Returns an object of this version in the stored form.
    pub(crate) fn store(&self, mut value: Value) -> Value {
        if self.storage == "events" && self.served.group == events::GROUP {
            value = events::to_core(value);
        }
        if autoscalers::is_older(self) {
            value = autoscalers::to_newer(value);
        }
        value["apiVersion"] = Value::from(self.stored_as.clone());
        value["kind"] = Value::from(self.served.kind.clone());
        if self.custom.is_some() {
            go::print_large(&mut value);
        }
        if let Some(stored) = self.custom.as_ref().and_then(|custom| custom.stored.as_ref())
            && !stored.prune(&mut value).is_empty()
        {
            // Their fields do not fit the stored version: upstream gives up the ownership of all.
            meta::set(&mut value, "managedFields", Value::Null);
        }
        value
    }
}
