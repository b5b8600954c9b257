//! Command line of the container in the manifests.
//!
//! `manifests` takes the flags of `run`, and prints the operator as these flags configure the
//! operator. The container must get the same flags, or the operator would run otherwise than the
//! printed roles and probes assume. Not included: `--watch-namespace`, which is in the container's
//! environment, and flags about this machine.

use std::net::SocketAddr;
use std::time::Duration;

use super::options::{Election, LogFormat, Options, Switch};
use windlass_core::error::{Error, ErrorKind};
use windlass_runtime::controller::ChangeLog;

impl Options {
    /// Arguments with which a container runs as these options configure.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a flag that makes no sense in a cluster.
    pub(super) fn arguments(&self) -> Result<Vec<String>, Error> {
        let log_format = (self.log.log_format != LogFormat::default()).then_some("json");
        let level = self.log.least().map(|level| level.to_string().to_ascii_lowercase());
        if self.webhook_url.is_some() {
            let text = "--webhook-url is for a process on your machine: in a cluster webhooks are asked \
                        through their Service; leave it out";
            return Err(Error::new(ErrorKind::Usage, text));
        }
        let mut arguments = self.election.arguments()?;
        arguments.extend(
            [
                flag("kube-api-qps", self.kube_api_qps.map(|qps| qps.to_string())),
                flag("kube-api-burst", self.kube_api_burst.map(|burst| burst.to_string())),
                flag("metrics-bind-address", self.metrics_bind_address.map(switch)),
                flag("health-probe-bind-address", self.health_probe_bind_address.map(switch)),
                flag("max-concurrent-reconciles", self.max_concurrent_reconciles.map(number)),
                flag("graceful-shutdown-timeout", self.graceful_shutdown_timeout.map(duration)),
                self.force_install.then(|| "--force-install".to_owned()),
                flag("change-log", self.change_log.map(change_log)),
                flag("record", self.record.map(duration)),
                flag("record-memory", self.record_memory.map(|mebibytes| mebibytes.to_string())),
                flag("log-level", level),
                flag("log-format", log_format.map(str::to_owned)),
            ]
            .into_iter()
            .flatten(),
        );
        Ok(arguments)
    }
}

impl Election {
    /// Arguments of the election.
    fn arguments(&self) -> Result<Vec<String>, Error> {
        if self.ask_for_lease {
            let text = "--ask-for-lease is for a process on your machine, and its manifests would \
                        make every replica ask; leave it out, or use --lend-lease";
            return Err(Error::new(ErrorKind::Usage, text));
        }
        let lock = self.leader_elect_resource_lock;
        let all = [
            flag("leader-elect", self.leader_elect.map(|elect| elect.to_string())),
            self.lend_lease.then(|| "--lend-lease".to_owned()),
            flag("leader-election-id", self.leader_election_id.clone()),
            flag("leader-elect-resource-lock", lock.map(|lock| lock.as_str().to_owned())),
            flag("leader-election-namespace", self.leader_election_namespace.clone()),
            flag("leader-elect-lease-duration", self.leader_elect_lease_duration.map(duration)),
            flag("leader-elect-renew-deadline", self.leader_elect_renew_deadline.map(duration)),
            flag("leader-elect-retry-period", self.leader_elect_retry_period.map(duration)),
        ];
        Ok(all.into_iter().flatten().collect())
    }
}

/// A flag with a value; `None` for a flag that was not given.
fn flag(name: &str, value: Option<String>) -> Option<String> {
    value.map(|value| format!("--{name}={value}"))
}

/// Prints the detail of the change log in the form that a flag takes.
fn change_log(detail: ChangeLog) -> String {
    let text = match detail {
        ChangeLog::Off => "off",
        ChangeLog::Summary => "summary",
        ChangeLog::Full => "full",
    };
    text.to_owned()
}

/// Prints a number in the form that a flag takes.
fn number(number: usize) -> String {
    number.to_string()
}

/// Prints an address in the form that a flag takes.
fn switch(switch: Switch) -> String {
    match switch {
        Switch::Off => "0".to_owned(),
        // The usual form: every interface, by either protocol.
        Switch::At(SocketAddr::V6(addr)) if addr.ip().is_unspecified() => {
            format!(":{}", addr.port())
        }
        Switch::At(addr) => addr.to_string(),
    }
}

/// Prints a duration in whole units, so that nothing is lost.
fn duration(duration: Duration) -> String {
    match duration.subsec_nanos() {
        0 => format!("{}s", duration.as_secs()),
        nanos if nanos % 1_000_000 == 0 => format!("{}ms", duration.as_millis()),
        _ => format!("{}ns", duration.as_nanos()),
    }
}
