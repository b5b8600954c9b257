//! The conversion that a process outside of a cluster replaced, which it gives back at its stop.
//!
//! Invariant: such a process writes the conversion that it replaces into an annotation of the same
//! definition by the same patch, so that any later process can give it back. It remembers the
//! annotation, and puts it back.

// DESIGN.md, 257: The conversion that a URL replaces is kept in the definition, and a contest for
// it ends
// DESIGN.md, 264: The annotation of a replaced conversion is repaired from memory

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceConversion, CustomResourceDefinition, ServiceReference, WebhookClientConfig,
    WebhookConversion,
};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_client::api::Patch;
use windlass_client::client::Client;
use windlass_core::crd::conversion_path;
use windlass_core::{Error, ErrorKind};

/// Annotation of a definition with the conversion that a process at a URL replaced.
pub(super) const REPLACED: &str = "windlass.dev/replaced-conversion";
/// Most attempts to give a conversion back.
const ATTEMPTS: usize = 5;

/// The contents of the annotation [`REPLACED`].
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Replaced {
    /// URL of the process that replaced it, with the path.
    pub(super) by_url: String,
    /// The conversion before; absent for a definition without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    conversion: Option<CustomResourceConversion>,
}

impl Replaced {
    /// Reads the annotation of a definition; a spoilt one is none.
    pub(super) fn of(definition: &CustomResourceDefinition) -> Option<Self> {
        let annotations = definition.metadata.annotations.as_ref()?;
        serde_json::from_str(annotations.get(REPLACED)?).ok()
    }

    /// Returns the conversion that `right` replaces: never that of a killed process, which has
    /// recorded the one before.
    pub(super) fn by(
        right: &CustomResourceConversion,
        stored: &CustomResourceDefinition,
        remembered: Option<Self>,
    ) -> Self {
        let found = stored.spec.conversion.as_ref();
        let marked = Self::of(stored).filter(|it| found.is_some_and(|found| it.is_by(found)));
        let conversion = match (marked, remembered) {
            (Some(marked), _) => marked.conversion,
            // Somebody removed the annotation of this process, or of one that was killed here.
            (None, Some(remembered)) if url(found) == url(Some(right)) => remembered.conversion,
            (None, None) if url(found) == url(Some(right)) => Some(of_type(stored)),
            (None, _) => found.cloned(),
        };
        Self { by_url: url(Some(right)).cloned().unwrap_or_default(), conversion }
    }

    /// Whether the process of this conversion wrote it.
    pub(super) fn is_by(&self, conversion: &CustomResourceConversion) -> bool {
        url(Some(conversion)) == Some(&self.by_url)
    }

    /// Returns the value of the annotation.
    pub(super) fn annotation(&self) -> Result<Value, Error> {
        serde_json::to_string(self).map(Value::from).map_err(|error| {
            Error::new(ErrorKind::Other, "cannot keep the conversion of a definition")
                .because(error)
        })
    }
}

/// The annotations of a process, by the names of their definitions.
#[derive(Clone, Debug, Default)]
pub(super) struct FormerConversions(Arc<Mutex<BTreeMap<String, Replaced>>>);

impl FormerConversions {
    /// Returns the annotation of a definition as it was last.
    pub(super) fn get(&self, definition: &str) -> Option<Replaced> {
        self.0.lock().get(definition).cloned()
    }

    /// Takes an annotation in.
    pub(super) fn remember(&self, definition: &str, replaced: Replaced) {
        self.0.lock().insert(definition.to_owned(), replaced);
    }
}

/// Returns the conversion of the kind's type, which names no operator: requests fail until an
/// operator in the cluster repairs it, and no object is changed without a conversion.
fn of_type(stored: &CustomResourceDefinition) -> CustomResourceConversion {
    let service = ServiceReference {
        name: format!("{}-webhooks", stored.spec.names.plural),
        namespace: "default".to_owned(),
        path: Some(conversion_path(&stored.spec.group, &stored.spec.names.kind)),
        port: Some(443),
    };
    let client = WebhookClientConfig { service: Some(service), ..WebhookClientConfig::default() };
    CustomResourceConversion {
        strategy: "Webhook".to_owned(),
        webhook: Some(WebhookConversion {
            client_config: Some(client),
            conversion_review_versions: vec!["v1".to_owned()],
        }),
    }
}

/// Returns the URL of a conversion.
pub(super) fn url(conversion: Option<&CustomResourceConversion>) -> Option<&String> {
    conversion?.webhook.as_ref()?.client_config.as_ref()?.url.as_ref()
}

/// Gives the conversion of a definition back: the one that was there before a process at a URL. One
/// that somebody else wrote since stays.
pub(super) async fn give_back(
    client: &Client,
    (name, own): (&str, &CustomResourceConversion),
    former: &FormerConversions,
) -> Result<(), Error> {
    for _ in 1..ATTEMPTS {
        match try_give_back(client, (name, own), former).await {
            // Others write definitions, too: an API server its status.
            Err(error) if error.is_conflict() => {}
            done => return done,
        }
    }
    try_give_back(client, (name, own), former).await
}

async fn try_give_back(
    client: &Client,
    (name, own): (&str, &CustomResourceConversion),
    former: &FormerConversions,
) -> Result<(), Error> {
    let Some(stored) = client.all::<CustomResourceDefinition>().get_opt(name).await? else {
        return Ok(());
    };
    let none = CustomResourceConversion { strategy: "None".to_owned(), webhook: None };
    let right = if url(stored.spec.conversion.as_ref()) == url(Some(own)) {
        let former = Replaced::by(own, &stored, former.get(name));
        former.conversion.unwrap_or(none)
    } else if Replaced::of(&stored).is_some_and(|marked| marked.is_by(own)) {
        // Somebody wrote another one: the annotation alone is this process's.
        stored.spec.conversion.clone().unwrap_or(none)
    } else {
        // Another process at a URL has it now, and gives it back.
        return Ok(());
    };
    write(client, &stored, &right, &Value::Null).await
}

/// Writes conversion and annotation; the rest of the definition stays.
pub(super) async fn write(
    client: &Client,
    stored: &CustomResourceDefinition,
    right: &CustomResourceConversion,
    annotation: &Value,
) -> Result<(), Error> {
    let mut conversion = json!(right);
    // A merge patch removes what it names as null.
    match &right.webhook {
        None => conversion["webhook"] = json!(null),
        Some(_) => {
            let client = &mut conversion["webhook"]["clientConfig"];
            let other = if client["url"].is_null() { "url" } else { "service" };
            client[other] = json!(null);
            if client["caBundle"].is_null() {
                client["caBundle"] = json!(null);
            }
        }
    }
    let mut metadata = json!({ "resourceVersion": stored.metadata.resource_version });
    let has_annotation =
        stored.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(REPLACED));
    if has_annotation || !annotation.is_null() {
        metadata["annotations"] = json!({ REPLACED: annotation });
    }
    let patch = Patch::Merge(json!({ "metadata": metadata, "spec": { "conversion": conversion } }));
    let name = stored.metadata.name.as_deref().unwrap_or_default();
    client.all::<CustomResourceDefinition>().patch(name, patch).await.map(drop)
}
