//! Flags and environment variables, under the names that operators in Go use.
//!
//! The first name of a flag is that of a project made by kubebuilder or operator-sdk, otherwise
//! that of Kubernetes' own components; other common names are accepted and not shown. A flag of
//! such a project that has no counterpart here is refused, not ignored.

use std::net::{Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

use windlass_client::client::ExecPolicy;
use windlass_runtime::controller::{ChangeLog, MOST_WORKERS};
use windlass_runtime::leader::LockKind;

/// A Kubernetes operator.
#[derive(Clone, Debug, Parser)]
pub(super) struct Options {
    #[command(subcommand)]
    pub(super) command: Option<Command>,

    /// Kubeconfig file; default: KUBECONFIG, the Pod's service account, or, outside of
    /// Pods, ~/.kube/config
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) kubeconfig: Option<PathBuf>,

    /// Credential plugins of the kubeconfig that may run: all, none, or names and absolute paths of
    /// programs, separated by commas; default: all, but none in a Pod
    #[arg(long, global = true, value_name = "PLUGINS", value_parser = plugins)]
    pub(super) credential_plugins: Option<ExecPolicy>,

    /// Largest number of requests per second; default: no limit
    #[arg(long, global = true, value_name = "NUMBER", value_parser = positive)]
    pub(super) kube_api_qps: Option<f64>,

    /// Largest burst of requests under --kube-api-qps
    #[arg(long, global = true, value_name = "NUMBER", requires = "kube_api_qps")]
    pub(super) kube_api_burst: Option<u32>,

    /// Address of /metrics; 0 turns it off
    #[arg(long, global = true, value_name = "ADDRESS", value_parser = parse_switch)]
    pub(super) metrics_bind_address: Option<Switch>,

    /// The only accepted value is `false`: metrics are served without TLS
    #[arg(long, global = true, hide = true, num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "true", action = ArgAction::Set, value_parser = never)]
    pub(super) metrics_secure: Option<bool>,

    /// Address of /healthz and /readyz; 0 turns it off
    #[arg(long, global = true, value_name = "ADDRESS", value_parser = parse_switch)]
    pub(super) health_probe_bind_address: Option<Switch>,

    /// Number of objects that each controller reconciles at the same time
    #[arg(long, global = true, value_name = "NUMBER", value_parser = workers)]
    pub(super) max_concurrent_reconciles: Option<usize>,

    /// Time for running work to end after the operator receives a signal to stop
    #[arg(long, global = true, value_name = "DURATION", value_parser = duration)]
    pub(super) graceful_shutdown_timeout: Option<Duration>,

    /// Replace custom resource definitions that other managers share, even if versions or fields
    /// are lost
    #[arg(long, global = true)]
    pub(super) force_install: bool,

    /// Log each write of the controllers: off, summary (the changed paths) or full (their values,
    /// too; those of Secrets are masked); default: off, unless the program says otherwise
    #[arg(long, global = true, value_name = "DETAIL", value_parser = change_log)]
    pub(super) change_log: Option<ChangeLog>,

    /// Keep this much of the exchange with the API server in memory, such as 5m, for
    /// /debug/recording; values of Secrets are masked; default: off, unless the program says
    /// otherwise
    #[arg(long, global = true, value_name = "DURATION", env = "WINDLASS_RECORD")]
    #[arg(value_parser = duration)]
    pub(super) record: Option<Duration>,

    /// Memory of --record, in MiB; default: 64
    #[arg(long, global = true, value_name = "NUMBER", requires = "record")]
    pub(super) record_memory: Option<u16>,

    /// Namespaces to watch, separated by commas; empty means all
    #[arg(long, global = true, value_name = "NAMES", env = "WATCH_NAMESPACE", default_value = "")]
    #[arg(hide_env_values = true, aliases = ["watch-namespaces", "namespaces"])]
    pub(super) watch_namespace: String,

    /// URL at which the cluster reaches the webhooks of this process, https://HOST:PORT: they are
    /// configured with it until the operator stops
    #[arg(long, global = true, value_name = "URL")]
    pub(super) webhook_url: Option<String>,

    /// Exit when the sample is ready, or with the reason if it is not; embedded API server only
    #[arg(long, global = true)]
    pub(super) until_ready: bool,

    /// Longest wait of --until-ready, such as 90s or 2m
    #[arg(long, global = true, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    #[arg(requires = "until_ready")]
    #[cfg_attr(not(feature = "local"), allow(dead_code))]
    pub(super) ready_timeout: Duration,

    // Last: flags after these would stand under their headings.
    #[command(flatten)]
    pub(super) election: Election,

    #[command(flatten)]
    pub(super) log: Log,
}

/// Leader election among replicas.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Leader election")]
pub(super) struct Election {
    /// Leader election: only the replica that holds the lease reconciles
    #[arg(
        long,
        global = true,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        action = ArgAction::Set
    )]
    pub(super) leader_elect: Option<bool>,

    /// Lend the lease to a process that asks for it with --ask-for-lease
    #[arg(long, global = true)]
    pub(super) lend_lease: bool,

    /// Request the lease from the leader for as long as this process runs; the leader needs
    /// --lend-lease
    #[arg(long, global = true)]
    pub(super) ask_for_lease: bool,

    /// Name of the lease
    #[arg(long, global = true, value_name = "NAME", alias = "leader-elect-resource-name")]
    pub(super) leader_election_id: Option<String>,

    /// Kind of object that holds the election record: leases, or for migrations configmaps,
    /// endpoints, configmapsleases, endpointsleases
    #[arg(long, global = true, value_name = "KIND", value_parser = lock)]
    pub(super) leader_elect_resource_lock: Option<LockKind>,

    /// Namespace of the lease; default: the operator's own
    #[arg(long, global = true, value_name = "NAME", alias = "leader-elect-resource-namespace")]
    pub(super) leader_election_namespace: Option<String>,

    /// Time after the last renewal at which another replica may take the lease over
    #[arg(long, global = true, value_name = "DURATION", value_parser = duration)]
    #[arg(alias = "leader-election-lease-duration")]
    pub(super) leader_elect_lease_duration: Option<Duration>,

    /// Time after which a leader that cannot renew the lease stops leading
    #[arg(long, global = true, value_name = "DURATION", value_parser = duration)]
    #[arg(alias = "leader-election-renew-deadline")]
    pub(super) leader_elect_renew_deadline: Option<Duration>,

    /// Time between two attempts to acquire or renew
    #[arg(long, global = true, value_name = "DURATION", value_parser = duration)]
    #[arg(alias = "leader-election-retry-period")]
    pub(super) leader_elect_retry_period: Option<Duration>,
}

/// Level and format of the log.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Logging")]
pub(super) struct Log {
    /// Least severe level to log: error, warn, info, debug, trace (default info)
    #[arg(long, global = true, value_name = "LEVEL", alias = "zap-log-level", value_parser = level)]
    pub(super) log_level: Option<tracing::Level>,

    /// Format of log lines
    #[arg(long, global = true, value_enum, default_value_t, alias = "zap-encoder")]
    pub(super) log_format: LogFormat,

    /// Same as --log-level=debug
    #[arg(long, global = true, hide = true, num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "true", action = ArgAction::Set)]
    pub(super) zap_devel: Option<bool>,

    /// No effect: the log has no stack traces
    #[arg(long, global = true, hide = true)]
    pub(super) zap_stacktrace_level: Option<String>,

    /// No effect: times have one format
    #[arg(long, global = true, hide = true)]
    pub(super) zap_time_encoding: Option<String>,
}

impl Log {
    /// Returns the least severe level to log, if a flag sets one.
    pub(super) fn least(&self) -> Option<tracing::Level> {
        let devel = self.zap_devel.unwrap_or_default();
        self.log_level.or_else(|| devel.then_some(tracing::Level::DEBUG))
    }
}

#[derive(Clone, Debug, Subcommand)]
pub(super) enum Command {
    /// Run the operator (the default)
    Run,
    /// Print the changes that a run would make, and make none
    ///
    /// Every object is reconciled once against the cluster, and every write is a dry run. Exit code
    /// 0: nothing would change. 2: something would. 1: an error, also of a single object.
    Plan(PlanArguments),
    /// Follow a running operator, and report where the writes of this one would differ
    ///
    /// Every object is watched and reconciled as by `run`, and every write is a dry run. Lasting
    /// differences are logged, and counted by a metric.
    Shadow(ShadowArguments),
    /// Store all objects in the storage versions of their kinds, so that older versions can be
    /// removed
    ///
    /// Every object of a kind with older stored versions is written once without a change, then
    /// `status.storedVersions` is trimmed. May be stopped and run again at any time.
    Migrate,
    /// Print the manifests that a cluster needs to run the operator, as YAML
    Manifests(Manifests),
}

#[derive(Args, Clone, Debug)]
pub(super) struct ShadowArguments {
    /// Time after which a difference that still stands is reported
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub(super) settle_time: Duration,
}

#[derive(Args, Clone, Debug)]
pub(super) struct PlanArguments {
    /// Kind of the objects, by its name or plural; default: the kinds of all controllers
    #[arg(value_name = "KIND")]
    pub(super) kind: Option<String>,

    /// Objects of the kind, NAME for a kind without namespaces; default: all
    #[arg(value_name = "NAMESPACE/NAME")]
    pub(super) objects: Vec<String>,

    /// Format of the plan
    #[arg(long, short, value_enum, default_value_t)]
    pub(super) output: PlanOutput,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum PlanOutput {
    /// Changes below the objects that cause them
    #[default]
    Text,
    /// One JSON object
    Json,
}

#[derive(Args, Clone, Debug)]
pub(super) struct Manifests {
    /// Namespace of the operator
    #[arg(long)]
    pub(super) namespace: Option<String>,

    /// Container image of the operator
    #[arg(long)]
    pub(super) image: Option<String>,

    /// Roles instead of cluster roles: the operator works in its own namespace, or in the
    /// namespaces of --watch-namespace, which implies this flag
    #[arg(long)]
    pub(super) namespaced: bool,

    /// Largest number of characters in a description of a field; 0 removes all descriptions
    #[arg(long, global = true, value_name = "NUMBER")]
    pub(super) max_description: Option<usize>,

    #[command(subcommand)]
    pub(super) command: Option<ManifestsCommand>,
}

#[derive(Clone, Debug, Subcommand)]
pub(super) enum ManifestsCommand {
    /// Compare the custom resource definitions with older ones, and print each change with its
    /// consequence
    ///
    /// The old file may hold any objects in any number of documents; definitions are compared by
    /// their names. Exit code 0: every change is compatible. 2: a change breaks stored objects or
    /// clients. Any other: an error.
    Diff(Diff),
}

#[derive(Args, Clone, Debug)]
pub(super) struct Diff {
    /// Old manifests or definitions as YAML, such as the output of `manifests` of the last release
    /// or of `kubectl get crd -o yaml`; `-` reads the standard input
    #[arg(value_name = "OLD")]
    pub(super) old: PathBuf,

    /// Exit with 0 although changes are found that only new or changed values meet: updates of
    /// stored objects that leave invalid values as they are remain possible (Kubernetes 1.33 and
    /// newer)
    #[arg(long)]
    pub(super) allow_ratcheted: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum LogFormat {
    /// One compact line per event, in colours on a terminal
    #[default]
    #[value(alias = "console")]
    Text,
    /// One JSON object per event
    Json,
}

/// Address of a server, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Switch {
    At(SocketAddr),
    Off,
}

/// Parses `host:port`, `:port` for every interface, or `0`.
fn parse_switch(text: &str) -> Result<Switch, String> {
    if text == "0" {
        return Ok(Switch::Off);
    }
    let parsed = match text.strip_prefix(':') {
        Some(port) => port.parse().map(|port| (Ipv6Addr::UNSPECIFIED, port).into()).ok(),
        None => text.parse().ok(),
    };
    parsed.map(Switch::At).ok_or_else(|| "write IP:PORT, :PORT, or 0 for none".to_owned())
}

/// Accepts `false` only: metrics have no TLS.
fn never(text: &str) -> Result<bool, String> {
    match text.parse() {
        Ok(false) => Ok(false),
        _ => Err("metrics are served without TLS, on the loopback interface unless \
                  --metrics-bind-address says otherwise; put a proxy in front of them"
            .to_owned()),
    }
}

/// Parses `all`, `none` or a list of programs.
fn plugins(text: &str) -> Result<ExecPolicy, String> {
    match text {
        "all" => Ok(ExecPolicy::AllowAll),
        "none" => Ok(ExecPolicy::Deny),
        list => {
            let programs: Vec<&str> = list.split(',').map(str::trim).collect();
            match programs.contains(&"") {
                true => Err("write all, none, or programs separated by commas".to_owned()),
                false => Ok(ExecPolicy::allow_list(programs)),
            }
        }
    }
}

/// Parses a finite number above 0.
fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "write a number above 0".to_owned())
}

/// Parses the detail of the change log.
fn change_log(text: &str) -> Result<ChangeLog, String> {
    match text {
        "off" => Ok(ChangeLog::Off),
        "summary" => Ok(ChangeLog::Summary),
        "full" => Ok(ChangeLog::Full),
        _ => Err("write off, summary or full".to_owned()),
    }
}

/// Parses the kind of a lock.
fn lock(text: &str) -> Result<LockKind, String> {
    text.parse().map_err(|error: windlass_core::error::Error| error.to_string())
}

/// Parses a number of workers within the bounds of a controller.
fn workers(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=MOST_WORKERS).contains(number));
    number.ok_or_else(|| format!("write a whole number from 1 to {MOST_WORKERS}"))
}

/// Parses names of levels, zap's included, or zap's numbers: 0 is `info`, higher ones log more.
fn level(text: &str) -> Result<tracing::Level, String> {
    use tracing::Level;
    if let Ok(number) = text.parse::<u8>() {
        return Ok(match number {
            0 => Level::INFO,
            1..=4 => Level::DEBUG,
            _ => Level::TRACE,
        });
    }
    match text.to_ascii_lowercase().as_str() {
        "error" | "dpanic" | "panic" | "fatal" => Ok(Level::ERROR),
        "warn" | "warning" => Ok(Level::WARN),
        "info" => Ok(Level::INFO),
        "debug" => Ok(Level::DEBUG),
        "trace" => Ok(Level::TRACE),
        _ => Err("write error, warn, info, debug, trace, or a number".to_owned()),
    }
}

/// Parses Go's form of durations (`15s`, `1m30s`, `300ms`), or a number of seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "write a duration such as 15s, 1m30s or 500ms".to_owned();
    if let Ok(seconds) = text.parse::<u64>() {
        return Ok(Duration::from_secs(seconds));
    }
    let mut rest = text;
    let mut sum = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
        let number: f64 = rest[..digits].parse().map_err(|_| wrong())?;
        let unit_end = rest[digits..]
            .find(|c: char| c.is_ascii_digit())
            .map_or(rest.len(), |length| digits + length);
        let seconds = match &rest[digits..unit_end] {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" => 1e-6,
            "ns" => 1e-9,
            _ => return Err(wrong()),
        };
        sum += number * seconds;
        rest = &rest[unit_end..];
    }
    if text.is_empty() {
        return Err(wrong());
    }
    Duration::try_from_secs_f64(sum).map_err(|_| wrong())
}
