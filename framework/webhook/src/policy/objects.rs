//! The objects of all policies of an operator.

use std::collections::BTreeSet;

use k8s_openapi::api::admissionregistration::v1::{
    MatchResources, NamedRuleWithOperations, RuleWithOperations, ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding, ValidatingAdmissionPolicyBindingSpec,
    ValidatingAdmissionPolicySpec, Validation, Variable,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_cel::admission::check_policy;
use windlass_core::resource::Resource;
use windlass_core::{Error, ErrorKind};

use super::keys::{AdmissionPolicy, PolicyRule, ValidationAction};
use crate::configuration::{ConfigurationOptions, Registered, is_dns_label, namespaces};

/// Characters that the name of an object has at most.
const LONGEST_NAME: usize = 253;

/// The admission policies of an operator: a runnable of its manager, which needs no server.
///
/// `manifests` prints them with their bindings; the operator needs no right for them and does not
/// change them. In tests, in the quickstart and with `--webhook-url` they are written at the start,
/// under names with `-outside`; outside of a test's own server each process keeps its own, and
/// deletes them at the stop. Those of a process that was killed are deleted by the next process of
/// the operator, five minutes after their last write.
///
/// ```no_run
/// # extern crate windlass_webhook as windlass;
/// # use k8s_openapi::api::apps::v1::Deployment;
/// # use windlass_client::client::Client;
/// # use windlass_runtime::manager::Manager;
/// use windlass::webhook::{AdmissionPolicies, AdmissionPolicy, cel};
///
/// # fn example(client: Client) -> Manager {
/// let few = AdmissionPolicy::<Deployment>::new("few-replicas")
///     .rule(cel!(Deployment: "object.spec.replicas <= 5"), "at most five replicas");
/// Manager::new(client).runnable(AdmissionPolicies::new().policy(few))
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "policies do nothing until they are given to a manager"]
pub struct AdmissionPolicies {
    policies: Vec<Registration>,
}

/// A policy without the type of its kind.
#[derive(Clone, Debug)]
struct Registration {
    name: String,
    requests: Registered,
    spec: ValidatingAdmissionPolicySpec,
    actions: Vec<ValidationAction>,
}

impl AdmissionPolicies {
    /// Returns an empty set: add policies by [`policy`](Self::policy).
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a policy. Its name must be unique in the set, which
    /// [`objects`](Self::objects) checks together with the expressions.
    pub fn policy<K: Resource>(mut self, policy: AdmissionPolicy<K>) -> Self {
        let conditions = policy.registration.conditions();
        let variables = policy.variables.iter().map(|(name, expression)| Variable {
            name: name.clone(),
            expression: expression.clone(),
        });
        let spec = ValidatingAdmissionPolicySpec {
            failure_policy: Some(policy.failure_policy.word().to_owned()),
            match_conditions: Some(conditions.to_vec()).filter(|all| !all.is_empty()),
            variables: Some(variables.collect()).filter(|all: &Vec<_>| !all.is_empty()),
            validations: Some(policy.rules.iter().map(validation).collect()),
            ..ValidatingAdmissionPolicySpec::default()
        };
        self.policies.push(Registration {
            requests: policy.registered(),
            name: policy.name,
            spec,
            actions: policy.actions,
        });
        self
    }

    /// Returns each policy with its binding, in the order in which they were added.
    ///
    /// ```
    /// # extern crate windlass_webhook as windlass;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// use windlass::webhook::{AdmissionPolicies, AdmissionPolicy, ConfigurationOptions, cel};
    ///
    /// let kept = AdmissionPolicy::<ConfigMap>::new("immutable")
    ///     .rule(cel!(ConfigMap: "has(object.immutable)"), "maps say whether they change");
    /// let options = ConfigurationOptions::new("shop", "shop-system");
    /// let made = AdmissionPolicies::new().policy(kept).objects(&options)?;
    /// let (policy, binding) = &made[0];
    /// assert_eq!(policy.metadata.name.as_deref(), Some("shop-immutable"));
    /// assert_eq!(binding.spec.policy_name, "shop-immutable");
    /// # Ok::<(), windlass_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for two policies of one name, a policy of any kind without a resource,
    /// actions that exclude each other, and what an API server would refuse: an expression that is
    /// no CEL of the required type, a policy without a rule, a message of several lines.
    pub fn objects(
        &self,
        options: &ConfigurationOptions,
    ) -> Result<Vec<(ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding)>, Error> {
        let mut names = BTreeSet::new();
        let made = self.policies.iter().map(|policy| {
            if !names.insert(&policy.name) {
                return Err(policy.refused("another one has this name"));
            }
            policy.objects(options)
        });
        made.collect()
    }
}

fn validation<K>(rule: &PolicyRule<K>) -> Validation {
    Validation {
        expression: rule.expression.text().to_owned(),
        message: Some(rule.message.clone()),
        message_expression: rule.message_expression.as_ref().map(|text| text.text().to_owned()),
        reason: Some(rule.reason.word().to_owned()),
    }
}

impl Registration {
    fn refused(&self, why: &str) -> Error {
        let text = format!("cannot make the admission policy {:?}: {why}", self.name);
        Error::new(ErrorKind::Usage, text)
    }

    fn objects(
        &self,
        options: &ConfigurationOptions,
    ) -> Result<(ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding), Error> {
        let name = options.policy(&self.name);
        if !is_dns_label(&self.name) || name.len() > LONGEST_NAME {
            return Err(self.refused("a name has letters in lower case, digits and dashes"));
        }
        let rules = self.requests.rules();
        if rules.is_empty() {
            let why = "it is of any kind; name one by `AdmissionPolicy::resource`";
            return Err(self.refused(why));
        }
        self.check_actions()?;
        let mut spec = self.spec.clone();
        spec.match_constraints = Some(MatchResources {
            match_policy: Some("Equivalent".to_owned()),
            namespace_selector: Some(namespaces(&self.requests, options).unwrap_or_default()),
            object_selector: Some(self.requests.objects().cloned().unwrap_or_default()),
            resource_rules: Some(rules.into_iter().map(named).collect()),
            exclude_resource_rules: None,
        });
        self.check(&name, &spec)?;
        let metadata = ObjectMeta { name: Some(name.clone()), ..options.metadata() };
        let policy = ValidatingAdmissionPolicy {
            metadata: metadata.clone(),
            spec: Some(spec),
            status: None,
        };
        Ok((policy, self.binding(metadata, name)))
    }

    // Before Kubernetes 1.36 these fields are options in k8s-openapi.
    #[allow(clippy::useless_conversion, reason = "useless for some versions of Kubernetes")]
    fn binding(&self, metadata: ObjectMeta, policy: String) -> ValidatingAdmissionPolicyBinding {
        let actions: Vec<_> = self.actions.iter().map(|action| action.word().to_owned()).collect();
        let spec = ValidatingAdmissionPolicyBindingSpec {
            policy_name: policy.into(),
            validation_actions: actions.into(),
            ..ValidatingAdmissionPolicyBindingSpec::default()
        };
        ValidatingAdmissionPolicyBinding { metadata, spec: spec.into() }
    }

    /// Checks what an API server refuses of a binding.
    fn check_actions(&self) -> Result<(), Error> {
        let has = |action| self.actions.iter().filter(|one| **one == action).count();
        let (denies, warns) = (has(ValidationAction::Deny), has(ValidationAction::Warn));
        let why = match (denies, warns, has(ValidationAction::Audit)) {
            (0, 0, 0) => "it has no action; leave `actions` out for a refusal",
            (1.., 1.., _) => "`Deny` has the message already; leave `Warn` out",
            (2.., ..) | (_, 2.., _) | (_, _, 2..) => "it names an action twice",
            _ => return Ok(()),
        };
        Err(self.refused(why))
    }

    /// Checks what an API server refuses of a policy, with all expressions.
    fn check(&self, name: &str, spec: &ValidatingAdmissionPolicySpec) -> Result<(), Error> {
        let spec = serde_json::to_value(spec)
            .map_err(|error| self.refused("it cannot be written as JSON").because(error))?;
        let found = check_policy(name, &spec);
        if found.is_empty() {
            return Ok(());
        }
        let texts: Vec<String> = found.iter().map(ToString::to_string).collect();
        Err(self.refused(&format!("API servers refuse it: {}", texts.join("; "))))
    }
}

fn named(rule: RuleWithOperations) -> NamedRuleWithOperations {
    NamedRuleWithOperations {
        api_groups: rule.api_groups,
        api_versions: rule.api_versions,
        operations: rule.operations,
        resource_names: None,
        resources: rule.resources,
        scope: rule.scope,
    }
}
