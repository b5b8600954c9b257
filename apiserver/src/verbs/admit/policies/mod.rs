//! Enforcement of admission policies. `ValidatingAdmissionPolicy` is judged after validation,
//! before anything is stored.
//!
//! As in kube-apiserver, the resources of admission policies themselves and reviews are exempt.
//! There is no audit log: audit annotations go to the log of the program.

pub(crate) mod mutate;
mod params;
pub(super) mod request;
pub(super) mod rights;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::sync::Arc;

use serde_json::Value;
use windlass_cel::admission::{Attributes, Binding, Denial, Enforcement, ValidationAction};

use crate::core::ServerCore;
use crate::kinds::{Kind, meta};
use crate::policies::{BoundPolicy, Compiled, PolicyRequest};
use crate::status::{ApiError, FailureSubject};
use crate::storage::StoredObject;
use crate::verbs::options::DeleteOptions;
use crate::verbs::{VerbCall, scale};

/// Group of admission policies.
const GROUP: &str = "admissionregistration.k8s.io";
/// Cost that the evaluations of all policies may have together for a request. Each of them has a
/// budget as upstream; upstream does not bound the number of evaluations, which is that of the
/// parameters a binding selects.
const BUDGET: u64 = 40_000_000;
/// Cost of an evaluation besides its expressions, for copies of parts of the request.
const START: u64 = 10_000;
/// Resources that no policy judges.
const EXEMPT: [&str; 4] = [
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
];

/// The operation of a request on an object.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation<'a> {
    /// The object is created, or posted to a subresource.
    Create(&'a Value),
    /// The first object becomes the second.
    Update(&'a Value, &'a Value),
    /// The object is deleted.
    Delete(&'a Value, &'a DeleteOptions),
    /// A connection is made, with these options.
    Connect(&'a Value),
}

/// Judges a request by all policies that concern the request, and returns the warnings for the
/// client.
pub(crate) fn check(
    core: &ServerCore,
    call: &VerbCall,
    operation: Operation<'_>,
) -> Result<Vec<String>, ApiError> {
    let served = &call.kind.served;
    if served.group == GROUP && EXEMPT.contains(&served.plural.as_str()) {
        return Ok(Vec::new());
    }
    let policies = core.policies.bound(&core.store);
    if policies.is_empty() {
        return Ok(Vec::new());
    }
    with_subject(core, call, operation, |subject| {
        let verdict = PolicyVerdict::default();
        let mut judge = Judge { core, call, subject, operation, verdict, budget: BUDGET };
        for bound in &policies {
            judge.policy(bound);
        }
        judge.verdict.result(subject)
    })
}

/// Calls `judge` with a request in the form in which rules match requests.
pub(super) fn with_subject<T>(
    core: &ServerCore,
    call: &VerbCall,
    operation: Operation<'_>,
    judge: impl FnOnce(&PolicyRequest<'_>) -> T,
) -> T {
    let (object, old) = objects(call, operation);
    // The name of a new object may be only in the body.
    let name = match object.as_deref().filter(|_| call.name.is_empty()) {
        Some(object) => meta::text(object, "name"),
        None => call.name.as_str(),
    };
    let namespaces = call.kind.is("", "namespaces");
    let namespace = if namespaces { name } else { call.namespace.as_str() };
    let home = core.store.get("namespaces", namespace).filter(|_| !namespace.is_empty());
    let table = core.registry.table();
    let subject = PolicyRequest {
        kind: &call.kind,
        subresource: &call.subresource,
        operation: operation.name(),
        name,
        namespace,
        object: object.as_deref(),
        old: old.as_deref(),
        home: home.as_deref().map(|held| &held.value),
        table: &table,
        others: OnceCell::new(),
    };
    judge(&subject)
}

impl<'a> Operation<'a> {
    /// Returns the same operation on another new object, if any.
    pub(super) fn with_object(self, object: Option<&'a Value>) -> Self {
        let Some(object) = object else { return self };
        match self {
            Operation::Create(_) => Operation::Create(object),
            Operation::Update(old, _) => Operation::Update(old, object),
            Operation::Connect(_) => Operation::Connect(object),
            Operation::Delete(..) => self,
        }
    }

    /// Returns the new object, if any.
    pub(in crate::verbs::admit) fn object(self) -> Option<&'a Value> {
        match self {
            Operation::Create(object) | Operation::Update(_, object) => Some(object),
            Operation::Connect(_) | Operation::Delete(..) => None,
        }
    }

    /// Returns the name of the operation in rules and requests.
    fn name(self) -> &'static str {
        match self {
            Operation::Create(_) => "CREATE",
            Operation::Update(..) => "UPDATE",
            Operation::Delete(..) => "DELETE",
            Operation::Connect(_) => "CONNECT",
        }
    }
}

/// Returns the new and the old object as the endpoint shows them.
fn objects<'a>(
    call: &VerbCall,
    operation: Operation<'a>,
) -> (Option<Cow<'a, Value>>, Option<Cow<'a, Value>>) {
    let (object, old) = match operation {
        Operation::Create(object) | Operation::Connect(object) => (Some(object), None),
        Operation::Update(old, object) => (Some(object), Some(old)),
        Operation::Delete(old, _) => (None, Some(old)),
    };
    let shown = |object: &'a Value| {
        if call.subresource == "scale" {
            // An object without replicas has no Scale to show.
            return scale::scale(call, object).ok().map(Cow::Owned);
        }
        Some(Cow::Borrowed(object))
    };
    (object.and_then(shown), old.and_then(shown))
}

/// A request during its judgement by the policies.
struct Judge<'a> {
    core: &'a ServerCore,
    call: &'a VerbCall,
    subject: &'a PolicyRequest<'a>,
    operation: Operation<'a>,
    verdict: PolicyVerdict,
    /// The cost that is left for all evaluations.
    budget: u64,
}

/// The decision of all policies together.
#[derive(Debug, Default)]
struct PolicyVerdict {
    /// The first refusal.
    denial: Option<Denial>,
    warnings: Vec<String>,
}

impl Judge<'_> {
    /// Judges the request by a policy with all bindings.
    fn policy(&mut self, (policy, bindings): &BoundPolicy) {
        let Some(kind) = self.subject.matched(&policy.spec()["matchConstraints"]) else { return };
        let params = match params::Kinds::of(self.subject, policy.spec()) {
            Ok(params) => params,
            Err(why) => return self.verdict.misconfigured(policy, None, &why),
        };
        for binding in bindings {
            let spec = &binding.value["spec"];
            if self.subject.matched(&spec["matchResources"]).is_none() {
                continue;
            }
            match params.collect(self.core, &spec["paramRef"], self.subject.namespace) {
                Ok(found) => self.binding(policy, binding, &kind, &found),
                Err(why) => self.verdict.misconfigured(policy, Some(binding), &why),
            }
        }
    }

    /// Judges the request by a policy and a binding, once for each parameter.
    fn binding(
        &mut self,
        policy: &Compiled,
        binding: &StoredObject,
        kind: &Arc<Kind>,
        params: &[Option<Value>],
    ) {
        if params.is_empty() {
            return;
        }
        let request = request::request(self.call, self.subject, self.operation, kind);
        let object = self.subject.object.map(|object| self.converted(object, kind));
        let old = self.subject.old.map(|old| self.converted(old, kind));
        let (authorizer, resource) = rights::values(self.core, self.call, self.subject);
        let mut attributes = Attributes::new(&request).authorizer(&authorizer, &resource);
        if let Some(object) = object.as_deref() {
            attributes = attributes.object(object);
        }
        if let Some(old) = old.as_deref() {
            attributes = attributes.old_object(old);
        }
        // A Namespace is not inside a namespace.
        let home = self.subject.home.filter(|_| !self.call.kind.is("", "namespaces"));
        if let Some(home) = home {
            attributes = attributes.namespace(home);
        }
        let rule = Binding::new(policy.name(), meta::text(&binding.value, "name"))
            .actions(actions(&binding.value["spec"]["validationActions"]));
        for param in params {
            let attributes = match param {
                Some(param) => attributes.params(param),
                None => attributes,
            };
            let evaluation = match self.budget {
                0 => policy.policy().exhausted(),
                _ => policy.policy().evaluate(&attributes),
            };
            self.budget = self.budget.saturating_sub(evaluation.cost.saturating_add(START));
            self.verdict.add(rule.enforce(&evaluation));
        }
    }

    /// Returns an object in the version that the policy names.
    fn converted<'v>(&self, object: &'v Value, kind: &Arc<Kind>) -> Cow<'v, Value> {
        // Kinds of subresources, as Scale, are the same for all versions.
        let own = request::own_type(self.call).is_some();
        if own || Arc::ptr_eq(kind, &self.call.kind) {
            return Cow::Borrowed(object);
        }
        Cow::Owned(kind.present(&self.call.kind.store(object.clone())))
    }
}

/// Returns the actions of a binding.
fn actions(list: &Value) -> Vec<ValidationAction> {
    let names = list.as_array().into_iter().flatten().filter_map(Value::as_str);
    let action = |name| match name {
        "Deny" => Some(ValidationAction::Deny),
        "Warn" => Some(ValidationAction::Warn),
        "Audit" => Some(ValidationAction::Audit),
        _ => None,
    };
    names.filter_map(action).collect()
}

impl PolicyVerdict {
    /// Adds the decision of a binding; the first refusal stays.
    fn add(&mut self, enforcement: Enforcement) {
        for key in enforcement.audit_annotations.iter().map(|(key, _)| key) {
            // Without the value, which may come from a Secret.
            tracing::info!(key, "audit annotation of an admission policy");
        }
        self.warnings.extend(enforcement.warnings);
        self.denial = self.denial.take().or(enforcement.denial);
    }

    /// Adds an error of the configuration, which refuses the request unless the policy ignores
    /// errors.
    fn misconfigured(&mut self, policy: &Compiled, binding: Option<&StoredObject>, why: &str) {
        if !policy.fails() {
            return;
        }
        let name = policy.name();
        let message = match binding.map(|binding| meta::text(&binding.value, "name")) {
            None => format!(
                "ValidatingAdmissionPolicy '{name}' denied request: failed to configure policy: {why}"
            ),
            Some(binding) => format!(
                "ValidatingAdmissionPolicy '{name}' with binding '{binding}' denied request: \
                 failed to configure binding: {why}"
            ),
        };
        let denial = || Denial { message, reason: "Invalid".to_owned(), code: 422 };
        self.denial.get_or_insert_with(denial);
    }

    /// Returns the warnings, or the refusal with them.
    fn result(self, subject: &PolicyRequest<'_>) -> Result<Vec<String>, ApiError> {
        let Some(denial) = self.denial else { return Ok(self.warnings) };
        // The deletion of a collection names no object.
        let name = if subject.name.is_empty() { "Unknown" } else { subject.name };
        let about = FailureSubject::resource(&subject.kind.served, name);
        let error = ApiError::denied(about, denial.code, &denial.reason, &denial.message);
        Err(error.warned(self.warnings))
    }
}
