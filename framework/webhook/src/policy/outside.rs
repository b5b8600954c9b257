//! The policies of a process outside of a cluster: there while it runs.

// DESIGN.md, 224: Policies and configurations of a process at a URL carry its mark, which it
// renews

use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use tokio_util::sync::CancellationToken;
use windlass_client::client::Client;
use windlass_core::Error;
use windlass_runtime::manager::WebhookAccess;

use super::objects::AdmissionPolicies;
use crate::configuration::ConfigurationOptions;
use crate::outside::OutsideProcess;
use crate::server::{is_stopped_within, put};

/// Pause between two looks at the policies.
const PERIOD: Duration = Duration::from_secs(15);
/// Pause after policies that could not be written.
const AGAIN: Duration = Duration::from_secs(2);
/// Time for the removal of a policy at the stop.
const REMOVAL: Duration = Duration::from_secs(5);

/// The policies of one process.
pub(super) struct OutsidePolicies<'a> {
    client: &'a Client,
    operator: &'a str,
    made: Vec<(ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding)>,
    /// `None` in a test's own server, where they stay as they do in a cluster.
    process: Option<OutsideProcess>,
    is_written: bool,
}

impl<'a> OutsidePolicies<'a> {
    pub(super) fn new(
        policies: &AdmissionPolicies,
        (client, operator): (&'a Client, &'a str),
        access: &WebhookAccess,
    ) -> Result<Self, Error> {
        let process = access.in_process.is_none().then(|| OutsideProcess::new(client));
        // The operator has no namespace of its own there.
        let options = ConfigurationOptions::new(operator, "");
        let mut options = options.outside(&access.url, &access.namespaces);
        if let Some(process) = &process {
            options = options.alone().of_process(process.name());
        }
        let made = policies.objects(&options)?;
        Ok(Self { client, operator, made, process, is_written: false })
    }

    /// Keeps the policies until `stop`, and then removes them. A request that is on its way then is
    /// answered first, unless that takes long: a policy that is written after the removal stays.
    pub(super) async fn run(mut self, stop: &CancellationToken, started: impl FnOnce()) {
        let clock = self.client.environment().clock.clone();
        let too_late = async {
            stop.cancelled().await;
            clock.sleep(REMOVAL).await;
        };
        tokio::select! {
            biased;
            () = self.keep(stop, started) => {}
            () = too_late => {}
        }
        if self.process.is_some() {
            self.withdraw().await;
        }
    }

    /// Writes all policies, reports the start once they are there, and looks at them again and
    /// again.
    async fn keep(&mut self, stop: &CancellationToken, started: impl FnOnce()) {
        let clock = self.client.environment().clock.clone();
        let (mut started, mut logged) = (Some(started), None);
        while !stop.is_cancelled() {
            let looked = self.look(stop).await;
            if let Some(started) = started.take_if(|_| self.is_written) {
                started();
            }
            let pause = match looked {
                Ok(()) => {
                    logged = None;
                    PERIOD
                }
                // Somebody else wrote one since it was read: the next look sees it.
                Err(error) if error.is_conflict() => AGAIN,
                Err(error) => {
                    // Once for each series of failures of one kind.
                    let text = Some(error.to_string());
                    if logged != text {
                        tracing::warn!(%error, "admission policies may be wrong or left over");
                    }
                    logged = text;
                    AGAIN
                }
            };
            is_stopped_within(pause, &clock, stop).await;
        }
    }

    /// Writes the policies that are not there or whose marks are due, and then removes those of
    /// processes that were killed.
    async fn look(&mut self, stop: &CancellationToken) -> Result<(), Error> {
        let Self { client, operator, made, process, is_written } = self;
        let Some(process) = process else { return write_shared(client, made, is_written).await };
        // The process that started last has a name: only its first look takes one from another.
        let turn = process.begin(!*is_written);
        for (policy, binding) in made.iter() {
            if stop.is_cancelled() {
                return Ok(());
            }
            let name = policy.metadata.name.as_deref().unwrap_or_default();
            process.keep(client, (name, policy), turn).await?;
            process.keep(client, (name, binding), turn).await?;
        }
        *is_written = true;
        if process.end(turn) {
            // Bindings first: without one a policy judges nothing.
            process.sweep::<ValidatingAdmissionPolicyBinding>(client, operator).await?;
            process.sweep::<ValidatingAdmissionPolicy>(client, operator).await?;
        }
        Ok(())
    }

    /// Removes the policies of this process, bindings first. Failures are logged: the operator must
    /// stop.
    async fn withdraw(&self) {
        let Some(process) = &self.process else { return };
        let names = self.made.iter().filter_map(|(policy, _)| policy.metadata.name.as_deref());
        for name in names {
            let removed = async {
                process.remove::<ValidatingAdmissionPolicyBinding>(self.client, name).await?;
                process.remove::<ValidatingAdmissionPolicy>(self.client, name).await
            };
            let error = match self.client.environment().clock.timeout(REMOVAL, removed).await {
                Some(Ok(())) => continue,
                Some(Err(error)) => error.to_string(),
                None => format!("no answer within {REMOVAL:?}"),
            };
            tracing::warn!(
                policy = name,
                error,
                "an admission policy stays, and refuses requests: the operator's next process at a URL \
                 removes it after five minutes, or delete it and its binding by kubectl"
            );
        }
    }
}

/// Writes the policies of a test's own server once; replicas of the operator share them.
async fn write_shared(
    client: &Client,
    made: &[(ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding)],
    is_written: &mut bool,
) -> Result<(), Error> {
    if *is_written {
        return Ok(());
    }
    for (policy, binding) in made {
        let name = policy.metadata.name.as_deref().unwrap_or_default();
        put(client, name, Some(policy)).await?;
        put(client, name, Some(binding)).await?;
    }
    *is_written = true;
    Ok(())
}
