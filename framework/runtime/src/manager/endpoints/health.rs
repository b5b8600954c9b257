//! Liveness and readiness: the checks, and the missing condition and the reason for each failing
//! check.
//!
//! A check is computed on request, from state that the parts of the operator publish: nothing is
//! cached, so an answer is never older than the request. A failing readiness check takes the Pod
//! out of all Services; only a check of `/healthz` has the kubelet restart it, so that page has the
//! few states that a restart repairs.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::controller::{Cluster, ErasedController};
use crate::leader::{Elector, Leadership, LeaseGate};
use crate::manager::install::KeptDefinition;
use crate::manager::probe::{Check, ProbeStatus};
use crate::manager::recording::Recorder;
use crate::manager::runnable::{OperatorInfo, Runnable, RunnableState};
use windlass_cache::informer::{InformerRegistry, InformerStatus};
use windlass_cache::reflector::ReflectorState;
use windlass_client::client::Client;

/// Age from which a cache is reported to lag: servers send a bookmark about once a minute.
const LAG_THRESHOLD: Duration = Duration::from_secs(180);
/// Time after the end of a lease from which on the election counts as stuck, if this process still
/// believes in the lease.
const STUCK_THRESHOLD: Duration = Duration::from_secs(20);

/// State that the checks read; shared between the run and the probe server.
#[derive(Debug)]
pub(crate) struct OperatorStatus {
    pub(crate) name: String,
    pub(crate) names: Arc<OperatorInfo>,
    pub(crate) began: Instant,
    pub(crate) client: Client,
    pub(crate) stop: CancellationToken,
    pub(crate) informers: InformerRegistry,
    pub(crate) clusters: Vec<Cluster>,
    pub(crate) controllers: Vec<Arc<dyn ErasedController>>,
    pub(crate) runnables: Vec<Arc<Runnable>>,
    /// The lease's name.
    pub(crate) lease: Option<String>,
    pub(crate) elector: Option<Elector>,
    pub(crate) recorder: Option<Arc<Recorder>>,
    /// The resources whose definitions this program installs.
    pub(crate) installs: BTreeSet<String>,
    /// Definitions of others that this program does not replace.
    pub(crate) kept_definitions: Mutex<Vec<KeptDefinition>>,
    /// Step that the start is still waiting for, before the caches fill.
    pub(crate) starting: Mutex<Option<String>>,
    pub(crate) gate: Mutex<Option<LeaseGate>>,
}

impl OperatorStatus {
    /// Returns the state of the election; `None` if there is none.
    pub(crate) fn leadership(&self) -> Option<Leadership> {
        self.elector.as_ref().map(|elector| elector.watch().borrow().clone())
    }

    /// Returns the caches of the own cluster, and of others with their names.
    pub(crate) fn registries(&self) -> Vec<(Option<&str>, &InformerRegistry)> {
        let others = self.clusters.iter().map(|one| (Some(one.name()), one.informers()));
        std::iter::once((None, &self.informers)).chain(others).collect()
    }

    /// Waits until the caches of every cluster are filled.
    pub(crate) async fn synced(&self) {
        for (_, informers) in self.registries() {
            informers.synced().await;
        }
    }

    /// Waits until the caches are filled, except those that controllers wait for by themselves.
    pub(crate) async fn others_synced(&self) {
        for (_, informers) in self.registries() {
            informers.others_synced().await;
        }
    }

    /// Returns the caches without which controllers begin, and the reason of each; not those that
    /// are optional.
    pub(crate) fn absent(&self) -> Vec<String> {
        let caches = self.registries().into_iter().flat_map(|(_, caches)| caches.status());
        let is_needed = |one: &InformerStatus| !one.is_optional && !one.tolerates_absence;
        let absent = caches.filter(|one| one.is_absent && is_needed(one));
        absent.map(|one| format!("{}: {}", one.name, one.state)).collect()
    }

    /// Whether the cache waits for a definition that only the leader installs. A follower must be
    /// ready without that cache, or a roll-out that waits for the follower would never reach the
    /// leader that the follower replaces.
    fn is_installed_by_another(&self, informer: &InformerStatus) -> bool {
        let leads = self.leadership() == Some(Leadership::Leading);
        self.elector.is_some() && !leads && self.installs.contains(&informer.info.group_resource())
    }

    /// Returns the checks of `/healthz`.
    pub(crate) fn alive(&self) -> Vec<Check> {
        let mut checks = vec![passed("ping", "")];
        if self.elector.is_some() {
            let overdue = self.gate.lock().as_ref().and_then(LeaseGate::overdue);
            checks.push(match overdue.filter(|overdue| *overdue > STUCK_THRESHOLD) {
                Some(overdue) => failed(
                    "leaderElection",
                    format!(
                        "the lease expired {} s ago and leadership was not ended",
                        overdue.as_secs()
                    ),
                ),
                None => passed("leaderElection", ""),
            });
        }
        checks
    }

    /// Returns the checks of `/readyz`.
    pub(crate) fn ready(&self) -> ProbeStatus {
        let mut checks = Vec::new();
        if self.stop.is_cancelled() {
            // A Service takes the Pod out while the operator drains.
            checks.push(failed("shutdown", "stopping".to_owned()));
        }
        if let Some(waiting) = self.starting.lock().clone() {
            checks.push(failed("start", waiting));
        }
        // The versions that this program needs are served, so controllers of the kind work.
        for KeptDefinition { name, text } in self.kept_definitions.lock().iter() {
            checks.push(passed(&format!("definition {name}"), text));
        }
        for informer in self.registries().into_iter().flat_map(|(_, caches)| caches.status()) {
            let name = format!("cache {}", informer.name);
            checks.push(if informer.synced {
                passed(&name, &cached(&informer))
            } else if informer.is_absent && self.is_installed_by_another(&informer) {
                passed(&name, "absent until the leader installs its definition")
            } else if informer.is_absent && informer.tolerates_absence {
                // Its readers found no object, and run again when one appears.
                passed(&name, &format!("only read, and waited for: {}", informer.state))
            } else if informer.is_optional {
                passed(&name, &format!("optional, not there: {}", informer.state))
            } else {
                failed(&name, informer.state)
            });
        }
        if let Some(leadership) = self.leadership() {
            let own = self.elector.as_ref().map(Elector::identity);
            let detail = match &leadership {
                Leadership::Leading => "leading".to_owned(),
                Leadership::Candidate { holder: Some(holder) } if own == Some(holder) => {
                    format!("the lease names {holder:?}, which is this process and does not lead")
                }
                Leadership::Candidate { holder: Some(holder) } => format!("{holder:?} leads"),
                Leadership::Candidate { holder: None } => "waiting for the lease".to_owned(),
                Leadership::Holding => {
                    let left =
                        self.elector.as_ref().and_then(Elector::leads_in).unwrap_or_default();
                    let left = left.as_secs_f64().ceil();
                    format!(
                        "created the lock and becomes leader in {left} s; a previous holder of a deleted \
                         lock may still write until then"
                    )
                }
                Leadership::Ended => "leadership has ended".to_owned(),
            };
            let waits = matches!(leadership, Leadership::Candidate { .. } | Leadership::Holding);
            let elector = self.elector.as_ref().filter(|_| waits);
            // A replica whose caches are filled is ready, if able to lead.
            checks.push(match elector.and_then(Elector::unreachable) {
                Some(why) => failed("leaderElection", format!("cannot lead: {why}")),
                None => passed("leaderElection", &detail),
            });
        }
        for runnable in &self.runnables {
            checks.extend(runnable.checks());
            // Cloned, so that the runnable does not wait for this lock while the text is built.
            let record = runnable.record.lock().clone();
            if let (RunnableState::Restarting, Some(why)) = (record.state, record.last_error) {
                // A runnable beside the controllers takes no replica out of service.
                let name = format!("runnable {}", runnable.name());
                checks.push(passed(&name, &format!("to be started again, it failed: {why}")));
            }
        }
        ProbeStatus { checks }
    }
}

/// Describes the contents of a filled cache, and the age. A cache that lags stays ready: if many
/// replicas lose a cache at the same time, all of them would go out of service, and the stale
/// objects are still the best that there is. Alarms look at the metrics of the same name.
fn cached(informer: &InformerStatus) -> String {
    let mut text = format!("{} objects", informer.objects);
    if informer.invalid > 0 {
        let _ = write!(text, ", {} of them do not decode", informer.invalid);
    }
    if informer.state != ReflectorState::Watching.to_string() {
        let _ = write!(text, ", {}", informer.state);
    }
    for (what, age) in [("newest version", informer.age), ("last message", informer.silence)] {
        if let Some(age) = age.filter(|age| *age >= LAG_THRESHOLD) {
            let _ = write!(text, ", {what} {} s ago", age.as_secs());
        }
    }
    text
}

fn passed(name: &str, detail: &str) -> Check {
    Check { name: name.to_owned(), ok: true, detail: detail.to_owned() }
}

fn failed(name: &str, detail: String) -> Check {
    Check { name: name.to_owned(), ok: false, detail }
}

/// Prints checks in the form that Kubernetes probes share: `[+]name ok` and `[-]name failed`, then
/// a verdict. States and reasons, with the identities and the errors in them, follow the names only
/// if `in_detail` is set.
pub(crate) fn print(
    endpoint: &str,
    checks: &[Check],
    verbose: bool,
    in_detail: bool,
) -> (bool, String) {
    let ok = checks.iter().all(|check| check.ok);
    if ok && !verbose {
        return (true, "ok".to_owned());
    }
    let mut text = String::new();
    for check in checks {
        let (sign, verdict) = if check.ok { ('+', "ok") } else { ('-', "failed") };
        let detail = match (in_detail, check.ok) {
            (true, _) => check.detail.as_str(),
            (false, true) => "",
            (false, false) => "reason withheld",
        };
        let colon = if detail.is_empty() { "" } else { ": " };
        let _ = writeln!(text, "[{sign}]{} {verdict}{colon}{detail}", check.name);
    }
    let verdict = if ok { "passed" } else { "failed" };
    let _ = writeln!(text, "{endpoint} check {verdict}");
    (ok, text)
}

/// Keeps the checks that the address asks for: a single check by path, all but those excluded.
pub(crate) fn selected(checks: Vec<Check>, only: Option<&str>, excluded: &[String]) -> Vec<Check> {
    checks
        .into_iter()
        .filter(|check| only.is_none_or(|only| check.name == only))
        .filter(|check| !excluded.contains(&check.name))
        .collect()
}

/// State that the probe and metrics servers read.
pub(crate) type SharedStatus = Arc<OperatorStatus>;

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::ConfigMap;
    use windlass_core::resource::ResourceInfo;

    fn status(state: &str, age: u64, heard: u64) -> InformerStatus {
        InformerStatus {
            name: "configmaps".to_owned(),
            info: ResourceInfo::of::<ConfigMap>(),
            is_optional: false,
            synced: true,
            is_absent: false,
            tolerates_absence: false,
            state: state.to_owned(),
            objects: 3,
            bytes: 300,
            invalid: 0,
            resource_version: "7".to_owned(),
            age: Some(Duration::from_secs(age)),
            silence: Some(Duration::from_secs(heard)),
            queued: 0,
            listeners: Vec::new(),
        }
    }

    /// A15, B15 (401 or 403 after a change of permissions, a watch that lags): readiness reports a
    /// cache that lags or is refused, and takes no replica out of service.
    #[test]
    fn b15_readiness_shows_the_age_of_a_cache_that_lags() {
        assert_eq!(cached(&status("watching", 170, 20)), "3 objects");
        let lags = "3 objects, newest version 200 s ago";
        assert_eq!(cached(&status("watching", 200, 20)), lags);
        let away = cached(&status("retrying: refused", 900, 880));
        let expected =
            "3 objects, retrying: refused, newest version 900 s ago, last message 880 s ago";
        assert_eq!(away, expected);
    }
}
