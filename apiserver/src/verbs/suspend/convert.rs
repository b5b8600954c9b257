//! Versions of objects: between the stored version and a request's, by relabelling or by the
//! conversion webhook of a definition.
//!
//! A conversion by webhook suspends the verb until the answer, so every conversion of a write comes
//! before the object is stored, also the conversion back for the answer. Writes of the server call
//! no webhook and relabel.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::run::RemainingWebhookCalls;
use crate::core::ServerCore;
use crate::hooks::{CallFailure, HookResponse, Question, WebhookSession};
use crate::kinds::Kind;
use crate::kinds::conversion::{self, ConversionWebhook};
use crate::kinds::meta;
use crate::status::ApiError;
use crate::storage;
use crate::verbs::VerbCall;

/// Longest time for a conversion, as in kube-apiserver.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Returns a stored object in the call's version.
pub(crate) fn shown(core: &ServerCore, call: &VerbCall, stored: &Value) -> Result<Value, ApiError> {
    let mut all = shown_all(core, &call.session, &call.kind, vec![stored])?;
    Ok(all.pop().unwrap_or_default())
}

/// Returns stored objects in a version; a single call of the webhook converts all objects.
pub(crate) fn shown_all(
    core: &ServerCore,
    session: &WebhookSession,
    kind: &Kind,
    stored: Vec<&Value>,
) -> Result<Vec<Value>, ApiError> {
    // The server itself reads such objects: it must be able to delete them.
    for object in stored.iter().filter(|_| session.is_open()) {
        check_version(kind, object)?;
    }
    let wanted = kind.served.api_version();
    let Some(conversion) = converter(session, kind) else {
        return Ok(stored.into_iter().map(|object| kind.present(object)).collect());
    };
    let objects = converted(core, session, conversion, stored, &wanted)?;
    Ok(objects.into_iter().map(|object| pruned(kind, object)).collect())
}

/// Refuses an object that is stored in a version which the definition no longer has.
pub(crate) fn check_version(kind: &Kind, stored: &Value) -> Result<(), ApiError> {
    let Some(custom) = &kind.custom else { return Ok(()) };
    let version = stored["apiVersion"].as_str().unwrap_or_default();
    if custom.versions.iter().any(|known| known == version) {
        return Ok(());
    }
    let why = format!("request to convert CR from an invalid group/version: {version}");
    Err(ApiError::unclassified(why))
}

/// Returns an object of the call's version in the stored form.
pub(crate) fn stored(core: &ServerCore, call: &VerbCall, object: Value) -> Result<Value, ApiError> {
    let kind = &call.kind;
    let Some(conversion) = converter(&call.session, kind) else { return Ok(kind.store(object)) };
    let mut all = converted(core, &call.session, conversion, vec![&object], &kind.stored_as)?;
    let mut stored = all.pop().unwrap_or_default();
    prune(core, kind, &mut stored);
    Ok(stored)
}

/// Returns a converted object without fields that the schema does not know, and with defaults.
fn pruned(kind: &Kind, mut object: Value) -> Value {
    if let Some(custom) = &kind.custom {
        custom.schema.prune(&mut object);
    }
    kind.present(&object)
}

/// Removes the fields that the schema of the stored version does not know.
fn prune(core: &ServerCore, kind: &Kind, stored: &mut Value) {
    let (group, version) = kind.stored_as.split_once('/').unwrap_or(("", &kind.stored_as));
    let own = core.registry.table().of_type(group, version, kind.name());
    if let Some(custom) = own.as_ref().and_then(|own| own.custom.as_ref()) {
        custom.schema.prune(stored);
    }
}

/// Returns the answer to a write: the object after the conversion back, with the stored version.
pub(crate) fn answer(call: &VerbCall, back: Option<Value>, stored: &Value) -> Value {
    match back {
        Some(mut back) => {
            meta::copy(stored, &mut back, "resourceVersion");
            back
        }
        None => call.kind.present(stored),
    }
}

/// Converts the stored form of an object back, for the answer; `None` if no webhook is needed.
pub(crate) fn back_again(
    core: &ServerCore,
    call: &VerbCall,
    stored: &Value,
) -> Result<Option<Value>, ApiError> {
    if converter(&call.session, &call.kind).is_none() {
        return Ok(None);
    }
    shown(core, call, stored).map(Some)
}

/// Returns a later state of a stored object that has been shown before, which differs in metadata
/// only.
pub(crate) fn restated(call: &VerbCall, shown: &Value, stored: &Value) -> Value {
    if converter(&call.session, &call.kind).is_none() {
        return call.kind.present(stored);
    }
    let mut object = shown.clone();
    object["metadata"] = stored["metadata"].clone();
    // These two are the only fields that a conversion may change.
    for field in ["labels", "annotations"] {
        meta::copy(shown, &mut object, field);
    }
    object
}

/// Returns an object of the call's version in another version, if there is an object.
pub(crate) fn optional<'v>(
    core: &ServerCore,
    call: &VerbCall,
    object: Option<&'v Value>,
    kind: &Arc<Kind>,
) -> Result<Option<Cow<'v, Value>>, ApiError> {
    let Some(object) = object else { return Ok(None) };
    if Arc::ptr_eq(kind, &call.kind) || has_own_type(call) {
        return Ok(Some(Cow::Borrowed(object)));
    }
    between(core, &call.session, object, &call.kind, kind).map(|object| Some(Cow::Owned(object)))
}

/// Returns an object of another version in the version of the call.
pub(crate) fn back(
    core: &ServerCore,
    call: &VerbCall,
    object: Value,
    kind: &Arc<Kind>,
) -> Result<Value, ApiError> {
    if Arc::ptr_eq(kind, &call.kind) || has_own_type(call) {
        return Ok(object);
    }
    between(core, &call.session, &object, kind, &call.kind)
}

/// Whether the objects at the call's subresource have a type that is the same for all versions.
fn has_own_type(call: &VerbCall) -> bool {
    let sub = call.kind.subresource(&call.subresource);
    sub.is_some_and(|sub| !sub.kind.is_empty() && sub.kind != call.kind.name())
}

/// Converts an object between two served versions.
fn between(
    core: &ServerCore,
    session: &WebhookSession,
    object: &Value,
    from: &Kind,
    to: &Kind,
) -> Result<Value, ApiError> {
    let Some(conversion) = converter(session, to) else {
        return Ok(to.present(&from.store(object.clone())));
    };
    let wanted = to.served.api_version();
    let mut all = converted(core, session, conversion, vec![object], &wanted)?;
    Ok(pruned(to, all.pop().unwrap_or_default()))
}

/// Converts stored objects for a watch, whose events are not part of a verb.
pub(crate) async fn wait(
    core: &Arc<ServerCore>,
    kind: &Kind,
    stored: &[Value],
) -> Result<Vec<Value>, ApiError> {
    let session = WebhookSession::open();
    let mut run = RemainingWebhookCalls::new(session.clone(), None);
    loop {
        let size = stored.iter().map(storage::size).sum();
        let show = || shown_all(core, &session, kind, stored.iter().collect());
        let done = core.long_work.run_on(size, show).await;
        if !run.goes_on(core).await? {
            return done;
        }
    }
}

/// Whether a webhook converts the objects of a kind.
pub(crate) fn is_by_webhook(session: &WebhookSession, kind: &Kind) -> bool {
    converter(session, kind).is_some()
}

/// Returns the conversion of a kind, if a webhook converts.
fn converter<'k>(session: &WebhookSession, kind: &'k Kind) -> Option<&'k ConversionWebhook> {
    kind.custom.as_ref()?.conversion.as_ref().filter(|_| session.is_open())
}

/// Converts objects by webhook. Those of the wanted version stay as they are.
fn converted(
    core: &ServerCore,
    session: &WebhookSession,
    conversion: &ConversionWebhook,
    objects: Vec<&Value>,
    wanted: &str,
) -> Result<Vec<Value>, ApiError> {
    let is_done = |object: &Value| object["apiVersion"] == wanted;
    let known = |object: &Value| session.converted(wanted, object);
    let missing: Vec<&Value> = objects
        .iter()
        .copied()
        .filter(|object| !is_done(object) && known(object).is_none())
        .collect();
    if !missing.is_empty() {
        let question = Question {
            hook: String::new(),
            client: conversion.client.clone(),
            timeout: TIMEOUT,
            review: review(conversion, &missing, wanted)?,
            round: 0,
        };
        let answers = session.ask(vec![question], || core.rng.uid());
        let Some(answers) = answers else { return Err(ApiError::suspended()) };
        let Some(answer) = answers.first() else { return Err(ApiError::suspended()) };
        let made = read(conversion, answer, &missing, wanted);
        let made = made.map_err(ApiError::unclassified)?;
        for (object, made) in missing.iter().zip(made) {
            session.keep_converted(wanted, object, made);
        }
    }
    let take = |object: &Value| {
        if is_done(object) { Some(object.clone()) } else { session.converted(wanted, object) }
    };
    Ok(objects.into_iter().filter_map(take).collect())
}

/// Returns the review that asks for a conversion.
fn review(
    conversion: &ConversionWebhook,
    objects: &[&Value],
    wanted: &str,
) -> Result<Value, ApiError> {
    let mut versions = conversion.versions.iter().map(String::as_str);
    let Some(version) = versions.find(|version| matches!(*version, "v1" | "v1beta1")) else {
        return Err(ApiError::unclassified("no supported conversion review versions"));
    };
    let mut sent: Vec<Value> = objects.iter().map(|object| (*object).clone()).collect();
    for object in &mut sent {
        // Upstream stores objects without that field.
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            metadata.remove("resourceVersion");
        }
    }
    Ok(json!({
        "kind": "ConversionReview", "apiVersion": format!("apiextensions.k8s.io/{version}"),
        "request": {"desiredAPIVersion": wanted, "objects": sent},
        "response": {"uid": "", "convertedObjects": null, "result": {"metadata": {}}},
    }))
}

/// Returns the objects of an answer, checked and with the metadata of the originals.
fn read(
    conversion: &ConversionWebhook,
    answer: &HookResponse,
    objects: &[&Value],
    wanted: &str,
) -> Result<Vec<Value>, String> {
    let about = objects.first().map_or_else(String::new, |object| conversion::kind_text(object));
    let prefix = format!("conversion webhook for {about}");
    let review = match &answer.result {
        Ok(review) => review,
        Err(CallFailure::Client(why) | CallFailure::Call(why)) => {
            return Err(format!("{prefix} failed: {why}"));
        }
        Err(CallFailure::Deadline) => {
            return Err(format!("{prefix} failed: context deadline exceeded"));
        }
    };
    let is_v1 =
        conversion.versions.iter().find(|version| matches!(version.as_str(), "v1" | "v1beta1"));
    let is_v1 = is_v1.is_some_and(|version| version == "v1");
    let made = conversion::results(review, &answer.uid, is_v1)
        .map_err(|why| format!("{prefix} failed: {why}"))?;
    if made.len() != objects.len() {
        return Err(format!(
            "{prefix} returned {} objects, expected {}",
            made.len(),
            objects.len()
        ));
    }
    if let ([_], [Value::Null]) = (objects, made) {
        return Err("unexpected end of JSON input".to_owned());
    }
    let mut checked = Vec::new();
    for (index, (object, made)) in objects.iter().zip(made).enumerate() {
        let place = (objects.len() > 1).then_some(index);
        let one = conversion::checked(object, made, wanted, place);
        checked.push(one.map_err(|why| format!("{prefix} {why}"))?);
    }
    Ok(checked)
}
