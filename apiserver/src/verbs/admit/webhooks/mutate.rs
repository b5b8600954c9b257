//! Mutating admission: policies, and then webhooks, in sequence, each with the object that the one
//! before has left.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::{Operation, check_dry_run, concerns, failed, matched, question, verdict, with_subject};
use crate::core::ServerCore;
use crate::go;
use crate::hooks::{AdmissionPhase, Hook};
use crate::kinds::{Kind, meta};
use crate::patch;
use crate::status::ApiError;
use crate::verbs::admit::policies::mutate::Mutations;
use crate::verbs::decode::{self, BodyOrigin};
use crate::verbs::suspend::convert;
use crate::verbs::{VerbCall, scale};

/// Lets mutating policies and webhooks change the object of a request; returns a changed object.
pub(crate) fn mutate(
    core: &ServerCore,
    call: &VerbCall,
    operation: Operation<'_>,
) -> Result<Option<Value>, ApiError> {
    let mut policies = Mutations::new(core, call, operation);
    let changed = policies.first()?;
    let hooks = match concerns(call) {
        true => core.hooks.hooks(&core.store, AdmissionPhase::Mutating),
        false => Default::default(),
    };
    let invoked = BTreeSet::new();
    let mut chain = Chain { core, call, operation, changed, invoked, is_changed: false };
    let mut again = chain.round(&hooks, None)?;
    if (policies.is_patched() || chain.is_changed)
        && let Some(changed) = policies.again(chain.changed.as_ref())?
    {
        // The webhooks that want to see changes have not seen this change.
        again.append(&mut chain.invoked);
        chain.changed = Some(changed);
    }
    // Once more for webhooks that have not seen the changes of later webhooks. Never a third time.
    if !again.is_empty() {
        chain.round(&hooks, Some(&again))?;
    }
    Ok(chain.changed)
}

/// A request passing the webhooks.
struct Chain<'a> {
    core: &'a ServerCore,
    call: &'a VerbCall,
    operation: Operation<'a>,
    /// The object after the changes of the webhooks.
    changed: Option<Value>,
    /// Webhooks that have been called and want to see later changes.
    invoked: BTreeSet<usize>,
    /// Whether a webhook has changed the object.
    is_changed: bool,
}

impl Chain<'_> {
    /// Calls the webhooks in their order, or only some of them. Returns those that are to be called
    /// again.
    fn round(
        &mut self,
        hooks: &[Arc<Hook>],
        only: Option<&BTreeSet<usize>>,
    ) -> Result<BTreeSet<usize>, ApiError> {
        let mut again = BTreeSet::new();
        for (index, hook) in hooks.iter().enumerate() {
            if only.is_some_and(|only| !only.contains(&index)) {
                continue;
            }
            let Some(changed) = self.call(hook, usize::from(only.is_some()))? else { continue };
            if changed {
                again.append(&mut self.invoked);
            }
            if hook.is_reinvoked() {
                self.invoked.insert(index);
            }
        }
        Ok(again)
    }

    /// Calls a webhook, and returns whether the object changed; `None` if the webhook is not
    /// concerned.
    fn call(&mut self, hook: &Hook, round: usize) -> Result<Option<bool>, ApiError> {
        let (core, call) = (self.core, self.call);
        let current = self.changed.clone();
        let operation = self.operation.with_object(current.as_ref());
        let asked = with_subject(core, call, operation, |subject| {
            let Some(kind) = matched(core, call, subject, operation, hook)? else {
                return Ok(None);
            };
            check_dry_run(call, hook)?;
            Ok(Some((question(core, call, subject, operation, hook, &kind)?, kind)))
        })?;
        let Some((mut question, kind)) = asked else { return Ok(None) };
        question.round = round;
        let seen = question.review["request"]["object"].clone();
        let answers = call.session.ask(vec![question], || core.rng.uid());
        let Some(answers) = answers else { return Err(ApiError::suspended()) };
        let Some(answer) = answers.first() else { return Ok(Some(false)) };
        let Some(verdict) = verdict(call, hook, answer, true)? else { return Ok(Some(false)) };
        let Some((patch, form)) = verdict.patch else { return Ok(Some(false)) };
        self.apply(hook, &kind, &seen, &patch, &form).map(Some)
    }

    /// Applies the patch of a webhook to the object that it has seen.
    fn apply(
        &mut self,
        hook: &Hook,
        kind: &Arc<Kind>,
        seen: &Value,
        patch: &[u8],
        form: &str,
    ) -> Result<bool, ApiError> {
        let operations = match operations(patch) {
            Ok(operations) => operations,
            Err(why) => {
                let why = format!("received undecodable patch in webhook response: {why}");
                return failed(hook, &why).map(|()| false);
            }
        };
        if operations.as_array().is_none_or(Vec::is_empty) {
            return Ok(false);
        }
        if seen.is_null() {
            return Err(ApiError::internal(&format!(
                "admission webhook {:?} attempted to modify the object, which is not supported for this operation",
                hook.name()
            )));
        }
        if form != "JSONPatch" {
            let why = format!("unsupported patch type {}", go::quote(form));
            return failed(hook, &why).map(|()| false);
        }
        let patched =
            patch::json_with_reason(seen, &operations).map_err(|why| ApiError::internal(&why))?;
        let settled = settled(self.call, kind, patched, false)?;
        if settled == *seen {
            return Ok(false);
        }
        let changed = convert::back(self.core, self.call, settled, kind)?;
        // The webhook has seen the Scale of the object.
        let is_scale = self.call.subresource == "scale";
        let whole = self.changed.as_ref().or(self.operation.object()).filter(|_| is_scale);
        let scaled = whole.map(|whole| scale::with_replicas(self.call, whole, &changed));
        self.changed = Some(scaled.unwrap_or(changed));
        self.is_changed = true;
        Ok(true)
    }
}

/// Returns a patched object in the kind's form, with defaults. If `is_strict`, fields that the kind
/// does not have are a fault.
pub(in crate::verbs::admit) fn settled(
    call: &VerbCall,
    kind: &Arc<Kind>,
    mut object: Value,
    is_strict: bool,
) -> Result<Value, ApiError> {
    // Objects of subresources have a kind of their own.
    if super::request::own_type(call).is_some() {
        return Ok(object);
    }
    let shown = VerbCall { kind: kind.clone(), ..call.clone() };
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let (given, version) = (text("kind"), text("apiVersion"));
    if given != kind.name() || version != kind.served.api_version() {
        let (given, version) = (go::quote(given), go::quote(version));
        return Err(ApiError::internal(&format!(
            "no kind {given} is registered for version {version} in scheme \"pkg/runtime/scheme.go:111\""
        )));
    }
    let fault = is_strict.then(|| meta::wrong_type(kind, &object)).flatten();
    if let Some(why) = fault.or_else(|| kind.types.mismatch(&object)) {
        return Err(ApiError::internal(&why));
    }
    let unknown = decode::settle(&shown, &mut object, BodyOrigin::Sent);
    // Custom resources are decoded without their schema.
    if is_strict && !unknown.is_empty() && kind.custom.is_none() {
        let unknown: Vec<String> =
            unknown.iter().map(|field| format!("unknown field {}", go::quote(field))).collect();
        let why = format!("strict decoding error: {}", unknown.join(", "));
        return Err(ApiError::internal(&why));
    }
    Ok(object)
}

/// Reads the operations of a patch; the error is that of upstream's decoder.
fn operations(patch: &[u8]) -> Result<Value, String> {
    let operations: Value =
        serde_json::from_slice(patch).map_err(|error| go::json_error(&error, patch))?;
    if operations.is_array() || operations.is_null() {
        return Ok(operations);
    }
    let found = go::type_name(&operations);
    Err(format!("json: cannot unmarshal {found} into Go value of type jsonpatch.Patch"))
}
