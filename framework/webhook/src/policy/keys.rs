//! The keys of one policy.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use windlass_core::resource::Resource;

use super::expression::CelExpression;
use crate::admission::Operation;
use crate::configuration::{FailurePolicy, Registered, WebhookRegistration};

/// Reason of a refusal, which is also its HTTP status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DenialReason {
    /// 422: the object breaks a rule.
    #[default]
    Invalid,
    /// 403: this user may not do this.
    Forbidden,
    /// 413: the request is too large.
    RequestEntityTooLarge,
}

impl DenialReason {
    /// Returns the word of the API.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Invalid => "Invalid",
            Self::Forbidden => "Forbidden",
            Self::RequestEntityTooLarge => "RequestEntityTooLarge",
        }
    }
}

/// Consequence of a rule that a request breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValidationAction {
    /// The request is refused.
    Deny,
    /// The client gets a warning; not together with [`Deny`](Self::Deny).
    Warn,
    /// The audit event of the request gets an annotation.
    Audit,
}

impl ValidationAction {
    /// Returns the word of the API.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Deny => "Deny",
            Self::Warn => "Warn",
            Self::Audit => "Audit",
        }
    }
}

/// A rule of a policy, with its message.
#[derive(Clone, Debug)]
#[must_use = "give it to `AdmissionPolicy::rule_with`"]
pub struct PolicyRule<K> {
    pub(super) expression: CelExpression<K, bool>,
    pub(super) message: String,
    pub(super) message_expression: Option<CelExpression<K, String>>,
    pub(super) reason: DenialReason,
}

impl<K> PolicyRule<K> {
    /// Returns a rule: a request for which the expression is false breaks it, and the client gets
    /// the message, of one line.
    pub fn new(expression: CelExpression<K, bool>, message: impl Into<String>) -> Self {
        Self {
            expression,
            message: message.into(),
            message_expression: None,
            reason: DenialReason::default(),
        }
    }

    /// Makes the message from the object; the message of [`new`](Self::new) stays for a value that
    /// is empty, and for an expression that fails. `authorizer` is not known here.
    pub fn message_expression(mut self, expression: CelExpression<K, String>) -> Self {
        self.message_expression = Some(expression);
        self
    }

    /// Sets the reason of the refusal. Default: [`DenialReason::Invalid`].
    pub fn reason(mut self, reason: DenialReason) -> Self {
        self.reason = reason;
        self
    }
}

/// Rules in CEL about a kind, which API servers evaluate: a `ValidatingAdmissionPolicy` and its
/// binding.
///
/// For kinds of others, such as `Deployment`. Rules about the fields of an own kind belong to its
/// schema (`#[schema(rule(…))]`), where they also hold in `kube-system`; rules about the user of a
/// request are for a policy, whatever the kind.
///
/// ```
/// # extern crate windlass_webhook as windlass;
/// use k8s_openapi::api::apps::v1::Deployment;
/// use windlass::webhook::{AdmissionPolicy, DenialReason, PolicyRule, cel};
///
/// let few = AdmissionPolicy::<Deployment>::new("few-replicas")
///     .match_condition("not-by-nodes", cel!("!('system:nodes' in request.userInfo.groups)"))
///     .rule(cel!(Deployment: "object.spec.replicas <= 5"), "at most five replicas")
///     .rule_with(
///         PolicyRule::new(
///             cel!(Deployment: "object.spec.paused != true || request.userInfo.username == 'admin'"),
///             "only the administrator pauses deployments",
///         )
///         .reason(DenialReason::Forbidden),
///     );
/// # let _ = few;
/// ```
///
/// | key | default |
/// |---|---|
/// | [`rule`](Self::rule), [`rule_with`](Self::rule_with) | at least one is needed |
/// | [`operations`](Self::operations) | creations and updates |
/// | [`sub_resource`](Self::sub_resource) | the object itself |
/// | [`failure_policy`](Self::failure_policy) | `Fail`, for every kind |
/// | [`actions`](Self::actions) | [`ValidationAction::Deny`] |
/// | [`every_namespace`](Self::every_namespace) | without `kube-system` and the operator's own namespace |
/// | [`namespaces`](Self::namespaces), [`objects`](Self::objects) | all |
/// | [`match_condition`](Self::match_condition), [`variable`](Self::variable) | none |
///
/// Parameters (`paramKind`) are not supported: a number from the operator's settings goes into the
/// text by [`CelExpression::from_text`].
#[derive(Clone, Debug)]
#[must_use = "give it to `AdmissionPolicies::policy`"]
pub struct AdmissionPolicy<K> {
    pub(super) name: String,
    pub(super) registration: WebhookRegistration,
    pub(super) failure_policy: FailurePolicy,
    pub(super) actions: Vec<ValidationAction>,
    pub(super) variables: Vec<(String, String)>,
    pub(super) rules: Vec<PolicyRule<K>>,
}

impl<K: Resource> AdmissionPolicy<K> {
    /// Returns a policy without rules. The objects are called `<operator>-<name>`, and refusals
    /// have that name: letters in lower case, digits and dashes.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            registration: WebhookRegistration::new(),
            failure_policy: FailurePolicy::Fail,
            actions: vec![ValidationAction::Deny],
            variables: Vec::new(),
            rules: Vec::new(),
        }
    }

    /// Adds a rule with its message, of one line.
    pub fn rule(self, expression: CelExpression<K, bool>, message: impl Into<String>) -> Self {
        self.rule_with(PolicyRule::new(expression, message))
    }

    /// Adds a rule.
    pub fn rule_with(mut self, rule: PolicyRule<K>) -> Self {
        self.rules.push(rule);
        self
    }

    /// Adds a value that rules, messages and later variables read as `variables.<name>`; evaluated
    /// at the first use, once a request.
    pub fn variable<T>(mut self, name: impl Into<String>, expression: CelExpression<K, T>) -> Self {
        self.variables.push((name.into(), expression.text().to_owned()));
        self
    }

    /// Adds a condition: only requests that meet all conditions are judged. Expressions know no
    /// `variables` here.
    pub fn match_condition(
        mut self,
        name: impl Into<String>,
        expression: CelExpression<K, bool>,
    ) -> Self {
        self.registration = self.registration.match_condition(name, expression.text());
        self
    }

    /// Sets the operations. Default: creations and updates. `object` is null in a deletion.
    pub fn operations(mut self, operations: impl IntoIterator<Item = Operation>) -> Self {
        self.registration = self.registration.operations(operations);
        self
    }

    /// Judges requests to a sub-resource, such as `status` or `scale`, in place of the object
    /// itself.
    pub fn sub_resource(mut self, name: impl Into<String>) -> Self {
        self.registration = self.registration.sub_resource(name);
        self
    }

    /// Adds a kind to those that are judged: its group (empty for the core group), version and
    /// plural, `*` for all. Required for policies of any kind; the kind of a typed policy is known.
    pub fn resource(mut self, group: &str, version: &str, plural: &str) -> Self {
        self.registration = self.registration.resource(group, version, plural);
        self
    }

    /// Sets the outcome of requests for which an expression fails, such as by a field that is not
    /// there. Default: [`FailurePolicy::Fail`]: the operator is not asked and cannot be away, so a
    /// failure is a fault of a rule, and would let objects pass.
    pub fn failure_policy(mut self, policy: FailurePolicy) -> Self {
        self.failure_policy = policy;
        self
    }

    /// Sets the consequences of a rule that is broken. Default: [`ValidationAction::Deny`]. A rule
    /// about objects that are there already can begin with [`ValidationAction::Warn`] or `Audit`.
    pub fn actions(mut self, actions: impl IntoIterator<Item = ValidationAction>) -> Self {
        self.actions = actions.into_iter().collect();
        self
    }

    /// Judges objects of `kube-system` and of the operator's own namespace, too.
    pub fn every_namespace(mut self) -> Self {
        self.registration = self.registration.every_namespace();
        self
    }

    /// Judges only objects of namespaces with these labels.
    pub fn namespaces(mut self, selector: LabelSelector) -> Self {
        self.registration = self.registration.namespaces(selector);
        self
    }

    /// Judges only objects with these labels. Users can leave a label out: no way to enforce rules.
    pub fn objects(mut self, selector: LabelSelector) -> Self {
        self.registration = self.registration.objects(selector);
        self
    }

    /// Returns the requests that are judged, as those of a webhook.
    pub(super) fn registered(&self) -> Registered {
        Registered::new::<K>(String::new(), false, self.registration.clone())
    }
}
