//! The keys of one webhook in its configuration.

use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{MatchCondition, RuleWithOperations};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use windlass_core::resource::{Resource, ResourceInfo, Scope};

use crate::admission::Operation;

/// Outcome of a request whose webhook gives no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailurePolicy {
    /// The request is refused.
    Fail,
    /// The request goes on without the webhook.
    Ignore,
}

impl FailurePolicy {
    /// Returns the word of the API.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Fail => "Fail",
            Self::Ignore => "Ignore",
        }
    }
}

/// The requests about which API servers ask a webhook, and how: one entry of a
/// `ValidatingWebhookConfiguration` or `MutatingWebhookConfiguration`.
///
/// ```
/// # extern crate windlass_webhook as windlass;
/// use windlass::webhook::{FailurePolicy, Operation, WebhookRegistration};
///
/// let registration = WebhookRegistration::new()
///     .operations([Operation::Create, Operation::Update, Operation::Delete])
///     .failure_policy(FailurePolicy::Fail)
///     .match_condition("not-by-nodes", "!('system:nodes' in request.userInfo.groups)");
/// # let _ = registration;
/// ```
///
/// | key | default |
/// |---|---|
/// | [`operations`](Self::operations) | creations and updates |
/// | [`sub_resource`](Self::sub_resource) | the object itself |
/// | [`failure_policy`](Self::failure_policy) | `Fail` for kinds whose definition the operator has, else `Ignore` |
/// | [`timeout`](Self::timeout) | 5 s |
/// | [`every_namespace`](Self::every_namespace) | without `kube-system` and the operator's own namespace |
/// | [`namespaces`](Self::namespaces), [`objects`](Self::objects) | all |
/// | [`match_condition`](Self::match_condition) | none |
/// | [`side_effects_outside`](Self::side_effects_outside) | none |
/// | [`reinvoke`](Self::reinvoke) | once |
/// | [`name`](Self::name) | `validate.websites.example.dev` |
#[derive(Clone, Debug, Default)]
#[must_use = "give it to `Webhooks::validating_with` or `mutating_with`"]
pub struct WebhookRegistration {
    pub(super) name: Option<String>,
    pub(super) operations: Option<Vec<Operation>>,
    pub(super) sub_resource: Option<String>,
    pub(super) rules: Vec<RuleWithOperations>,
    pub(super) failure_policy: Option<FailurePolicy>,
    pub(super) timeout: Option<Duration>,
    pub(super) every_namespace: bool,
    pub(super) namespaces: Option<LabelSelector>,
    pub(super) objects: Option<LabelSelector>,
    pub(super) conditions: Vec<MatchCondition>,
    pub(super) side_effects: bool,
    pub(super) reinvoke: bool,
}

impl WebhookRegistration {
    /// Returns the defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the name, which messages of API servers have: a DNS name of at least three parts,
    /// unique in the operator. Default: `validate` or `mutate`, the plural and the group of the
    /// kind.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the operations. Default: creations and updates. [`Validate::validate_delete`] and
    /// [`Validate::validate_connect`] are called only for operations that are named here.
    ///
    /// [`Validate::validate_delete`]: crate::Validate::validate_delete
    /// [`Validate::validate_connect`]: crate::Validate::validate_connect
    pub fn operations(mut self, operations: impl IntoIterator<Item = Operation>) -> Self {
        self.operations = Some(operations.into_iter().collect());
        self
    }

    /// Asks about a sub-resource, such as `status`, in place of the object itself.
    pub fn sub_resource(mut self, name: impl Into<String>) -> Self {
        self.sub_resource = Some(name.into());
        self
    }

    /// Adds a kind to those that are asked about: its group (empty for the core group), version and
    /// plural, `*` for all. Required for handlers of any kind; the kind of a typed handler is
    /// known.
    pub fn resource(mut self, group: &str, version: &str, plural: &str) -> Self {
        let list = |text: &str| Some(vec![text.to_owned()]);
        self.rules.push(RuleWithOperations {
            api_groups: list(group),
            api_versions: list(version),
            resources: list(plural),
            // Written as API servers write the default, so that stored configurations can be
            // compared.
            scope: Some("*".to_owned()),
            ..RuleWithOperations::default()
        });
        self
    }

    /// Sets the outcome of requests whose webhook gives no answer. Default: [`FailurePolicy::Fail`]
    /// for kinds whose definition the operator installs or prints, else [`FailurePolicy::Ignore`]:
    /// an operator that is away must not hold up the work of others.
    pub fn failure_policy(mut self, policy: FailurePolicy) -> Self {
        self.failure_policy = Some(policy);
        self
    }

    /// Sets the time for an answer, 1 s to 30 s, in whole seconds. Default: 5 s.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Asks about objects of `kube-system` and of the operator's own namespace, too. With
    /// [`FailurePolicy::Fail`] an operator that is away may then hold up its own start.
    pub fn every_namespace(mut self) -> Self {
        self.every_namespace = true;
        self
    }

    /// Asks only about objects of namespaces with these labels.
    pub fn namespaces(mut self, selector: LabelSelector) -> Self {
        self.namespaces = Some(selector);
        self
    }

    /// Asks only about objects with these labels. Users can leave a label out: no way to enforce
    /// rules.
    pub fn objects(mut self, selector: LabelSelector) -> Self {
        self.objects = Some(selector);
        self
    }

    /// Adds a condition: CEL over `object`, `oldObject`, `request` and `authorizer`. Only requests
    /// that meet all conditions are asked about.
    pub fn match_condition(
        mut self,
        name: impl Into<String>,
        expression: impl Into<String>,
    ) -> Self {
        let (name, expression) = (name.into(), expression.into());
        self.conditions.push(MatchCondition { name, expression });
        self
    }

    /// Returns the conditions.
    pub(crate) fn conditions(&self) -> &[MatchCondition] {
        &self.conditions
    }

    /// Declares that the handler acts outside of the answer, but not for dry runs (`NoneOnDryRun`).
    pub fn side_effects_outside(mut self) -> Self {
        self.side_effects = true;
        self
    }

    /// Asks a mutating webhook again when another one changed the object after it (`IfNeeded`).
    pub fn reinvoke(mut self) -> Self {
        self.reinvoke = true;
        self
    }
}

/// A webhook as configurations see it.
#[derive(Clone, Debug)]
pub(crate) struct Registered {
    pub(crate) path: String,
    pub(crate) is_mutating: bool,
    /// The kind, if the handler has one.
    pub(crate) info: Option<ResourceInfo>,
    pub(crate) registration: WebhookRegistration,
}

impl Registered {
    pub(crate) fn new<K: Resource>(
        path: String,
        is_mutating: bool,
        registration: WebhookRegistration,
    ) -> Self {
        Self { path, is_mutating, info: K::static_info(), registration }
    }

    /// Returns the kind whose creations a validating webhook judges.
    pub(crate) fn judged_kind(&self) -> Option<&ResourceInfo> {
        let keys = &self.registration;
        let operations = keys.operations.as_deref();
        let is_of_creations = operations.is_none_or(|all| all.contains(&Operation::Create));
        let is_judge = !self.is_mutating && keys.sub_resource.is_none() && is_of_creations;
        self.info.as_ref().filter(|_| is_judge)
    }

    /// Returns the name of the webhook.
    pub(super) fn name(&self) -> String {
        if let Some(name) = &self.registration.name {
            return name.clone();
        }
        let verb = if self.is_mutating { "mutate" } else { "validate" };
        let sub_resource = self.registration.sub_resource.as_deref();
        let verb = sub_resource.map_or(verb.to_owned(), |name| format!("{verb}.{name}"));
        match &self.info {
            Some(info) if info.group.is_empty() => format!("{verb}.{}.core.k8s.io", info.plural),
            Some(info) => format!("{verb}.{}.{}", info.plural, info.group),
            // A path is unique, and has no more letters than a name may have.
            None => format!("{verb}{}.any.k8s.io", self.path.replace('/', ".")),
        }
    }

    /// Returns the rules, without those of the registration's own kinds when there are none.
    pub(crate) fn rules(&self) -> Vec<RuleWithOperations> {
        let operations = self.operations();
        let suffix = self.registration.sub_resource.as_ref();
        let resource = |plural: &str| match suffix {
            Some(sub_resource) => format!("{plural}/{sub_resource}"),
            None => plural.to_owned(),
        };
        let own = self.info.iter().map(|info| RuleWithOperations {
            api_groups: Some(vec![info.group.to_string()]),
            api_versions: Some(vec![info.version.to_string()]),
            resources: Some(vec![resource(&info.plural)]),
            scope: Some(scope(info.scope).to_owned()),
            operations: Some(operations.clone()),
        });
        let others = self.registration.rules.iter().map(|rule| RuleWithOperations {
            operations: Some(operations.clone()),
            resources: rule
                .resources
                .as_ref()
                .map(|plurals| plurals.iter().map(|plural| resource(plural)).collect()),
            ..rule.clone()
        });
        own.chain(others).collect()
    }

    /// Returns the selector of objects.
    pub(crate) fn objects(&self) -> Option<&LabelSelector> {
        self.registration.objects.as_ref()
    }

    fn operations(&self) -> Vec<String> {
        let usual = [Operation::Create, Operation::Update];
        let operations = self.registration.operations.as_deref().unwrap_or(&usual);
        let word = |operation: &Operation| match operation {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
            Operation::Connect => "CONNECT",
        };
        operations.iter().map(|operation| word(operation).to_owned()).collect()
    }
}

fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::Namespaced => "Namespaced",
        Scope::Cluster => "Cluster",
    }
}
