//! The configurations of an operator with certificates of its own, and the conversions in the
//! definitions of its kinds: authorities are written into them, and what others changed is put
//! back.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceConversion;
use tokio_util::sync::CancellationToken;
use windlass_client::client::Client;
use windlass_core::Error;
use windlass_core::clock::Clock;

use super::admission::AdmissionConfigurations;
use super::definition::Conversions;
use super::status::{ConversionLook, ServerStatus};
use crate::certificates::ServingCertificate;
use crate::configuration::ConfigurationOptions;
use crate::webhooks::Webhooks;

/// Pause between two looks at the configurations.
pub(super) const PERIOD: Duration = Duration::from_secs(15);
/// Pause after a look that failed, such as before the definitions are installed.
const AGAIN: Duration = Duration::from_secs(2);
/// First looks with that pause, for an operator that converts.
const EARLY: u32 = 60;

/// The objects of the cluster that a server keeps as they are to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repaired {
    /// Configurations and conversions.
    All,
    /// Conversions alone.
    Conversions,
}

/// The memory of looks at those objects.
pub(super) struct KeptObjects<'a> {
    pub(super) conversions: Conversions<'a>,
    pub(super) admission: AdmissionConfigurations<'a>,
}

/// The faults that were logged and still last, by the name of their object.
#[derive(Debug, Default)]
pub(super) struct LoggedFaults<'a>(BTreeMap<&'a str, String>);

impl<'a> LoggedFaults<'a> {
    /// Takes a fault in; returns whether it is to be logged: it began, or its text is another one.
    pub(super) fn begins(&mut self, object: &'a str, error: &Error) -> bool {
        let text = error.to_string();
        let is_new = self.0.get(object) != Some(&text);
        self.0.insert(object, text);
        is_new
    }

    /// Forgets the fault of an object that is right: the same fault is logged when it comes back.
    pub(super) fn ends(&mut self, object: &str) {
        self.0.remove(object);
    }
}

/// Keeps the configurations of these webhooks as they are to be, for ever.
pub(super) async fn repair(
    webhooks: &Webhooks,
    options: &ConfigurationOptions,
    (certificate, repaired): (&ServingCertificate, Repaired),
    mut kept: KeptObjects<'_>,
    (client, status): (&Client, &ServerStatus),
) {
    let name = options.service();
    let mut faults = LoggedFaults::default();
    let mut looks = 0;
    loop {
        // Without a look the installation would end each pause.
        let mut is_late = true;
        // The definitions may be installed or replaced by the leader, which starts at the same
        // time.
        let is_early = looks < EARLY && !webhooks.conversions().is_empty();
        looks += 1;
        let mut pause = if is_early { AGAIN } else { PERIOD };
        let options = match certificate.authorities() {
            Some(authorities) => Some(options.clone().ca_bundle(authorities)),
            // Own certificates have authorities soon; others that are shown may stay without.
            None => Some(options.clone()).filter(|it| {
                it.has_authorities() || repaired == Repaired::Conversions && certificate.is_shown()
            }),
        };
        if let Some(options) = options {
            let look = status.look();
            is_late = look.is_late;
            match pass(webhooks, (&options, repaired), &mut kept, look).await {
                Ok(()) => faults.ends(&name),
                // Another replica wrote the same, or somebody changed it again: the next look sees
                // it.
                Err(error) if error.is_conflict() => {}
                Err(error) => {
                    pause = AGAIN;
                    if faults.begins(&name, &error) {
                        tracing::warn!(%error, "the configurations of webhooks may be wrong");
                    }
                }
            }
        }
        tokio::select! {
            biased;
            () = certificate.authorities_changed() => {}
            () = status.installed_after(is_late) => {}
            () = client.environment().clock.sleep(pause) => {}
        }
    }
}

/// Compares the stored configurations with the right ones, and replaces those that differ.
async fn pass(
    webhooks: &Webhooks,
    (options, repaired): (&ConfigurationOptions, Repaired),
    kept: &mut KeptObjects<'_>,
    mut look: ConversionLook<'_>,
) -> Result<(), Error> {
    let name = options.service();
    let made = webhooks.configurations(options)?;
    // One that is missing does not hold up the others.
    let mut done = Ok(());
    for (name, right) in &made.conversions {
        let looked = kept.conversions.look(name, right).await;
        look.note(&looked);
        done = looked.and(done);
    }
    look.end();
    if repaired == Repaired::Conversions {
        return done;
    }
    if let Some(right) = made.validating {
        done = kept.admission.validating(&name, right).await.and(done);
    }
    if let Some(right) = made.mutating {
        done = kept.admission.mutating(&name, right).await.and(done);
    }
    done
}

/// Waits, and returns whether the stop came meanwhile.
pub(crate) async fn is_stopped_within(
    pause: Duration,
    clock: &Clock,
    stop: &CancellationToken,
) -> bool {
    tokio::select! {
        biased;
        () = stop.cancelled() => true,
        () = clock.sleep(pause) => false,
    }
}

/// Keeps the conversions of definitions as `made` has them, until the stop. Does not leave a
/// request alone.
pub(super) async fn repair_conversions(
    (names, made): (&[&str], impl Fn() -> BTreeMap<String, CustomResourceConversion>),
    conversions: &mut Conversions<'_>,
    (client, status, stop): (&Client, &ServerStatus, &CancellationToken),
) {
    let mut faults = LoggedFaults::default();
    let mut looks = 0;
    loop {
        let mut pause = if looks < EARLY { AGAIN } else { PERIOD };
        looks += 1;
        let mut look = status.look();
        let is_late = look.is_late;
        let right = made();
        for name in names {
            if stop.is_cancelled() {
                return;
            }
            let Some(right) = right.get(*name) else { continue };
            let looked = conversions.look(name, right).await;
            look.note(&looked);
            match looked {
                Ok(()) => faults.ends(name),
                Err(error) if error.is_conflict() => {}
                Err(error) => {
                    pause = AGAIN;
                    if faults.begins(name, &error) {
                        tracing::warn!(%error, "the conversion of a definition may be wrong");
                    }
                }
            }
        }
        look.end();
        if conversions.waits() {
            // Requests of other versions fail until it is given back and taken.
            pause = AGAIN;
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = status.installed_after(is_late) => {}
            () = conversions.taker_gone() => {}
            () = client.environment().clock.sleep(pause) => {}
        }
    }
}
