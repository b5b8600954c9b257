//! Resources that an object names, and another object has recorded.
//!
//! Two objects with one resource would repair it in turn, and the deletion of one of them would
//! delete the resource of the other.

use super::record::{EXTERNAL_NAME, Record, policy_of};
use super::{External, ExternalObject, ExternalPolicy, Externals};
use crate::controller::{Context, Failure, Reconciler, Result};
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::{ObjectKey, Resource, ResourceExt};

/// The resource of one object, before a pass over it.
pub(super) struct ImportCheck<'a, E: External, C: Reconciler<Object = E::Object>> {
    pub(super) externals: &'a Externals<E>,
    pub(super) cx: &'a Context<C>,
    pub(super) object: &'a E::Object,
    pub(super) part: &'a str,
    pub(super) suffix: &'a str,
}

impl<E: External, C: Reconciler<Object = E::Object>> ImportCheck<'_, E, C> {
    /// Refuses an id that was set by hand while another object has recorded the resource, before
    /// any call. Objects that only observe share a resource.
    ///
    /// The cache is searched once for each id: an object that names the resource later is the one
    /// that is refused.
    pub(super) fn ensure_unshared(&self, record: &Record, policy: ExternalPolicy) -> Result<()> {
        let Some(id) = record.id.as_deref().filter(|_| record.created.is_none()) else {
            return Ok(());
        };
        let imports = &self.externals.imports;
        if !changes(policy) || imports.has(self.object.uid(), self.suffix, id) {
            return Ok(());
        }
        let Some(other) = self.recorded_by(id) else {
            imports.note(self.object.uid(), self.suffix, Some(id));
            return Ok(());
        };
        let text = format!(
            "the external resource \"{id}\", which the annotation {EXTERNAL_NAME}{} of \"{}\" names, is recorded by the \
             object \"{other}\" already: a resource belongs to one object. Restore the former value of the annotation, \
             or remove it if there was none; to hand the resource over, delete the other object under the policy \
             `no-delete` first",
            self.suffix,
            self.object.key()
        );
        Err(Failure::terminal(Error::new(ErrorKind::Conflict, text)))
    }

    /// Returns another object of the cache that has recorded the resource, and comes first.
    fn recorded_by(&self, id: &str) -> Option<ObjectKey> {
        let key = format!("{EXTERNAL_NAME}{}", self.suffix);
        let (scope, own) = (self.scope_of(self.object), age(self.object));
        let is_first = |other: &E::Object| {
            let Ok(record) = Record::of(other, self.suffix) else { return false };
            if record.id.as_deref() != Some(id) || self.scope_of(other) != scope {
                return false;
            }
            let stated = policy_of(other, self.suffix).unwrap_or_default();
            // The one of two set by hand that this process has seen alone goes first.
            let is_known = self.externals.imports.has(other.uid(), self.suffix, id);
            record.created.is_some()
                || changes(stated.and(self.externals.policy)) && (is_known || age(other) < own)
        };
        let mut others = self.cx.other_objects();
        let found = others.find(|other| {
            other.annotation(&key).is_some_and(|named| named == id)
                && other.get().is_ok_and(|other| is_first(&other))
        });
        Some(found?.key().clone())
    }

    fn scope_of(&self, object: &E::Object) -> String {
        self.externals.provider().id_scope(&ExternalObject { object, part: self.part })
    }
}

/// Whether resources are changed or deleted under a policy.
fn changes(policy: ExternalPolicy) -> bool {
    policy.updates() || policy.deletes()
}

/// The order of objects whose ids were set by hand.
fn age<K: Resource>(object: &K) -> impl Ord + use<K> {
    let created = object.metadata().creation_timestamp.as_ref().map(|time| time.0);
    (created, object.uid().to_owned())
}
