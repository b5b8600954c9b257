//! Enforcement of `MutatingAdmissionPolicy`: before the mutating webhooks, and once more after
//! them.
//!
//! As in kube-apiserver the policies that a request concerns are those of the object as received;
//! each policy sees the object that the policy before has left.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use windlass_cel::admission::{Attributes, Match, MutatingPolicy, Patch};

use super::{BUDGET, EXEMPT, GROUP, Operation, START, params, request, rights, with_subject};
use crate::apply;
use crate::core::ServerCore;
use crate::kinds::{Kind, meta};
use crate::patch;
use crate::policies::{BoundPolicy, Compiled, Policies, PolicyRequest};
use crate::status::{ApiError, FailureSubject};
use crate::storage::StoredObject;
use crate::typed::TypeSchema;
use crate::verbs::admit::webhooks::settled;
use crate::verbs::suspend::convert;
use crate::verbs::{VerbCall, scale};

/// Text of the refusal if no cost is left for a policy.
const EXHAUSTED: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// Whether there are mutating policies that could change an object.
pub(crate) fn may_mutate(core: &ServerCore) -> bool {
    Policies::<MutatingPolicy>::has_any(&core.store)
}

/// The names of a policy, a binding and a parameter, which together are invoked.
type Key = (String, String, String);

/// A policy with a binding and a parameter.
struct Invocation {
    policy: Arc<Compiled<MutatingPolicy>>,
    binding: Arc<StoredObject>,
    /// The kind in the version that the policy wants.
    kind: Arc<Kind>,
    param: Option<Value>,
}

impl Invocation {
    fn key(&self) -> Key {
        let param = self.param.as_ref().map(|param| meta::text(param, "name").to_owned());
        let binding = meta::text(&self.binding.value, "name").to_owned();
        (self.policy.name().to_owned(), binding, param.unwrap_or_default())
    }
}

/// A request passing the mutating policies.
pub(in crate::verbs::admit) struct Mutations<'a> {
    core: &'a ServerCore,
    call: &'a VerbCall,
    operation: Operation<'a>,
    /// The policies that have been invoked and want to see changes.
    invoked: BTreeSet<Key>,
    /// Whether a patch has been applied, even without a change.
    is_patched: bool,
    /// The cost that is left for all evaluations.
    budget: u64,
}

impl<'a> Mutations<'a> {
    /// Returns a request before the first round.
    pub(in crate::verbs::admit) fn new(
        core: &'a ServerCore,
        call: &'a VerbCall,
        operation: Operation<'a>,
    ) -> Self {
        let invoked = BTreeSet::new();
        Self { core, call, operation, invoked, is_patched: false, budget: BUDGET }
    }

    /// Whether a patch has been applied, so that there is a second round.
    pub(in crate::verbs::admit) fn is_patched(&self) -> bool {
        self.is_patched
    }

    /// Lets all policies that concern the request patch the object; returns a changed object.
    pub(in crate::verbs::admit) fn first(&mut self) -> Result<Option<Value>, ApiError> {
        self.round(None, None)
    }

    /// Lets the policies patch the `changed` object again that want to see changes.
    pub(in crate::verbs::admit) fn again(
        &mut self,
        changed: Option<&Value>,
    ) -> Result<Option<Value>, ApiError> {
        let invoked = std::mem::take(&mut self.invoked);
        if invoked.is_empty() {
            return Ok(None);
        }
        self.round(changed, Some(&invoked))
    }

    fn round(
        &mut self,
        changed: Option<&Value>,
        only: Option<&BTreeSet<Key>>,
    ) -> Result<Option<Value>, ApiError> {
        let served = &self.call.kind.served;
        if served.group == GROUP && EXEMPT.contains(&served.plural.as_str()) {
            return Ok(None);
        }
        let policies = self.core.mutating.bound(&self.core.store);
        if policies.is_empty() {
            return Ok(None);
        }
        let (core, call, operation) = (self.core, self.call, self.operation.with_object(changed));
        with_subject(core, call, operation, |subject| {
            let mut refusals = Refusals::default();
            let mut invocations = Vec::new();
            for bound in &policies {
                collect(core, subject, bound, &mut invocations, &mut refusals);
            }
            let object = subject.object.cloned();
            let mut step = MutationRound { subject, operation, object, refusals };
            for one in &invocations {
                if only.is_none_or(|only| only.contains(&one.key())) {
                    self.invoke(one, &mut step)?;
                }
            }
            step.refusals.result(subject)?;
            let Some(object) = step.object.filter(|object| Some(object) != subject.object) else {
                return Ok(None);
            };
            // Policies see the Scale of an object.
            let whole = operation.object().filter(|_| call.subresource == "scale");
            Ok(Some(match whole {
                Some(whole) => scale::with_replicas(call, whole, &object),
                None => object,
            }))
        })
    }

    /// Lets a policy patch the object.
    fn invoke(&mut self, one: &Invocation, step: &mut MutationRound<'_>) -> Result<(), ApiError> {
        let (core, call, subject) = (self.core, self.call, step.subject);
        let review = request::request(call, subject, step.operation, &one.kind);
        let old = convert::optional(core, call, subject.old, &one.kind)?;
        let (authorizer, resource) = rights::values(core, call, subject);
        let mut fixed = Attributes::new(&review).authorizer(&authorizer, &resource);
        if let Some(old) = old.as_deref() {
            fixed = fixed.old_object(old);
        }
        // A Namespace is not inside a namespace.
        let home = subject.home.filter(|_| !call.kind.is("", "namespaces"));
        if let Some(home) = home {
            fixed = fixed.namespace(home);
        }
        if let Some(param) = &one.param {
            fixed = fixed.params(param);
        }
        let object = convert::optional(core, call, step.object.as_ref(), &one.kind)?;
        let object = object.map(std::borrow::Cow::into_owned);
        let attributes = object.as_ref().map_or(fixed, |object| fixed.object(object));
        let (outcome, cost) = one.policy.policy().matches(&attributes);
        self.spend(cost);
        match outcome {
            Match::Matched => {}
            Match::Skipped(_) => return Ok(()),
            Match::Failed(why) => {
                step.refusals.add(one, &why);
                return Ok(());
            }
        }
        if let Some(object) = object {
            let object = self.mutate(one, fixed, object, &mut step.refusals)?;
            step.object = Some(convert::back(core, call, object, &one.kind)?);
        }
        if one.policy.policy().is_reinvoked() {
            self.invoked.insert(one.key());
        }
        Ok(())
    }

    /// Applies the mutations of a policy in sequence.
    fn mutate(
        &mut self,
        one: &Invocation,
        fixed: Attributes<'_>,
        mut object: Value,
        refusals: &mut Refusals,
    ) -> Result<Value, ApiError> {
        for index in 0..one.policy.policy().len() {
            if self.budget == 0 {
                refusals.add(one, EXHAUSTED);
                break;
            }
            let (patch, cost) = one.policy.policy().patch(index, &fixed.object(&object));
            self.spend(cost);
            match patch.and_then(|patch| self.patched(&one.kind, &object, &patch)) {
                Ok(Some(patched)) => object = settled(self.call, &one.kind, patched, true)?,
                Ok(None) => {}
                Err(why) => {
                    refusals.add(one, &why);
                    continue;
                }
            }
            self.is_patched = true;
        }
        Ok(object)
    }

    fn spend(&mut self, cost: u64) {
        self.budget = self.budget.saturating_sub(cost.saturating_add(START));
    }

    /// Returns an object with a patch; `None` if the patch has a test that fails.
    fn patched(&self, kind: &Kind, object: &Value, patch: &Patch) -> Result<Option<Value>, String> {
        match patch {
            Patch::JsonPatch(operations) => match patch::json_with_reason(object, operations) {
                Ok(patched) => Ok(Some(patched)),
                Err(why) if why.ends_with("test failed") => Ok(None),
                Err(why) => Err(format!("JSON Patch: {why}")),
            },
            Patch::ApplyConfiguration(fields) => {
                let mut fields = fields.clone();
                for name in ["apiVersion", "kind"] {
                    fields[name] = object[name].clone();
                }
                let own = request::own_type(self.call).map(|(group, version, kind)| {
                    let slash = if group.is_empty() { "" } else { "/" };
                    TypeSchema::builtin(&format!("{group}{slash}{version}"), kind)
                });
                let merged = match own {
                    Some(Some(types)) => apply::configure(&types, object, &fields),
                    Some(None) => Err("the type of the object is not known".to_owned()),
                    None => apply::configure(&kind.types, object, &fields),
                };
                merged.map(Some).map_err(|why| format!("error applying patch: {why}"))
            }
        }
    }
}

/// The state of a round.
struct MutationRound<'a> {
    subject: &'a PolicyRequest<'a>,
    operation: Operation<'a>,
    /// The object after the changes of the policies.
    object: Option<Value>,
    refusals: Refusals,
}

/// Adds the invocations of a policy for a request.
fn collect(
    core: &ServerCore,
    subject: &PolicyRequest<'_>,
    (policy, bindings): &BoundPolicy<MutatingPolicy>,
    found: &mut Vec<Invocation>,
    refusals: &mut Refusals,
) {
    let Some(kind) = subject.matched(&policy.spec()["matchConstraints"]) else { return };
    let kinds = match params::Kinds::of(subject, policy.spec()) {
        Ok(kinds) => kinds,
        Err(why) => return refusals.misconfigured(policy, None, &why),
    };
    for binding in bindings {
        let spec = &binding.value["spec"];
        if subject.matched(&spec["matchResources"]).is_none() {
            continue;
        }
        match kinds.collect(core, &spec["paramRef"], subject.namespace) {
            Ok(params) => found.extend(params.into_iter().map(|param| Invocation {
                policy: policy.clone(),
                binding: binding.clone(),
                kind: kind.clone(),
                param,
            })),
            Err(why) => refusals.misconfigured(policy, Some(binding), &why),
        }
    }
}

/// The errors of policies that refuse a request.
#[derive(Debug, Default)]
struct Refusals {
    messages: Vec<String>,
    /// Reason of the first refusal.
    reason: &'static str,
}

impl Refusals {
    /// Adds the error of an invocation, unless the policy ignores errors.
    fn add(&mut self, one: &Invocation, why: &str) {
        let name = meta::text(&one.binding.value, "name");
        self.refuse(&one.policy, Some(name), why, "Invalid");
    }

    /// Adds an error of the configuration.
    fn misconfigured(
        &mut self,
        policy: &Compiled<MutatingPolicy>,
        binding: Option<&StoredObject>,
        why: &str,
    ) {
        let part = if binding.is_some() { "binding" } else { "policy" };
        let why = format!("failed to configure {part}: {why}");
        let name = binding.map(|binding| meta::text(&binding.value, "name"));
        self.refuse(policy, name, &why, "Forbidden");
    }

    fn refuse(
        &mut self,
        policy: &Compiled<MutatingPolicy>,
        binding: Option<&str>,
        why: &str,
        reason: &'static str,
    ) {
        if !policy.fails() {
            return;
        }
        if self.messages.is_empty() {
            self.reason = reason;
        }
        let name = policy.name();
        self.messages.push(match binding {
            Some(binding) => {
                format!("policy '{name}' with binding '{binding}' denied request: {why}")
            }
            None => format!("policy {name:?} denied request: {why}"),
        });
    }

    /// Returns the refusal, if any.
    fn result(&self, subject: &PolicyRequest<'_>) -> Result<(), ApiError> {
        if self.messages.is_empty() {
            return Ok(());
        }
        let name = if subject.name.is_empty() { "Unknown" } else { subject.name };
        let about = FailureSubject::resource(&subject.kind.served, name);
        Err(ApiError::refused_by_policies(about, self.reason, &self.messages))
    }
}
