//! The objects of all webhooks of an operator.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhook, MutatingWebhookConfiguration, ServiceReference, ValidatingWebhook,
    ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceConversion, ServiceReference as ConversionService,
    WebhookClientConfig as ConversionClient, WebhookConversion,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    LabelSelector, LabelSelectorRequirement, ObjectMeta,
};
use windlass_core::resource::{Resource, ResourceInfo};
use windlass_core::{Error, ErrorKind};

use super::registration::{FailurePolicy, Registered};
use crate::conversion::ConvertedKind;

/// Time for an answer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Port of the Service.
const PORT: i32 = 443;
/// Label that every namespace has, with its name.
const NAME_OF_NAMESPACE: &str = "kubernetes.io/metadata.name";
/// Characters that a DNS name has at most.
const LONGEST_NAME: usize = 253;
/// Characters that a part of a DNS name has at most, such as the name of a Service.
const LONGEST_LABEL: usize = 63;

/// The place of a server, and the kinds of its operator, for
/// [`Webhooks::configurations`](crate::Webhooks::configurations).
#[derive(Clone, Debug)]
#[must_use = "give it to `Webhooks::configurations`"]
pub struct ConfigurationOptions {
    name: String,
    namespace: String,
    url: Option<String>,
    /// Whether the operator runs outside of the cluster: the configurations have names of their
    /// own, and its namespace is not left out.
    is_outside: bool,
    /// Whether the configurations are those of one process, and so have its URL in their names.
    is_alone: bool,
    /// Name of that process, for a URL whose port is not known.
    process: Option<String>,
    /// Namespaces whose requests are asked about; empty for all.
    only: Vec<String>,
    ca_bundle: Option<Vec<u8>>,
    annotations: BTreeMap<String, String>,
    /// Plurals and groups of own kinds.
    own: BTreeSet<String>,
}

/// Most characters of a URL's host and port in names, before a hash takes the place of the rest:
/// names of objects have at most 253.
const MOST_OF_A_PLACE: usize = 80;

/// Returns a hash that stays the same in every release: FNV-1a.
pub(crate) fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl ConfigurationOptions {
    /// Returns the options of an operator with this name and namespace: it is asked through the
    /// Service `<name>-webhooks`.
    pub fn new(name: impl Into<String>, namespace: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            namespace: namespace.into(),
            url: None,
            is_outside: false,
            is_alone: false,
            process: None,
            only: Vec::new(),
            ca_bundle: None,
            annotations: BTreeMap::new(),
            own: BTreeSet::new(),
        }
    }

    /// Lets API servers ask at this URL (`https://127.0.0.1:9443`) in place of the Service: for an
    /// operator outside of the cluster.
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.url = Some(url.into());
        self
    }

    /// Asks at a URL, by configurations that are there while an operator outside of the cluster
    /// runs.
    pub(crate) fn outside(mut self, url: &str, only: &[String]) -> Self {
        (self.url, self.is_outside, self.only) = (Some(url.to_owned()), true, only.to_vec());
        self
    }

    /// Names the objects after the URL: another process of the operator has others.
    pub(crate) fn alone(mut self) -> Self {
        self.is_alone = true;
        self
    }

    /// Sets the name of the process, which the objects have that are written without a port.
    pub(crate) fn of_process(mut self, name: &str) -> Self {
        self.process = Some(name.to_owned());
        self
    }

    /// Sets the authorities of the serving certificate, PEM. Default: those that another component
    /// injects, or else those that API servers trust by themselves.
    pub fn ca_bundle(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.ca_bundle = Some(pem.into());
        self
    }

    /// Adds an annotation to the configurations, such as `cert-manager.io/inject-ca-from`.
    pub fn annotation(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.annotations.insert(key.into(), value.into());
        self
    }

    /// Makes webhooks of this kind fail closed by default.
    pub fn own_kind<K: Resource>(mut self) -> Self {
        self.own.extend(K::static_info().as_ref().map(ResourceInfo::group_resource));
        self
    }

    /// Makes webhooks of these kinds, `websites.example.dev`, fail closed by default.
    pub(crate) fn own_kinds(mut self, names: &[String]) -> Self {
        self.own.extend(names.iter().cloned());
        self
    }

    /// Whether the authorities are known.
    pub(crate) fn has_authorities(&self) -> bool {
        self.ca_bundle.is_some()
    }

    /// Returns the name of the operator.
    pub(crate) fn operator(&self) -> &str {
        &self.name
    }

    /// Returns the URL at which API servers ask.
    pub(crate) fn asked_url(&self) -> Option<&str> {
        self.url.as_deref()
    }

    /// Returns the name of the Service.
    pub(crate) fn service(&self) -> String {
        format!("{}-webhooks", self.name)
    }

    /// Returns the name of the configurations.
    pub(crate) fn configuration(&self) -> String {
        let suffix = if self.is_outside { "-by-url" } else { "" };
        format!("{}{suffix}{}", self.service(), self.place())
    }

    /// Returns the end of the names of a process at a URL: `-192.168.1.5-9443`. A host with a port
    /// that is not known is replaced by the namespace whose requests are judged, and the port by
    /// the name of the process.
    fn place(&self) -> String {
        let Some(url) = self.url.as_ref().filter(|_| self.is_alone) else { return String::new() };
        let host = url.trim_start_matches("https://").trim_end_matches('/');
        let place = match (host.strip_suffix(":0"), self.only.first()) {
            (Some(host), first) => {
                let place = first.map_or(host, String::as_str);
                let process = self.process.iter().map(|process| format!("-{process}"));
                std::iter::once(place.to_owned()).chain(process).collect()
            }
            (None, _) => host.to_owned(),
        };
        // Names of objects have neither colons nor brackets.
        let letter = |c: char| match c.to_ascii_lowercase() {
            c if c.is_ascii_alphanumeric() || c == '.' => c,
            _ => '-',
        };
        let text: String = place.chars().map(letter).collect();
        // Each part of a name begins and ends with a letter or digit.
        let parts = text.split('.').map(|part| part.trim_matches('-'));
        let text = parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(".");
        match text.char_indices().nth(MOST_OF_A_PLACE) {
            None => format!("-{text}"),
            Some((end, _)) => {
                format!("-{}-{:016x}", text[..end].trim_matches(['-', '.']), hash(&text))
            }
        }
    }

    /// Returns the name of an admission policy and of its binding.
    pub(crate) fn policy(&self, name: &str) -> String {
        let suffix = if self.is_outside { "-outside" } else { "" };
        format!("{}-{name}{suffix}{}", self.name, self.place())
    }

    fn client(&self, path: &str) -> WebhookClientConfig {
        let ca_bundle = self.ca_bundle.clone().map(ByteString);
        match &self.url {
            Some(url) => WebhookClientConfig {
                ca_bundle,
                url: Some(format!("{}{path}", url.trim_end_matches('/'))),
                service: None,
            },
            None => WebhookClientConfig {
                ca_bundle,
                url: None,
                service: Some(ServiceReference {
                    name: self.service(),
                    namespace: self.namespace.clone(),
                    path: Some(path.to_owned()),
                    port: Some(PORT),
                }),
            },
        }
    }

    /// Returns the conversion of a definition by the webhook at a path.
    fn conversion(&self, path: &str) -> CustomResourceConversion {
        let client = self.client(path);
        let service = client.service.map(|service| ConversionService {
            name: service.name,
            namespace: service.namespace,
            path: service.path,
            port: service.port,
        });
        let client = ConversionClient { ca_bundle: client.ca_bundle, service, url: client.url };
        CustomResourceConversion {
            strategy: "Webhook".to_owned(),
            webhook: Some(WebhookConversion {
                client_config: Some(client),
                conversion_review_versions: vec!["v1".to_owned()],
            }),
        }
    }

    /// Returns the metadata of the configurations.
    pub(crate) fn metadata(&self) -> ObjectMeta {
        let labels = BTreeMap::from([("app.kubernetes.io/name".to_owned(), self.name.clone())]);
        ObjectMeta {
            name: Some(self.configuration()),
            labels: Some(labels),
            annotations: Some(self.annotations.clone()).filter(|all| !all.is_empty()),
            ..ObjectMeta::default()
        }
    }
}

/// The configurations of an operator's webhooks; each is there when it has an entry.
/// Cluster-scoped. Conversions are parts of the definitions of their kinds.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Configurations {
    /// Configuration of the validating webhooks; `None` without a validating webhook.
    pub validating: Option<ValidatingWebhookConfiguration>,
    /// Configuration of the mutating webhooks; `None` without a mutating webhook.
    pub mutating: Option<MutatingWebhookConfiguration>,
    /// The field `spec.conversion` of definitions, by their names.
    pub conversions: BTreeMap<String, CustomResourceConversion>,
}

/// The parts that both kinds of entries share.
struct WebhookEntry {
    name: String,
    client: WebhookClientConfig,
    failure_policy: String,
    namespaces: Option<LabelSelector>,
    side_effects: String,
    timeout: i32,
}

/// Returns the configurations of webhooks and conversions: see [`Webhooks::configurations`].
///
/// [`Webhooks::configurations`]: crate::Webhooks::configurations
pub(crate) fn configurations(
    mut hooks: Vec<&Registered>,
    conversions: &[ConvertedKind],
    options: &ConfigurationOptions,
) -> Result<Configurations, Error> {
    hooks.sort_by(|one, other| one.path.cmp(&other.path));
    let mut names = BTreeSet::new();
    let (mut validating, mut mutating) = (Vec::new(), Vec::new());
    for hook in hooks {
        let entry = entry(hook, options)?;
        if !names.insert((hook.is_mutating, entry.name.clone())) {
            let why =
                format!("another one is called {:?}; set `WebhookRegistration::name`", entry.name);
            return Err(refused(hook, &why));
        }
        match hook.is_mutating {
            true => mutating.push(mutating_entry(hook, entry)),
            false => validating.push(validating_entry(hook, entry)),
        }
    }
    if options.url.is_none() && options.service().len() > LONGEST_LABEL {
        let text = format!(
            "the operator's name {:?} is too long for its Service {:?}, which has at most {LONGEST_LABEL} characters; \
             give it a shorter one by `Manager::name`",
            options.name,
            options.service()
        );
        return Err(Error::new(ErrorKind::Usage, text));
    }
    let conversions = conversions.iter();
    let conversions = conversions.map(|it| (it.definition.clone(), options.conversion(&it.path)));
    let filled = |is_filled: bool| is_filled.then(|| options.metadata());
    Ok(Configurations {
        validating: filled(!validating.is_empty()).map(|metadata| ValidatingWebhookConfiguration {
            metadata,
            webhooks: Some(validating),
        }),
        mutating: filled(!mutating.is_empty())
            .map(|metadata| MutatingWebhookConfiguration { metadata, webhooks: Some(mutating) }),
        conversions: conversions.collect(),
    })
}

fn refused(hook: &Registered, why: &str) -> Error {
    let text = format!("cannot configure the webhook at `{}`: {why}", hook.path);
    Error::new(ErrorKind::Usage, text)
}

/// Whether a text is a label of DNS.
pub(crate) fn is_dns_label(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.starts_with(is_plain)
        && text.ends_with(is_plain)
        && text.chars().all(|c| is_plain(c) || c == '-')
}

/// Checks a webhook, and returns what both kinds of entries share.
fn entry(hook: &Registered, options: &ConfigurationOptions) -> Result<WebhookEntry, Error> {
    let (name, keys) = (hook.name(), &hook.registration);
    let is_name = name.split('.').count() >= 3 && name.split('.').all(is_dns_label);
    if !is_name || name.len() > LONGEST_NAME {
        let why =
            format!("{name:?} is no DNS name of three parts; set `WebhookRegistration::name`");
        return Err(refused(hook, &why));
    }
    if hook.rules().is_empty() {
        let why = "its handler is of any kind; name one by `WebhookRegistration::resource`";
        return Err(refused(hook, why));
    }
    let timeout = keys.timeout.unwrap_or(TIMEOUT);
    if !(1..=30).contains(&timeout.as_secs()) || timeout.subsec_nanos() > 0 {
        let why =
            format!("its time-out is {timeout:?}; 1 s to 30 s are possible, in whole seconds");
        return Err(refused(hook, &why));
    }
    let is_own =
        hook.info.as_ref().is_some_and(|info| options.own.contains(&info.group_resource()));
    let usual = if is_own { FailurePolicy::Fail } else { FailurePolicy::Ignore };
    Ok(WebhookEntry {
        name,
        client: options.client(&hook.path),
        failure_policy: keys.failure_policy.unwrap_or(usual).word().to_owned(),
        namespaces: namespaces(hook, options),
        side_effects: if keys.side_effects { "NoneOnDryRun" } else { "None" }.to_owned(),
        timeout: timeout.as_secs() as i32,
    })
}

/// Returns the selector of namespaces: without those that the operator needs to start.
pub(crate) fn namespaces(
    hook: &Registered,
    options: &ConfigurationOptions,
) -> Option<LabelSelector> {
    let mut selector = hook.registration.namespaces.clone();
    let mut add = |operator: &str, names: Vec<String>| {
        let requirement = LabelSelectorRequirement {
            key: NAME_OF_NAMESPACE.to_owned(),
            operator: operator.to_owned(),
            values: Some(names),
        };
        let expressions = &mut selector.get_or_insert_default().match_expressions;
        expressions.get_or_insert_default().push(requirement);
    };
    if !hook.registration.every_namespace {
        // Outside of the cluster no namespace is the operator's own.
        let own = Some(options.namespace.clone()).filter(|_| !options.is_outside);
        add("NotIn", ["kube-system".to_owned()].into_iter().chain(own).collect());
    }
    if !options.only.is_empty() {
        add("In", options.only.clone());
    }
    selector
}

fn validating_entry(hook: &Registered, entry: WebhookEntry) -> ValidatingWebhook {
    let keys = &hook.registration;
    ValidatingWebhook {
        admission_review_versions: vec!["v1".to_owned()],
        client_config: entry.client,
        failure_policy: Some(entry.failure_policy),
        match_conditions: Some(keys.conditions.clone()).filter(|all| !all.is_empty()),
        match_policy: Some("Equivalent".to_owned()),
        name: entry.name,
        namespace_selector: Some(entry.namespaces.unwrap_or_default()),
        object_selector: Some(keys.objects.clone().unwrap_or_default()),
        rules: Some(hook.rules()),
        side_effects: entry.side_effects,
        timeout_seconds: Some(entry.timeout),
    }
}

fn mutating_entry(hook: &Registered, entry: WebhookEntry) -> MutatingWebhook {
    let keys = &hook.registration;
    let reinvocation = if keys.reinvoke { "IfNeeded" } else { "Never" };
    MutatingWebhook {
        admission_review_versions: vec!["v1".to_owned()],
        client_config: entry.client,
        failure_policy: Some(entry.failure_policy),
        match_conditions: Some(keys.conditions.clone()).filter(|all| !all.is_empty()),
        match_policy: Some("Equivalent".to_owned()),
        name: entry.name,
        namespace_selector: Some(entry.namespaces.unwrap_or_default()),
        object_selector: Some(keys.objects.clone().unwrap_or_default()),
        reinvocation_policy: Some(reinvocation.to_owned()),
        rules: Some(hook.rules()),
        side_effects: entry.side_effects,
        timeout_seconds: Some(entry.timeout),
    }
}
