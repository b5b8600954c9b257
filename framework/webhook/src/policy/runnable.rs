//! The policies of an operator in its manifests, and in the API server while it runs outside of a
//! cluster.

use tokio_util::sync::CancellationToken;
use windlass_client::client::Client;
use windlass_core::Error;
use windlass_runtime::manager::{
    ManifestContext, OperatorInfo, RunContext, Runnable, RunnableManifest,
};

use super::objects::AdmissionPolicies;
use super::outside::OutsidePolicies;
use crate::configuration::ConfigurationOptions;
use crate::server::printed;

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
    pub(crate) async fn run(
        &self,
        (client, names): (&Client, &OperatorInfo),
        stop: CancellationToken,
        started: impl FnOnce(),
    ) -> Result<(), Error> {
        let Some(access) = &names.webhooks else {
            started();
            stop.cancelled().await;
            return Ok(());
        };
        let client = access.client.as_ref().unwrap_or(client);
        let policies = OutsidePolicies::new(self, (client, &names.name), access)?;
        policies.run(&stop, started).await;
        Ok(())
    }
}

impl From<AdmissionPolicies> for Runnable {
    fn from(policies: AdmissionPolicies) -> Self {
        let printed = policies.clone();
        let runnable = Runnable::new("admission policies", move |cx: RunContext| {
            let policies = policies.clone();
            async move {
                let names = (cx.client(), cx.names());
                Ok(policies.run(names, cx.stop(), || cx.started()).await?)
            }
        });
        // Faulty policies end the operator outside of a cluster: a rule that is missing in a test
        // would pass it.
        let runnable = runnable.before_caches().awaited().essential();
        runnable.attaching(move |place| printed.attachment(place))
    }
}
