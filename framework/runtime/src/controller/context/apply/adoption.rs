//! The treatment of a foreign object of the name of a child: adopted if allowed, else reported.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Value, json};

use super::intent::Ownership;
use super::{Apply, Version};
use crate::children::LABEL;
use crate::controller::Reconciler;
use crate::controller::state::WriteEffect;
use crate::events::{NOTE_LIMIT, Normal, Warning};
use crate::owner::{MarkedOwner, OWNER, OWNER_UID};
use windlass_client::api::Patch;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::{FullObject, Resource, ResourceExt};

/// The owner that controls an object of the child's name.
struct Holder {
    /// Kind and name, for messages.
    name: String,
    /// Whether the owner has the kind and the key of the reconciled object, and therefore another
    /// uid.
    is_earlier: bool,
    /// Whether a mark names the owner, and not an owner reference.
    is_marked: bool,
}

impl<C: Reconciler, K: FullObject> Apply<'_, C, K> {
    /// Handles a foreign object of the name of the child: adopts the object if allowed. `None` when
    /// the object changed meanwhile.
    pub(super) async fn take_over(
        &self,
        live: K,
        refused: Error,
    ) -> Result<Option<Version>, Error> {
        let cx = self.cx;
        // Children that are orphaned lose their owner reference before the owner is gone.
        cx.ensure_alive(&self.what()).await?;
        let holder = self.holder(&live);
        if live.is_terminating() {
            return Err(
                refused.note("it is being deleted, and is created again after its deletion")
            );
        }
        match (&self.may_adopt, holder) {
            (_, Some(holder)) if !holder.is_earlier => {
                let name = &holder.name;
                Err(self.taken(&format!("it is controlled by {name}; choose another name")))
            }
            (Some(may), _) if may(&live) => self.adopt(&live).await,
            // Nothing deletes the object: the clean-up was left out, as by a finalizer that was
            // removed by hand.
            (_, Some(holder)) if holder.is_marked => Err(self.taken(
                "it belongs to an earlier object of the same name, whose clean-up has not deleted it; delete it, \
                 or let it be adopted",
            )),
            (_, Some(_)) => Err(refused.note(
                "it belongs to an earlier object of the same name, and garbage collection deletes it soon",
            )),
            (_, None) if self.was_ours(&live) => Err(self.released(&live)),
            (Some(_), None) => Err(self.taken(
                "an object of this name exists and may not be adopted; choose another name, delete \
                 it, or mark it as one that may be adopted",
            )),
            (None, None) => Err(self.taken(
                "an object of this name exists and is not a child of the object; choose another name, \
                 delete it, or take it over by `cx.apply_owned(…).adopt()`, or in a graph by `adopt_if`",
            )),
        }
    }

    /// Whether an object carries the label that a graph gives to this child. The label proves that
    /// the object was made here, not who took the owner away, nor why: `--cascade=orphan` does.
    fn was_ours(&self, live: &K) -> bool {
        let wanted = self.intent["metadata"]["labels"][LABEL].as_str();
        wanted.is_some() && live.label(LABEL) == wanted
    }

    /// Returns the error for a former child, with the request that makes it a child again, and
    /// reports the error by an Event that has the whole request.
    fn released(&self, live: &K) -> Error {
        let command = self.command(live);
        let why = format!(
            "it carries the label {LABEL} of this child and no owner: the owner was removed, as by `kubectl delete \
             --cascade=orphan`"
        );
        let otherwise =
            "otherwise delete it, to have it made anew, or let it be adopted by `adopt_if`";
        let text = self
            .cannot_make(&format!("{why}. If it is to be a child again: `{command}`; {otherwise}"));
        // An Event that is cut loses its end, and half a command is none.
        let first = format!("`{command}` makes it a child again: {why}; {otherwise}");
        let note = if text.len() <= NOTE_LIMIT { &text } else { &first };
        self.cx.event(Warning, "ChildTaken", note);
        Error::new(ErrorKind::Conflict, text)
    }

    /// Returns the command that makes a former child a child again.
    fn command(&self, live: &K) -> String {
        let (form, patch) = match &self.owner {
            Ownership::Reference(owner) => ("json", reference_patch(live, owner)),
            Ownership::Mark(mark) => {
                let (labels, annotations) =
                    (json!({ OWNER_UID: mark.uid }), json!({ OWNER: mark.text }));
                let metadata = json!({ "labels": labels, "annotations": annotations });
                ("merge", json!({ "metadata": metadata }))
            }
        };
        let (info, key) = &self.child;
        let place = key.namespace().map(|it| format!(" -n {it}")).unwrap_or_default();
        let group = if info.group.is_empty() { "" } else { "." };
        let kind = format!("{}{group}{}", info.plural, info.group);
        format!("kubectl patch {kind} {}{place} --type={form} -p '{patch}'", key.name())
    }

    /// Returns the owner that controls an object, by an owner reference or by a mark, if there is
    /// one.
    fn holder(&self, live: &K) -> Option<Holder> {
        let (info, key) = (&self.cx.shared.info, &self.cx.key);
        let mut references = live.metadata().owner_references.iter().flatten();
        if let Some(holder) = references.find(|owner| owner.controller == Some(true)) {
            let group = holder.api_version.split_once('/').map_or("", |(group, _)| group);
            // A reference leads to an owner in the namespace of the object, or to a cluster-scoped
            // owner.
            let is_near = key.namespace().is_none() || key.namespace() == live.namespace();
            let is_kind = holder.kind == info.kind && group == info.group;
            let is_earlier = is_near && is_kind && holder.name == key.name();
            let name = format!("{} \"{}\"", holder.kind, holder.name);
            return Some(Holder { name, is_earlier, is_marked: false });
        }
        live.label(OWNER_UID)?;
        let Some(owner) = live.annotation(OWNER).and_then(MarkedOwner::read) else {
            let name = format!("an owner that its annotation {OWNER} does not name");
            return Some(Holder { name, is_earlier: false, is_marked: true });
        };
        let name = format!("{} \"{}\"", owner.kind, owner.path);
        Some(Holder { name, is_earlier: owner.is_named(info, key), is_marked: true })
    }

    /// Makes the object a child, in exactly the version that was checked, before any other field is
    /// changed.
    async fn adopt(&self, live: &K) -> Result<Option<Version>, Error> {
        // The reference to an earlier object of the same name goes; a child of two could be deleted
        // for either.
        let others = live.metadata().owner_references.iter().flatten();
        let others = others.filter(|owner| owner.controller != Some(true));
        let ours = match &self.owner {
            Ownership::Reference(owner) => Some(owner),
            Ownership::Mark(_) => None,
        };
        let references: Vec<_> = others.chain(ours).collect();
        let (label, annotation) = match &self.owner {
            Ownership::Reference(_) => (None, None),
            Ownership::Mark(mark) => (Some(&mark.uid), Some(&mark.text)),
        };
        let patch = json!({ "metadata": {
            "resourceVersion": live.resource_version(),
            "ownerReferences": references,
            "labels": { OWNER_UID: label },
            "annotations": { OWNER: annotation },
        }});
        let write = self.api().patch(live.name(), Patch::Merge(patch));
        let cx = self.cx;
        let write = write.manager(&cx.shared.controller);
        match cx.answered(write, ("apply", &self.child.1)).await {
            Ok((child, answer)) => {
                cx.wrote(WriteEffect::Changed, &child, &answer);
                let text = format!("{} existed already, and is a child from now on", self.what());
                cx.event(Normal, "ChildAdopted", text);
                Ok(Some(Version::of(&child)))
            }
            // The following create is refused, and the object is checked again.
            Err(error) if error.code() == Some(409) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the error for a taken name, and reports the error by an Event.
    fn taken(&self, why: &str) -> Error {
        let text = self.cannot_make(why);
        self.cx.event(Warning, "ChildTaken", &text);
        Error::new(ErrorKind::Conflict, text)
    }

    fn cannot_make(&self, why: &str) -> String {
        format!("cannot make {} a child of {}: {why}", self.what(), self.cx.object_ref())
    }
}

/// Returns the JSON patch that adds an owner. Others stay without being repeated, so that the patch
/// is short. None of them is the owner: an object with any reference to it is a child.
fn reference_patch<K: Resource>(live: &K, owner: &OwnerReference) -> Value {
    const PATH: &str = "/metadata/ownerReferences";
    if live.metadata().owner_references.as_ref().is_none_or(Vec::is_empty) {
        return json!([{ "op": "add", "path": PATH, "value": [owner] }]);
    }
    json!([{ "op": "add", "path": format!("{PATH}/-"), "value": owner }])
}
