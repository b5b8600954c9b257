//! Resources whose ids were set by hand: each may belong to one object only, and to one part of
//! that object.
//!
//! Two objects with one resource would repair it in turn, and the deletion of one of them would
//! delete the resource of the other. So would two parts of one object.

// DESIGN.md, 302: An import is recorded before the first call

use std::borrow::Cow;
use std::fmt;

use super::record::{Record, parts_of, policy_of, suffix_of};
use super::{External, ExternalObject, ExternalPolicy, Externals};
use crate::controller::{Context, Failure, Reconciler};
use windlass_cache::store::Cached;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::{ObjectKey, Resource};

/// Another record that names the resource.
#[derive(Debug)]
pub(super) struct Holder {
    /// The object; `None` for another part of the same one.
    pub(super) object: Option<ObjectKey>,
    part: String,
    /// Whether the resource is recorded as the holder's: the id was not just set by hand.
    is_recorded: bool,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = match (&*self.part, &self.object) {
            ("", Some(_)) => String::new(),
            ("", None) => "the main resource of ".to_owned(),
            (part, _) => format!("the part {part:?} of "),
        };
        let object = self.object.as_ref().map(|object| format!("the object \"{object}\""));
        let object = object.as_deref().unwrap_or("the same object");
        if self.is_recorded {
            return write!(f, "it is recorded by {part}{object} already");
        }
        write!(f, "{part}{object} names it, too, and it is recorded for neither")
    }
}

impl Holder {
    /// Returns the failure of `own`, whose annotation names a resource that another holder claims.
    pub(super) fn refusal(&self, annotation: &str, own: &ObjectKey, id: &str) -> Failure {
        let remedy = match (&self.object, self.is_recorded) {
            (Some(_), true) => {
                "Restore the former value of the annotation, or remove it if there was none; to hand the resource over, \
                 first set the policy `no-delete` on the other object, then delete that object"
            }
            (Some(_), false) => {
                "Restore the former value of the annotation of one of the two objects, or remove it if there was none: \
                 the other one then has the resource"
            }
            (None, _) => {
                "Restore the former value of one of the two annotations, or remove it if there was none"
            }
        };
        let text = format!(
            "the annotation {annotation} of \"{own}\" names the external resource \"{id}\", and {self}: a resource belongs to \
             one object, and to one part of it. {remedy}"
        );
        Failure::terminal(Error::new(ErrorKind::Conflict, text))
    }
}

/// The search for other holders of a resource.
pub(super) struct HolderSearch<'a, E: External, C: Reconciler<Object = E::Object>> {
    pub(super) externals: &'a Externals<E>,
    pub(super) cx: &'a Context<C>,
    pub(super) object: &'a E::Object,
    pub(super) part: &'a str,
}

impl<E: External, C: Reconciler<Object = E::Object>> HolderSearch<'_, E, C> {
    /// Returns the part of this object, or the cached object, for which the resource is recorded;
    /// if there is none, one that merely names it.
    pub(super) fn holder(&self, id: &str) -> Option<Holder> {
        let own_parts = parts_of(self.object, &self.externals.name);
        let own_parts = own_parts.into_iter().filter(|part| part != self.part);
        let own = own_parts.filter_map(|part| {
            let is_recorded = self.claim_of(self.object, &part, id)?;
            Some(Holder { object: None, part, is_recorded })
        });
        let others = self.cx.other_objects().filter(|other| may_name(other, id));
        let others = others.filter_map(|other| {
            let object = other.get().ok()?;
            let parts = parts_of(&*object, &self.externals.name).into_iter();
            let claims = parts.filter_map(|part| Some((self.claim_of(&object, &part, id)?, part)));
            let (is_recorded, part) = claims.max_by_key(|(is_recorded, _)| *is_recorded)?;
            Some(Holder { object: Some(other.key().clone()), part, is_recorded })
        });
        let mut named = None;
        for holder in own.chain(others) {
            if holder.is_recorded {
                return Some(holder);
            }
            named = named.or(Some(holder));
        }
        named
    }

    /// Returns whether the part's claim is recorded; `None` if the part makes no claim on this
    /// resource.
    fn claim_of(&self, object: &E::Object, part: &str, id: &str) -> Option<bool> {
        // A record that cannot be read stops its own object, which then makes no call: no claim.
        let suffix = suffix_of(&self.externals.name, part).ok()?;
        let record = Record::of(object, &suffix).ok()?;
        let is_former = record.former.as_deref() == Some(id);
        if record.id.as_deref() != Some(id) && !is_former
            || self.scope_of(object, part) != self.scope_of(self.object, self.part)
        {
            return None;
        }
        // A policy that cannot be read may be corrected at any time to one that permits everything.
        let policy = self.externals.policy.and(policy_of(object, &suffix).unwrap_or_default());
        let is_refused_import = record.is_import && !policy.imports();
        let is_created = record.created.is_some() || is_former;
        // An object that only observes, or whose import is refused, cannot harm the resource.
        let counts = is_created || changes(policy) && !is_refused_import;
        counts.then_some(is_created || record.is_accepted)
    }

    /// Returns the scope within which ids of the provider are unique.
    fn scope_of(&self, object: &E::Object, part: &str) -> String {
        self.externals.provider().id_scope(&ExternalObject { object, part })
    }
}

/// Whether resources are changed or deleted under a policy.
pub(super) fn changes(policy: ExternalPolicy) -> bool {
    policy.updates() || policy.deletes()
}

/// Whether the text of an object may have the id; false saves the decoding of the object.
fn may_name<K: Resource>(object: &Cached<K>, id: &str) -> bool {
    // JSON has several spellings of other characters.
    let is_plain = id.bytes().all(|c| c.is_ascii_alphanumeric() || b"-_.:".contains(&c));
    match object.raw() {
        Cow::Borrowed(text) if is_plain && !id.is_empty() => {
            text.windows(id.len()).any(|part| part == id.as_bytes())
        }
        // Not borrowed: the text would have to be decompressed or encoded first.
        _ => true,
    }
}
