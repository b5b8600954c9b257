//! Admission webhooks: the selection for a request, and the meaning of answers.
//!
//! Nothing waits here. Each function asks the request's session for the answers that are needed,
//! and ends with `ApiError::suspended` while any is missing. As in kube-apiserver the resources of
//! admission are exempt.

mod mutate;
mod review;
mod validate;

use std::sync::Arc;

use windlass_cel::admission::{Attributes, Match};

use super::policies::{self, Operation, request, rights};
use crate::core::ServerCore;
use crate::hooks::{AdmissionPhase, Configurations, Hook, HookResponse, Question};
use crate::kinds::Kind;
use crate::policies::PolicyRequest;
use crate::status::{ApiError, FailureSubject};
use crate::verbs::VerbCall;
use crate::verbs::suspend::convert;

pub(crate) use mutate::mutate;
pub(super) use mutate::settled;
pub(crate) use validate::validate;

/// Group of webhook configurations and admission policies.
const GROUP: &str = "admissionregistration.k8s.io";

/// Whether webhooks are called for a request at all.
fn concerns(call: &VerbCall) -> bool {
    call.session.is_open() && call.kind.served.group != GROUP
}

/// Whether there are mutating policies or webhooks that could change the object of a request.
pub(crate) fn may_mutate(core: &ServerCore, call: &VerbCall) -> bool {
    policies::mutate::may_mutate(core)
        || concerns(call) && Configurations::has_any(&core.store, AdmissionPhase::Mutating)
}

/// Returns the version of the kind in which a webhook wants the objects; `None` if the request does
/// not concern the webhook.
fn matched(
    core: &ServerCore,
    call: &VerbCall,
    subject: &PolicyRequest<'_>,
    operation: Operation<'_>,
    hook: &Hook,
) -> Result<Option<Arc<Kind>>, ApiError> {
    if !hook.has_rules() {
        return Ok(None);
    }
    let Some(kind) = subject.matched(&hook.criteria) else { return Ok(None) };
    let Some(conditions) = hook.conditions() else { return Ok(Some(kind)) };
    let review = request::request(call, subject, operation, &kind);
    let object = convert::optional(core, call, subject.object, &kind)?;
    let old = convert::optional(core, call, subject.old, &kind)?;
    let (authorizer, resource) = rights::values(core, call, subject);
    let mut attributes = Attributes::new(&review).authorizer(&authorizer, &resource);
    if let Some(object) = object.as_deref() {
        attributes = attributes.object(object);
    }
    if let Some(old) = old.as_deref() {
        attributes = attributes.old_object(old);
    }
    match conditions.matches(&attributes) {
        Match::Matched => Ok(Some(kind)),
        Match::Skipped(_) => Ok(None),
        Match::Failed(why) => {
            let about = FailureSubject::resource(&call.kind.served, subject.name);
            Err(ApiError::forbidden(about, &why))
        }
    }
}

/// Returns the question to a webhook.
fn question(
    core: &ServerCore,
    call: &VerbCall,
    subject: &PolicyRequest<'_>,
    operation: Operation<'_>,
    hook: &Hook,
    kind: &Arc<Kind>,
) -> Result<Question, ApiError> {
    let object = convert::optional(core, call, subject.object, kind)?;
    let old = convert::optional(core, call, subject.old, kind)?;
    let request = request::request(call, subject, operation, kind);
    Ok(Question {
        hook: hook.name().to_owned(),
        client: hook.spec["clientConfig"].clone(),
        timeout: hook.timeout(),
        review: review::review(hook, request, object.as_deref(), old.as_deref()),
        round: 0,
    })
}

/// Refuses a dry run for a webhook that has side effects.
fn check_dry_run(call: &VerbCall, hook: &Hook) -> Result<(), ApiError> {
    if !call.options.dry_run || hook.allows_dry_run() {
        return Ok(());
    }
    let name = hook.name();
    Err(ApiError::bad_request(format!("admission webhook {name:?} does not support dry run")))
}

/// Returns the decision of a webhook; `None` for an ignored failure.
fn verdict(
    call: &VerbCall,
    hook: &Hook,
    answer: &HookResponse,
    is_mutating: bool,
) -> Result<Option<review::ReviewAnswer>, ApiError> {
    let verdict = match review::verdict(answer, &hook.spec, is_mutating) {
        Ok(verdict) => verdict,
        Err(why) => return failed(hook, &why).map(|()| None),
    };
    for key in &verdict.audited {
        // Without the value, which may come from a Secret.
        tracing::info!(webhook = hook.name(), key, "audit annotation of a webhook");
    }
    call.session.warn(verdict.warnings.iter().cloned());
    match &verdict.denial {
        Some(status) => Err(review::denied(hook.name(), status)),
        None => Ok(Some(verdict)),
    }
}

/// Returns the failure of a call, unless the webhook's failures are ignored.
fn failed(hook: &Hook, why: &str) -> Result<(), ApiError> {
    let text = format!("failed calling webhook {:?}: {why}", hook.name());
    if hook.ignores_failures() {
        tracing::warn!(error = text, "the failure of a webhook is ignored");
        return Ok(());
    }
    Err(ApiError::internal(&text))
}

/// Calls `judge` with the request in the form in which rules match requests.
fn with_subject<T>(
    core: &ServerCore,
    call: &VerbCall,
    operation: Operation<'_>,
    judge: impl FnOnce(&PolicyRequest<'_>) -> T,
) -> T {
    policies::with_subject(core, call, operation, judge)
}
