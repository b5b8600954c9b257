//! DELETE of objects and of collections.

use std::sync::Arc;

use serde_json::{Value, json};

use super::admit::policies::Operation;
use super::list;
use super::options::{DeleteOptions, ListOptions, Propagation};
use super::suspend::convert;
use super::{ObjectResponse, VerbCall, addresses, admit, apiservices, flow};
use crate::clock;
use crate::core::ServerCore;
use crate::crds;
use crate::hooks::Progress;
use crate::kinds::{Kind, defaults, meta};
use crate::status::{self, ApiError, FailureSubject};
use crate::storage::{self, StoredObject};

/// Attempts under concurrent writes before a deletion gives up.
const ATTEMPTS: usize = 64;
/// Warning about Pods that stay without their Job.
const ORPHANED: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning";
const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// The request that a deletion is a part of, for admission policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeletionRequest<'a> {
    /// The deletion of the object by name.
    Object,
    /// The deletion of a collection, which names no object. The object with this uid was listed; a
    /// successor that has the name by now is not meant.
    Collection(&'a str),
    /// Another request, which has been judged under its own verb: policies do not judge the
    /// deletion.
    Other,
}

/// Deletes an object.
pub(crate) fn delete(
    core: &ServerCore,
    call: &VerbCall,
    options: &DeleteOptions,
    warnings: &mut Vec<String>,
) -> Result<ObjectResponse, ApiError> {
    delete_as(core, call, options, DeletionRequest::Object, warnings)
}

/// Deletes an object on behalf of a request.
pub(crate) fn delete_as(
    core: &ServerCore,
    call: &VerbCall,
    options: &DeleteOptions,
    asked: DeletionRequest<'_>,
    warnings: &mut Vec<String>,
) -> Result<ObjectResponse, ApiError> {
    admit::deletion(call)?;
    // Also for an object that is not there.
    warn(call, options, warnings);
    for _ in 0..ATTEMPTS {
        let held = call.find(core)?;
        if matches!(asked, DeletionRequest::Collection(uid) if uid != meta::text(&held.value, "uid"))
        {
            return Err(call.not_found());
        }
        preconditions(call, options, &held.value)?;
        warn(call, options, warnings);
        // Before anything is deleted: a conversion that is needed suspends the request.
        let shown = convert::shown(core, call, &held.value)?;
        warnings.extend(judge(core, call, options, asked, &shown)?);
        if let Some(answer) = attempt(core, call, options, &held, &shown) {
            return Ok(answer);
        }
    }
    Err(ApiError::modified(call.about()))
}

/// Judges a deletion by the admission policies, and returns their warnings.
fn judge(
    core: &ServerCore,
    call: &VerbCall,
    options: &DeleteOptions,
    asked: DeletionRequest<'_>,
    shown: &Value,
) -> Result<Vec<String>, ApiError> {
    let mut options = options.clone();
    if call.kind.is("", "namespaces") {
        // The deletion of a Namespace is always that of the one with this uid.
        options.uid.get_or_insert_with(|| meta::text(shown, "uid").to_owned());
    }
    let operation = Operation::Delete(shown, &options);
    match asked {
        DeletionRequest::Other => Ok(Vec::new()),
        DeletionRequest::Object => admit::observe(core, call, operation),
        DeletionRequest::Collection(_) => {
            let all = VerbCall { name: String::new(), ..call.clone() };
            admit::observe(core, &all, operation)
        }
    }
}

/// Checks the uid and the version that the options name.
pub(super) fn preconditions(
    call: &VerbCall,
    options: &DeleteOptions,
    held: &Value,
) -> Result<(), ApiError> {
    let about = FailureSubject::kind(&call.kind.served, &call.name);
    let (uid, version) = (meta::text(held, "uid"), meta::text(held, "resourceVersion"));
    if let Some(wanted) = options.uid.as_deref().filter(|wanted| *wanted != uid) {
        let why = format!(
            "the UID in the precondition ({wanted}) does not match the UID in record ({uid}). The object might have been deleted and then recreated"
        );
        return Err(ApiError::conflict(about, &why));
    }
    if let Some(wanted) = options.version.as_deref().filter(|wanted| *wanted != version) {
        let why = format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record ({version}). The object might have been modified"
        );
        return Err(ApiError::conflict(about, &why));
    }
    Ok(())
}

/// Warns of orphaned Pods, in the form that kubectl shows.
fn warn(call: &VerbCall, options: &DeleteOptions, warnings: &mut Vec<String>) {
    // A repeated attempt must not repeat the warning.
    warnings.clear();
    if call.kind.is("batch", "jobs") && options.propagation.is_none() {
        warnings.push(ORPHANED.to_owned());
    }
}

/// Tries to delete once; `None` if a concurrent write came first.
fn attempt(
    core: &ServerCore,
    call: &VerbCall,
    options: &DeleteOptions,
    held: &Arc<StoredObject>,
    shown: &Value,
) -> Option<ObjectResponse> {
    let kind = &call.kind;
    let mut marked = held.value.clone();
    let finalizers = finalizers(kind, options, &held.value);
    let held_back = special(core, kind, &mut marked);
    let pending = !finalizers.is_empty() || held_back;
    meta::set(&mut marked, "finalizers", json!(finalizers));
    meta::clean(&mut marked);
    let graceful =
        if kind.is("", "pods") { graceful(core, options, &mut marked) } else { PodDeletion::None };
    match graceful {
        // The Pod is already terminating and no sooner end was asked for.
        PodDeletion::Pending => return Some(accepted(options, shown.clone())),
        PodDeletion::None if pending => mark(core, &mut marked),
        _ => {}
    }
    let waits = pending || matches!(graceful, PodDeletion::Wait);
    // After the checks: a dry run fails like the real deletion.
    if options.dry_run {
        return Some(answer(call, shown, &marked, waits));
    }
    if !waits && matches!(graceful, PodDeletion::None) {
        return remove(core, call, held, shown);
    }
    let mut current = held.clone();
    // A repeated deletion changes nothing and is not stored.
    if marked != held.value {
        current = core.store.put(&kind.storage, &call.key(), Some(held), marked).ok()?;
        observe(core, kind, Some(held), Some(&current));
    }
    if waits {
        // A controller that saw the mark may have gone on already: the newest state is answered,
        // unless the object was changed since.
        let newest = core.store.get(&kind.storage, &call.key());
        let newest = newest.filter(|newest| newest.revision == current.revision).unwrap_or(current);
        return Some(accepted(options, convert::restated(call, shown, &newest.value)));
    }
    remove(core, call, &current, shown)
}

/// Returns the answer to a deletion that waits.
fn accepted(options: &DeleteOptions, object: Value) -> ObjectResponse {
    let code = if options.is_cascading { 202 } else { 200 };
    ObjectResponse { code, ..ObjectResponse::ok(object) }
}

/// Marks kinds with a deletion of their own. Returns whether the object must wait for a controller.
fn special(core: &ServerCore, kind: &Kind, marked: &mut Value) -> bool {
    if kind.is("", "namespaces") {
        defaults::child(marked, "status")["phase"] = json!("Terminating");
        // The first deletion marks a namespace even if nothing holds it back.
        return !meta::terminating(marked)
            || marked["spec"]["finalizers"].as_array().is_some_and(|list| !list.is_empty());
    }
    if kind.is("apiextensions.k8s.io", "customresourcedefinitions") {
        crds::mark(marked, &core.clock.rfc3339());
        return true;
    }
    false
}

/// Removes the object from the store; `None` if a concurrent write came first.
fn remove(
    core: &ServerCore,
    call: &VerbCall,
    held: &Arc<StoredObject>,
    shown: &Value,
) -> Option<ObjectResponse> {
    let kind = &call.kind;
    let revision = core.store.remove(&kind.storage, &call.key(), held).ok()?;
    observe(core, kind, Some(held), None);
    let mut last = held.value.clone();
    meta::set(&mut last, "resourceVersion", revision.to_string().into());
    Some(answer(call, shown, &last, false))
}

/// Returns the object if the object still exists or the kind answers with it, else a Status.
fn answer(call: &VerbCall, shown: &Value, last: &Value, waits: bool) -> ObjectResponse {
    let kind = &call.kind;
    if waits || kind.facts.returns_object {
        return ObjectResponse::ok(convert::restated(call, shown, last));
    }
    ObjectResponse::ok(status::deleted(&kind.served, &call.name, meta::text(last, "uid")))
}

/// Returns the finalizers that the object has under the deletion's policy.
fn finalizers(kind: &Kind, options: &DeleteOptions, held: &Value) -> Vec<String> {
    let mut list = meta::finalizers(held);
    if kind.is("apiextensions.k8s.io", "customresourcedefinitions")
        && !list.iter().any(|name| name == crds::FINALIZER)
    {
        list.push(crds::FINALIZER.to_owned());
    }
    let has = |name: &str| list.iter().any(|held| held == name);
    let default = kind.facts.orphans.then_some(Propagation::Orphan);
    let policy = match options.propagation {
        Some(policy) => Some(policy),
        None if has(ORPHAN) => Some(Propagation::Orphan),
        None if has(FOREGROUND) => Some(Propagation::Foreground),
        None => default,
    };
    // At most one of both stays: the policy of the last request counts.
    list.retain(|name| name != ORPHAN && name != FOREGROUND);
    match policy {
        Some(Propagation::Orphan) => list.push(ORPHAN.to_owned()),
        Some(Propagation::Foreground) => list.push(FOREGROUND.to_owned()),
        Some(Propagation::Background) | None => {}
    }
    list
}

/// Marks an object that must wait for finalizers.
fn mark(core: &ServerCore, object: &mut Value) {
    if own_way(object) {
        if !meta::terminating(object) {
            meta::set(object, "deletionTimestamp", core.clock.rfc3339().into());
        }
        return;
    }
    let first = object["metadata"]["deletionGracePeriodSeconds"].is_null();
    if first && meta::generation(object) > 0 {
        let next = meta::generation(object).wrapping_add(1);
        meta::set(object, "generation", next.into());
    }
    if !meta::terminating(object) {
        meta::set(object, "deletionTimestamp", core.clock.rfc3339().into());
    }
    meta::set(object, "deletionGracePeriodSeconds", json!(0));
}

/// Whether only the deletion time is set: Namespaces and definitions have no grace period.
fn own_way(object: &Value) -> bool {
    matches!(object["kind"].as_str(), Some("Namespace" | "CustomResourceDefinition"))
        && matches!(object["apiVersion"].as_str(), Some("v1" | "apiextensions.k8s.io/v1"))
}

/// Kind of a Pod's deletion.
enum PodDeletion {
    /// Without a grace period.
    None,
    /// The Pod is marked and waits for the kubelet.
    Wait,
    /// The Pod is marked and removed at once.
    Now,
    /// The Pod is terminating already, and the request does not shorten the grace period.
    Pending,
}

/// Marks a Pod with a grace period.
fn graceful(core: &ServerCore, options: &DeleteOptions, pod: &mut Value) -> PodDeletion {
    let held = pod["metadata"]["deletionGracePeriodSeconds"].as_i64();
    if let (true, Some(held)) = (meta::terminating(pod), held) {
        if held == 0 {
            return PodDeletion::None;
        }
        return match options.grace.filter(|asked| *asked < held) {
            None => PodDeletion::Pending,
            Some(asked) => shorten(core, pod, held, asked),
        };
    }
    let own = pod["spec"]["terminationGracePeriodSeconds"].as_i64();
    let phase = pod["status"]["phase"].as_str().unwrap_or_default();
    // Without a node, or after the Pod's end, no kubelet would confirm the deletion.
    let idle = pod["spec"]["nodeName"].as_str().unwrap_or_default().is_empty();
    let over = idle || phase == "Failed" || phase == "Succeeded";
    let period = if over { 0 } else { options.grace.or(own).unwrap_or(0) };
    meta::set(pod, "deletionTimestamp", core.clock.rfc3339_after(period).into());
    meta::set(pod, "deletionGracePeriodSeconds", json!(period));
    let next = meta::generation(pod).wrapping_add(1);
    if next > 1 {
        meta::set(pod, "generation", json!(next));
    }
    if period > 0 { PodDeletion::Wait } else { PodDeletion::Now }
}

/// Shortens the grace period of a Pod that is terminating.
fn shorten(core: &ServerCore, pod: &mut Value, held: i64, asked: i64) -> PodDeletion {
    let now = core.clock.seconds();
    // The deletion time is the start plus the old period: the new period counts from the same
    // start.
    let ends = clock::parse(meta::text(pod, "deletionTimestamp")).unwrap_or(now);
    let wanted = ends - held + asked;
    let (at, period) = if wanted < now { (now, asked.min(1)) } else { (wanted, asked) };
    meta::set(pod, "deletionTimestamp", core.clock.rfc3339_after(at - now).into());
    meta::set(pod, "deletionGracePeriodSeconds", json!(period));
    if period > 0 { PodDeletion::Wait } else { PodDeletion::Now }
}

/// Lets the life cycle of definitions, flow control, and the objects that the server makes by
/// itself act on a stored write or a removal.
pub(crate) fn observe(
    core: &ServerCore,
    kind: &Kind,
    before: Option<&Arc<StoredObject>>,
    after: Option<&Arc<StoredObject>>,
) {
    crds::observe(core, kind, before, after, instances);
    storage::by_server(|| {
        addresses::objects::observe(core, kind, before, after);
        apiservices::observe(core, kind, before, after);
    });
    if let Some(object) = after.or(before) {
        flow::observe(core, kind, &object.value);
    }
}

/// Deletes all instances of a kind; finalizers may hold some of them.
pub(crate) fn instances(core: &ServerCore, kind: &Arc<Kind>) {
    let (snapshot, _) = core.store.snapshot(&kind.storage);
    for (_, held) in &snapshot {
        let place = (meta::text(&held.value, "namespace"), meta::text(&held.value, "name"));
        let (group, plural) = (&kind.served.group, &kind.served.plural);
        let Ok(mut call) = VerbCall::by_server(core, group, plural, place.0, place.1) else {
            continue;
        };
        // `by_server` looks the kind up by name, which may find another version: this kind is
        // meant.
        call.kind = kind.clone();
        let options = DeleteOptions::default();
        // The deletion of the definition is the request.
        let deleted = delete_as(core, &call, &options, DeletionRequest::Other, &mut Vec::new());
        if let Err(error) = deleted {
            tracing::debug!(%error, "could not delete an instance of a dying definition");
        }
    }
}

/// Deletes all objects of a selection and answers them as a list.
pub(crate) fn collection(
    core: &ServerCore,
    call: &VerbCall,
    chosen: &ListOptions,
    options: &DeleteOptions,
) -> Result<ObjectResponse, ApiError> {
    // A suspended request continues at the same position: objects deleted before are gone.
    let mut progress = match call.session.take_progress() {
        Some(progress) => progress,
        None => {
            let page = list::page(core, call, chosen)?;
            Progress { metadata: page.metadata, rest: page.held.into(), ..Progress::default() }
        }
    };
    while let Some(held) = progress.rest.pop_front() {
        if let Err(error) = one_of(core, call, options, &held, &mut progress) {
            progress.rest.push_front(held);
            call.session.keep_progress(progress);
            return Err(error);
        }
    }
    let Progress { metadata, mut items, warnings: found, .. } = progress;
    let mut warnings = Vec::new();
    warn(call, options, &mut warnings);
    warnings.extend(found);
    let served = &call.kind.served;
    if !served.custom {
        items.iter_mut().for_each(list::anonymous);
    }
    Ok(ObjectResponse::ok(json!({
        "apiVersion": served.api_version(), "kind": served.list_kind,
        "metadata": metadata, "items": items,
    }))
    .warned(warnings))
}

/// Deletes an object of a collection.
fn one_of(
    core: &ServerCore,
    call: &VerbCall,
    options: &DeleteOptions,
    held: &StoredObject,
    progress: &mut Progress,
) -> Result<(), ApiError> {
    let one = VerbCall {
        namespace: meta::text(&held.value, "namespace").to_owned(),
        name: meta::text(&held.value, "name").to_owned(),
        ..call.clone()
    };
    let shown = convert::shown(core, call, &held.value)?;
    let mut found = Vec::new();
    let asked = DeletionRequest::Collection(meta::text(&held.value, "uid"));
    let deleted = delete_as(core, &one, options, asked, &mut found);
    // 404: the object was deleted meanwhile, which is the wanted outcome.
    if let Err(error) = deleted
        && error.code() != 404
    {
        return Err(error);
    }
    // Warned of once for all.
    progress.warnings.extend(found.into_iter().filter(|text| text != ORPHANED));
    progress.items.push(shown);
    // Answers about this object are of no use for the next.
    call.session.forget();
    Ok(())
}
