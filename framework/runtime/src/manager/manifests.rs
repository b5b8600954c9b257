//! The objects that a cluster needs to run an operator, as YAML.
//!
//! The functions here do no I/O: nothing is read from a cluster. Roles hold exactly the grants of
//! the controllers, and those of the manager itself: the one Lease, events about that Lease, and
//! the definitions that it installs. An operator that is limited to namespaces gets Roles in these,
//! and no right beyond them: such an operator installs no definitions, and expects those of the
//! manifests.
//!
//! The Pod meets the security standard `restricted`, the file system is read-only, and the network
//! policy lets through the connections that the framework needs.

mod pod;

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

use super::{Bind, Manager, ManifestContext, RunnableManifest};
use crate::leader::{Fenced, LeaderElection, fence_policy};
use windlass_core::crd::compat::plain_numbers;
use windlass_core::crd::cut_descriptions;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::rbac::Rule;
use windlass_core::resource::{ResourceExt, Scope};

/// Options of [`Manager::manifests`].
///
/// ```
/// # extern crate windlass_runtime as windlass;
/// use windlass::manager::ManifestOptions;
///
/// let options = ManifestOptions::default()
///     .namespace("web")
///     .image("registry.example.dev/site-operator:1.4.0");
/// assert_eq!(options.namespace.as_deref(), Some("web"));
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ManifestOptions {
    /// Namespace of the operator; default: the operator's name.
    pub namespace: Option<String>,
    /// Container image; default: the operator's name with the tag `latest`.
    pub image: Option<String>,
    /// Arguments of the container; default: none.
    pub args: Vec<String>,
    /// Limits an operator that watches all namespaces to its own namespace.
    pub namespaced: bool,
    /// Largest number of characters in a description of a definition's field; 0 removes all.
    /// Default: no limit.
    pub max_description: Option<usize>,
}

impl ManifestOptions {
    /// Sets the operator's namespace.
    ///
    /// Must be a DNS label: at most 63 lower-case letters, digits and `-`.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Sets the operator's container image.
    ///
    /// Pin a version or a digest: the default tag `latest` is for trials.
    #[must_use]
    pub fn image(mut self, image: impl Into<String>) -> Self {
        self.image = Some(image.into());
        self
    }

    /// Prints roles instead of cluster roles: the operator is limited to its own namespace, unless
    /// others are named. An operator with named namespaces is limited to those without this option.
    #[must_use]
    pub fn namespaced(mut self, namespaced: bool) -> Self {
        self.namespaced = namespaced;
        self
    }

    /// Cuts the descriptions of the definitions' fields to `max` characters; 0 removes them.
    ///
    /// A definition above [`APPLY_LIMIT`](windlass_core::crd::APPLY_LIMIT) cannot be applied by
    /// `kubectl apply` without `--server-side`. An operator that installs definitions by itself
    /// writes whole descriptions.
    #[must_use]
    pub fn max_description(mut self, max: usize) -> Self {
        self.max_description = Some(max);
        self
    }
}

/// Prints the manifests of `manager` as YAML documents.
///
/// # Errors
/// [`ErrorKind::Config`] for a name, an image or an address that [`check`] refuses; otherwise the
/// error of a definition.
pub(super) fn print(manager: &Manager, options: &ManifestOptions) -> Result<String, Error> {
    let builder = checked(manager, options)?;
    if let Some(why) = &builder.attached.problem {
        return Err(Error::new(ErrorKind::Config, format!("cannot print manifests: {why}")));
    }
    let documents = builder.documents()?;
    check_conversions(&documents, &builder.attached.conversions)?;
    serde_saphyr::to_string_multiple(&documents).map_err(|error| {
        Error::new(ErrorKind::Other, "cannot print the manifests as YAML").because(error)
    })
}

/// Returns the roles and bindings among the manifests.
///
/// # Errors
/// As [`print`], without those of the definitions.
pub(super) fn roles(manager: &Manager, options: &ManifestOptions) -> Result<Vec<Value>, Error> {
    let builder = checked(manager, options)?;
    let mut roles = builder.grants()?;
    roles.extend(builder.attached.roles.clone());
    roles.extend(builder.install_role());
    roles.extend(manager.election.iter().flat_map(|election| builder.lease_role(election)));
    Ok(roles)
}

/// Checks the options, and returns the builder of the manifests.
fn checked<'a>(
    manager: &'a Manager,
    options: &'a ManifestOptions,
) -> Result<ManifestBuilder<'a>, Error> {
    let name = manager.display_name();
    let namespace = options.namespace.as_deref().unwrap_or(name);
    check(manager, (name, options.image.as_deref()), namespace)?;
    Ok(ManifestBuilder {
        attached: attached(manager, name, namespace)?,
        name,
        namespace,
        image: options.image.clone().unwrap_or_else(|| format!("{name}:latest")),
        args: &options.args,
        max_description: options.max_description,
        own_namespace_only: options.namespaced && manager.namespaces.is_empty(),
        manager,
    })
}

/// Returns the names of the definitions that are installed or printed.
pub(super) fn definition_names(manager: &Manager) -> Vec<String> {
    let all = manager.definitions.iter().flatten().chain(&manager.described);
    all.map(|one| one.name().to_owned()).collect()
}

/// Returns the parts of the manifests that runnables add.
fn attached(manager: &Manager, name: &str, namespace: &str) -> Result<RunnableManifest, Error> {
    let labels = pod::labels(name);
    let definitions = definition_names(manager);
    let place = ManifestContext { name, namespace, labels: &labels, definitions: &definitions };
    let mut all = RunnableManifest::default();
    for runnable in &manager.runnables {
        let one = runnable.attachment(&place)?;
        all.ports.extend(one.ports);
        all.secrets.extend(one.secrets);
        all.roles.extend(one.roles);
        all.objects.extend(one.objects);
        all.conversions.extend(one.conversions);
        all.problem = all.problem.or(one.problem);
    }
    Ok(all)
}

/// Checks that something converts the kinds with several versions.
fn check_conversions(documents: &[Value], conversions: &[(String, Value)]) -> Result<(), Error> {
    for document in documents {
        let name = document["metadata"]["name"].as_str().unwrap_or_default();
        let is_converted = document["kind"] == "CustomResourceDefinition"
            && document["spec"]["conversion"]["strategy"] == "Webhook";
        if is_converted && !conversions.iter().any(|(converted, _)| converted == name) {
            let text = format!(
                "cannot print manifests: {name} has several versions, and nothing converts between them; add \
                 `Webhooks::converting` of the kind to the operator's `WebhookServer`"
            );
            return Err(Error::new(ErrorKind::Config, text));
        }
    }
    Ok(())
}

/// Checks for names that an API server would refuse, for an image without a name, and for addresses
/// that no kubelet could reach.
fn check(
    manager: &Manager,
    (name, image): (&str, Option<&str>),
    namespace: &str,
) -> Result<(), Error> {
    let refuse = |text: String| {
        Err(Error::new(ErrorKind::Config, format!("cannot print manifests: {text}")))
    };
    if image.is_some_and(|image| image.trim().is_empty()) {
        return refuse(
            "the name of the container image is empty; give one by `--image`, or leave the option out"
                .to_owned(),
        );
    }
    // A ServiceAccount may have dots in the name; the label with the name is short.
    if name.len() > LONGEST_LABEL || !name.split('.').all(is_label) {
        return refuse(format!(
            "no object can be called {name:?}; give the operator a name by `Manager::name`, of at most \
             63 lower-case letters, digits and `-`"
        ));
    }
    if !is_label(namespace) {
        return refuse(format!(
            "no namespace can be called {namespace:?}; say which by `--namespace`, or give the operator a \
             name by `Manager::name`, of at most 63 lower-case letters, digits and `-`"
        ));
    }
    check_namespaces(manager)?;
    if let Bind::Default(addr) | Bind::At(addr) = manager.health
        && (addr.ip().is_loopback() || addr.port() == 0)
    {
        return refuse(format!(
            "no kubelet reaches probes at {addr}; serve them at all addresses and a fixed port \
             (`--health-probe-bind-address=:8081`), or turn them off (`0`)"
        ));
    }
    Ok(())
}

/// Longest DNS label, in bytes (RFC 1123).
const LONGEST_LABEL: usize = 63;

/// Checks that the namespaces to watch can exist.
///
/// # Errors
/// [`ErrorKind::Config`] with the first name that no namespace can have.
pub(super) fn check_namespaces(manager: &Manager) -> Result<(), Error> {
    let refused = manager.namespaces.iter().find(|watched| !is_label(watched));
    refused.map_or(Ok(()), |watched| {
        let text = format!(
            "no namespace can be called {watched:?}; name namespaces to watch, or none for all"
        );
        Err(Error::new(ErrorKind::Config, text))
    })
}

/// Whether `text` is a DNS label (RFC 1123), as a namespace, and each part of most names, has to
/// be.
fn is_label(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    (1..=LONGEST_LABEL).contains(&text.len())
        && text.chars().all(|c| is_plain(c) || c == '-')
        && text.starts_with(is_plain)
        && text.ends_with(is_plain)
}

/// Builds the manifests of an operator.
struct ManifestBuilder<'a> {
    name: &'a str,
    namespace: &'a str,
    image: String,
    args: &'a [String],
    /// Largest length of a description; `None`: they stay as they are.
    max_description: Option<usize>,
    /// Whether the operator names no namespaces, and is limited to its own namespace.
    own_namespace_only: bool,
    manager: &'a Manager,
    /// Parts of the runnables.
    attached: RunnableManifest,
}

impl ManifestBuilder<'_> {
    /// Returns all objects, in an order in which they can be applied.
    fn documents(&self) -> Result<Vec<Value>, Error> {
        let mut documents = vec![self.own_namespace()];
        for definition in definitions(self.manager, self.max_description)? {
            let mut document = serde_json::to_value(&definition).map_err(|error| {
                let text = format!("cannot print the definition {:?}", definition.name());
                Error::new(ErrorKind::Other, text).because(error)
            })?;
            plain_numbers(&mut document);
            let conversions = self.attached.conversions.iter();
            for (_, conversion) in conversions.filter(|(name, _)| name == definition.name()) {
                document["spec"]["conversion"] = conversion.clone();
            }
            documents.push(document);
        }
        documents.push(self.object("v1", "ServiceAccount", json!({})));
        documents.extend(self.grants()?);
        documents.extend(self.attached.roles.iter().cloned());
        documents.extend(self.install_role());
        if let Some(election) = &self.manager.election {
            documents.extend(self.lease_role(election));
            documents.extend(self.fence(election).into_iter().flatten());
        }
        documents.push(self.network_policy());
        documents.push(self.deployment());
        documents.extend(self.attached.objects.iter().cloned());
        Ok(documents)
    }

    /// Returns an object with the operator's name and label, and the fields of `rest`.
    fn object(&self, api_version: &str, kind: &str, rest: Value) -> Value {
        let cluster_scoped = matches!(kind, "Namespace" | "ClusterRole" | "ClusterRoleBinding");
        let name = if kind == "Namespace" { self.namespace } else { self.name };
        let mut object = json!({
            "apiVersion": api_version,
            "kind": kind,
            "metadata": { "name": name, "labels": { "app.kubernetes.io/name": self.name } },
        });
        if !cluster_scoped {
            object["metadata"]["namespace"] = json!(self.namespace);
        }
        if let (Value::Object(object), Value::Object(rest)) = (&mut object, rest) {
            object.extend(rest);
        }
        object
    }

    /// Returns the namespaces that the operator is limited to; none for an operator of the whole
    /// cluster.
    fn namespaces(&self) -> Vec<&str> {
        if self.own_namespace_only {
            return vec![self.namespace];
        }
        self.manager.namespaces.iter().map(String::as_str).collect()
    }

    /// Returns the controllers' grants: everywhere, or in the watched namespaces only.
    fn grants(&self) -> Result<Vec<Value>, Error> {
        let rules: Vec<Value> = self.manager.rules().iter().map(printed).collect();
        let namespaces = self.namespaces();
        if namespaces.is_empty() {
            let role = self.role("ClusterRole", "", json!(rules));
            return Ok(vec![role, self.binding("ClusterRole", "", None)]);
        }
        self.check_scopes()?;
        let mut objects = Vec::new();
        for namespace in namespaces {
            let mut role = self.role("Role", "", json!(rules));
            role["metadata"]["namespace"] = json!(namespace);
            objects.extend([role, self.binding("Role", "", Some(namespace))]);
        }
        Ok(objects)
    }

    /// Checks that no controller and no cache needs cluster-scoped kinds, on which a Role grants
    /// nothing.
    fn check_scopes(&self) -> Result<(), Error> {
        let controllers = self.manager.controllers.iter().map(|controller| {
            (format!("the controller {:?}", controller.name()), controller.rules())
        });
        let caches = ("a cache".to_owned(), self.manager.cache_rules().collect());
        for (user, rules) in controllers.chain([caches]) {
            let Some(rule) = rules.iter().find(|rule| rule.scope == Scope::Cluster) else {
                continue;
            };
            let verbs: Vec<&str> = rule.verbs.iter().copied().collect();
            let text = format!(
                "cannot print roles for namespaces: {user} needs to {} {}, which are in no namespace; \
                 print the manifests of an operator for the whole cluster (without `--namespaced`, \
                 `--watch-namespace` and WATCH_NAMESPACE), or do without that kind",
                verbs.join(", "),
                match rule.group.as_str() {
                    _ if !rule.urls.is_empty() => {
                        rule.urls.iter().cloned().collect::<Vec<_>>().join(", ")
                    }
                    "" => rule.resource.clone(),
                    group => format!("{}.{group}", rule.resource),
                }
            );
            return Err(Error::new(ErrorKind::Config, text));
        }
        Ok(())
    }

    /// Returns the role for installing definitions; none when the operator installs none, or may
    /// not.
    fn install_role(&self) -> Vec<Value> {
        let names: Vec<&str> =
            self.manager.definitions.iter().flatten().map(ResourceExt::name).collect();
        if names.is_empty() || !self.namespaces().is_empty() {
            return Vec::new();
        }
        let rule =
            |verbs: &[_]| rule_of("apiextensions.k8s.io", "customresourcedefinitions", verbs);
        // An apply that creates needs `create`, which names cannot limit.
        let create = rule(&["create"]);
        let mut named = rule(&["get", "patch"]);
        named["resourceNames"] = json!(names);
        let suffix = "-definitions";
        vec![
            self.role("ClusterRole", suffix, json!([create, named])),
            self.binding("ClusterRole", suffix, None),
        ]
    }

    /// Returns the role for the operator's own Lease (or legacy lock) and no other, and for events
    /// about the lock.
    fn lease_role(&self, election: &LeaderElection) -> [Value; 2] {
        let mut rules = Vec::new();
        for (group, resource) in election.lock.resources() {
            // RBAC cannot compare the name of a `create`, so only that verb has no name.
            let mut own = rule_of(group, resource, &["get", "update", "watch"]);
            own["resourceNames"] = json!([election.name]);
            rules.extend([rule_of(group, resource, &["create"]), own]);
        }
        rules.push(rule_of("events.k8s.io", "events", &["create"]));
        let suffix = "-leader-election";
        // The namespace in which the election has the lock.
        let namespace = election.namespace.as_deref().unwrap_or(self.namespace);
        let mut role = self.role("Role", suffix, json!(rules));
        role["metadata"]["namespace"] = json!(namespace);
        [role, self.binding("Role", suffix, Some(namespace))]
    }

    /// Returns the policy that refuses writes of a replica that does not lead, if the election has
    /// a fence.
    fn fence(&self, election: &LeaderElection) -> Option<[Value; 2]> {
        let fenced = Fenced { account: self.name, namespace: self.namespace };
        let rules = self.manager.rules();
        // Kinds that are only read need no fence.
        let is_read = |verb: &&str| matches!(*verb, "get" | "list" | "watch");
        let written = rules
            .iter()
            .filter(|rule| !rule.resource.is_empty() && !rule.verbs.iter().all(&is_read));
        let resources = written.map(|rule| (rule.group.as_str(), rule.resource.as_str()));
        election.fence.then(|| fence_policy(election, fenced, resources)).flatten()
    }

    /// Returns a role with these rules; `suffix` follows the operator's name.
    fn role(&self, kind: &str, suffix: &str, rules: Value) -> Value {
        let mut role = self.object(RBAC, kind, json!({ "rules": rules }));
        role["metadata"]["name"] = json!(format!("{}{suffix}", self.name));
        role
    }

    /// Returns a binding of a role to the operator's service account, in a namespace or everywhere.
    fn binding(&self, role: &str, suffix: &str, namespace: Option<&str>) -> Value {
        let kind = if namespace.is_some() { "RoleBinding" } else { "ClusterRoleBinding" };
        let name = format!("{}{suffix}", self.name);
        let mut binding = self.object(
            RBAC,
            kind,
            json!({
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": name,
                },
                "subjects": [{
                    "kind": "ServiceAccount", "name": self.name, "namespace": self.namespace,
                }],
            }),
        );
        binding["metadata"]["name"] = json!(name);
        if let Some(namespace) = namespace {
            binding["metadata"]["namespace"] = json!(namespace);
        }
        binding
    }
}

/// Returns each definition of the operator once, by name, with descriptions cut.
pub(super) fn definitions(
    manager: &Manager,
    max_description: Option<usize>,
) -> Result<Vec<CustomResourceDefinition>, Error> {
    let mut by_name = BTreeMap::new();
    for definition in &manager.definitions {
        match definition {
            Ok(definition) => by_name.insert(definition.name(), definition),
            Err(error) => return Err(Error::new(error.kind(), error.to_string())),
        };
    }
    by_name.extend(manager.described.iter().map(|one| (one.name(), one)));
    let mut all: Vec<CustomResourceDefinition> = by_name.into_values().cloned().collect();
    if let Some(max) = max_description {
        all.iter_mut().for_each(|definition| cut_descriptions(definition, max));
    }
    Ok(all)
}

/// Returns a controller's rule in the form of a Role.
fn printed(rule: &Rule) -> Value {
    let verbs: Vec<&str> = rule.verbs.iter().copied().collect();
    if !rule.urls.is_empty() {
        return json!({ "nonResourceURLs": rule.urls, "verbs": verbs });
    }
    let mut printed = rule_of(&rule.group, &rule.resource, &verbs);
    if !rule.names.is_empty() {
        printed["resourceNames"] = json!(rule.names);
    }
    printed
}

/// Returns a rule about a resource.
fn rule_of(group: &str, resource: &str, verbs: &[&str]) -> Value {
    json!({ "apiGroups": [group], "resources": [resource], "verbs": verbs })
}

const RBAC: &str = "rbac.authorization.k8s.io/v1";
