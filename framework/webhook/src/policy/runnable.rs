//! The policies of an operator in its manifests, and in the API server while it runs outside of a
//! cluster.

use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use windlass_client::client::Client;
use windlass_core::Error;
use windlass_runtime::manager::{
    ManifestContext, RunContext, Runnable, RunnableManifest, WebhookAccess,
};

use super::objects::AdmissionPolicies;
use crate::configuration::ConfigurationOptions;
use crate::server::{printed, put, remove};

/// Pause after policies that could not be written.
const AGAIN: Duration = Duration::from_secs(2);
/// Time for the removal of policies at the stop.
const REMOVAL: Duration = Duration::from_secs(5);

/// The names of the objects that were written.
type Names = Vec<String>;

impl AdmissionPolicies {
    /// Returns the parts of the manifests.
    fn attachment(&self, place: &ManifestContext<'_>) -> Result<RunnableManifest, Error> {
        let options = ConfigurationOptions::new(place.name, place.namespace);
        let mut parts = RunnableManifest::default();
        for (policy, binding) in self.objects(&options)? {
            parts.objects.extend([printed(policy)?, printed(binding)?]);
        }
        Ok(parts)
    }

    /// Writes the policies outside of a cluster, and waits for the stop. In a cluster they are
    /// those that were printed.
    async fn run(&self, cx: &RunContext) -> Result<(), Error> {
        let names = cx.names();
        let Some(access) = &names.webhooks else {
            cx.started();
            cx.stopped().await;
            return Ok(());
        };
        let client = access.client.as_ref().unwrap_or(cx.client());
        let written = tokio::select! {
            biased;
            () = cx.stopped() => return Ok(()),
            written = self.write(&names.name, access, client) => written?,
        };
        cx.started();
        cx.stopped().await;
        // Those of a test's own server stay, as they do in a cluster.
        if access.in_process.is_none() {
            withdraw(client, &written).await;
        }
        Ok(())
    }

    /// Writes all policies, again and again until they are there; returns their names.
    async fn write(
        &self,
        operator: &str,
        access: &WebhookAccess,
        client: &Client,
    ) -> Result<Names, Error> {
        // The operator has no namespace of its own there.
        let options = ConfigurationOptions::new(operator, "");
        let mut options = options.outside(&access.url, &access.namespaces);
        if access.in_process.is_none() {
            options = options.alone();
        }
        let made = self.objects(&options)?;
        loop {
            match write_all(client, &made).await {
                Ok(()) => break,
                Err(error) => {
                    tracing::warn!(%error, again_in = ?AGAIN, "admission policies cannot be written");
                }
            }
            client.environment().clock.sleep(AGAIN).await;
        }
        Ok(made.into_iter().filter_map(|(policy, _)| policy.metadata.name).collect())
    }
}

async fn write_all(
    client: &Client,
    made: &[(ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding)],
) -> Result<(), Error> {
    for (policy, binding) in made {
        let name = policy.metadata.name.as_deref().unwrap_or_default();
        put(client, name, Some(policy)).await?;
        put(client, name, Some(binding)).await?;
    }
    Ok(())
}

/// Removes the policies, bindings first. Failures are logged: the operator must stop.
async fn withdraw(client: &Client, names: &Names) {
    for name in names {
        let removed = async {
            remove::<ValidatingAdmissionPolicyBinding>(client, name).await?;
            remove::<ValidatingAdmissionPolicy>(client, name).await
        };
        let error = match client.environment().clock.timeout(REMOVAL, removed).await {
            Some(Ok(())) => continue,
            Some(Err(error)) => error.to_string(),
            None => format!("no answer within {REMOVAL:?}"),
        };
        tracing::warn!(
            policy = name,
            error,
            "an admission policy stays, and refuses requests: delete it and its binding by kubectl"
        );
    }
}

impl From<AdmissionPolicies> for Runnable {
    fn from(policies: AdmissionPolicies) -> Self {
        let printed = policies.clone();
        let runnable = Runnable::new("admission policies", move |cx: RunContext| {
            let policies = policies.clone();
            async move { Ok(policies.run(&cx).await?) }
        });
        // Faulty policies end the operator outside of a cluster: a rule that is missing in a test
        // would pass it.
        let runnable = runnable.before_caches().awaited().essential();
        runnable.attaching(move |place| printed.attachment(place))
    }
}
