//! Flags and environment variables, under the names that controller-runtime's users know.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

/// A Kubernetes operator.
#[derive(Clone, Debug, Parser)]
pub(super) struct Options {
    #[command(subcommand)]
    pub(super) command: Option<Command>,

    /// Kubeconfig file; default: KUBECONFIG, the Pod's service account, or ~/.kube/config
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) kubeconfig: Option<PathBuf>,

    /// Address of /metrics; 0 turns it off
    #[arg(long, global = true, value_name = "ADDRESS", value_parser = parse_switch)]
    pub(super) metrics_bind_address: Option<Switch>,

    /// Address of /healthz and /readyz; 0 turns it off
    #[arg(long, global = true, value_name = "ADDRESS", value_parser = parse_switch)]
    pub(super) health_probe_bind_address: Option<Switch>,

    /// Only the replica that holds the lease works
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

    /// Ask the replica that leads for the lease, for as long as this process runs; it must lend it
    #[arg(long, global = true)]
    pub(super) ask_for_lease: bool,

    /// Least important lines to log: error, warn, info, debug, trace (default info)
    #[arg(long, global = true, value_name = "LEVEL", alias = "zap-log-level")]
    pub(super) log_level: Option<tracing::Level>,

    /// How to log
    #[arg(long, global = true, value_enum, default_value_t, alias = "zap-encoder")]
    pub(super) log_format: LogFormat,

    /// Namespaces to watch, separated by commas; empty means all
    #[arg(long, global = true, value_name = "NAMES", env = "WATCH_NAMESPACE", default_value = "")]
    #[arg(hide_env_values = true)]
    pub(super) watch_namespace: String,

    /// On the embedded API server: end once the sample is ready, or with the reason why it is not
    #[arg(long, global = true)]
    pub(super) until_ready: bool,

    /// How long --until-ready waits, in seconds
    #[arg(long, global = true, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    #[cfg_attr(not(feature = "local"), allow(dead_code))]
    pub(super) ready_timeout: Duration,
}

#[derive(Clone, Debug, Subcommand)]
pub(super) enum Command {
    /// Run the operator (the default)
    Run,
    /// Print everything a cluster needs to run the operator, as YAML
    Manifests(Manifests),
}

#[derive(Args, Clone, Debug)]
pub(super) struct Manifests {
    /// Namespace of the operator
    #[arg(long)]
    pub(super) namespace: Option<String>,

    /// Container image of the operator
    #[arg(long)]
    pub(super) image: Option<String>,
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

/// A server's address, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Switch {
    At(SocketAddr),
    Off,
}

/// `host:port`, `:port` for every interface, or `0`.
fn parse_switch(text: &str) -> Result<Switch, String> {
    if text == "0" {
        return Ok(Switch::Off);
    }
    let parsed = match text.strip_prefix(':') {
        Some(port) => port.parse().map(|port| (Ipv4Addr::UNSPECIFIED, port).into()).ok(),
        None => text.parse().ok(),
    };
    parsed.map(Switch::At).ok_or_else(|| "write IP:PORT, :PORT, or 0 for none".to_owned())
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.trim_end_matches('s').parse::<u64>();
    seconds.map(Duration::from_secs).map_err(|error| error.to_string())
}
