//! `windlass-apiserver`: the embedded Kubernetes API server as a program.

mod files;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use windlass_apiserver::{ApiServer, Builder, ControllerSet};

/// A Kubernetes API server for development: in memory, with TLS, tokens and RBAC.
#[derive(Debug, Parser)]
#[command(name = "windlass-apiserver", version)]
struct Arguments {
    /// Address to listen on; port 0 picks a free one.
    #[arg(long, default_value = "127.0.0.1:6443")]
    listen: SocketAddr,

    /// File to write the administrator's kubeconfig to (mode 0600).
    #[arg(long, default_value = "windlass.kubeconfig")]
    kubeconfig: PathBuf,

    /// More users, as CSV: token,user,uid,"group1,group2".
    #[arg(long)]
    token_auth_file: Option<PathBuf>,

    /// A user that the kubeconfig gets a context for: `windlass-NAME`, with a token; may be
    /// repeated.
    #[arg(long = "user", value_name = "NAME[=GROUP,GROUP]")]
    users: Vec<String>,

    /// Certificates (PEM) of further authorities: clients with a certificate of one of them are let
    /// in as the user of its common name, with its organizations as groups.
    #[arg(long, value_name = "FILE")]
    client_ca_file: Option<PathBuf>,

    /// Whether requests without credentials are those of `system:anonymous`; 401 otherwise.
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1, require_equals = true,
        default_missing_value = "true", action = clap::ArgAction::Set)]
    anonymous_auth: bool,

    /// Controllers to run, by the names of kube-controller-manager: `*` for those that are on by
    /// default, `name` and `-name` for single ones, nothing for none (a lone kube-apiserver). Off
    /// by default are the stand-ins that need no nodes: deployment, replicaset, statefulset,
    /// daemonset, job, cronjob, endpoint, endpointslice, persistentvolume-binder, disruption,
    /// csrsigning, and kubelet, which lets Pods run without containers.
    #[arg(long, default_value = "*")]
    controllers: ControllerSet,

    /// Time after which Events are deleted, counted from their last write: `1h`, `90m`.
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = time)]
    event_ttl: Duration,

    /// File that keeps everything across restarts: objects, versions, keys and certificates. It is
    /// created (mode 0600) if it does not exist, and an empty one is filled; a link, a file of
    /// another user, and one that others may write to are refused. A write is answered once it is
    /// in the file. Default: all is in memory.
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,

    /// File to append the audit log to, `-` for the standard output: a JSON object for each
    /// request, with what it changed; values of Secrets are masked. Refused are the files that
    /// `--data` refuses.
    #[arg(long, value_name = "FILE")]
    audit_log: Option<PathBuf>,

    /// Unix socket (mode 0600) for administration over HTTP: faults, compaction, snapshots, the
    /// audit log, counters. The routes stand in the documentation.
    #[cfg(unix)]
    #[arg(long, value_name = "PATH")]
    admin_socket: Option<PathBuf>,

    /// Report Deployments available, as if pods ran: `deployment-controller`.
    #[arg(long)]
    stand_ins: bool,
}

/// Runs the server and reports a failure.
#[tokio::main]
async fn main() -> ExitCode {
    match run(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Starts the server, writes the kubeconfig and serves until a signal arrives.
async fn run(arguments: Arguments) -> Result<(), String> {
    // Installed first: a signal during the start also ends the program in the orderly way.
    let signals =
        StopSignals::new().map_err(|error| format!("cannot wait for signals: {error}"))?;
    let builder = configured(&arguments)?;
    let server = match &arguments.data {
        Some(path) => builder.start_on(path).await.map_err(|error| error.to_string())?,
        None => builder.start(),
    };
    if let Some(path) = &arguments.audit_log {
        server.write_audit(audit_log(path)?);
    }
    #[cfg(unix)]
    if let Some(path) = &arguments.admin_socket {
        server.serve_admin(path).await.map_err(|error| error.to_string())?;
    }
    let listening = server.listen(arguments.listen).await.map_err(|error| error.to_string())?;
    let path = &arguments.kubeconfig;
    write_private(path, &listening.kubeconfig)
        .map_err(|error| format!("cannot write the kubeconfig {}: {error}", path.display()))?;
    let url = format!("https://{}", listening.addr);
    if !listening.addr.ip().is_loopback() {
        eprintln!(
            "warning: {} can be reached from other machines; this server is meant for development",
            listening.addr
        );
    }
    println!("windlass-apiserver ready at {url}, kubeconfig {}", path.display());
    tokio::select! {
        biased;
        () = signals.received() => {
            server.shutdown().await;
            let lost = server.lost_audit();
            if lost > 0 {
                eprintln!("warning: the audit log was too slow, {lost} of its lines are lost");
            }
        }
        // Only a data file that fails stops the server from inside.
        why = server.stopped() => return Err(why.unwrap_or_default()),
    }
    Ok(())
}

/// Returns a builder with the settings of the command line.
fn configured(arguments: &Arguments) -> Result<Builder, String> {
    let mut builder = ApiServer::builder()
        .controller_set(arguments.controllers)
        .event_ttl(arguments.event_ttl)
        .anonymous_auth(arguments.anonymous_auth);
    if arguments.stand_ins {
        builder = builder.stand_ins(true);
    }
    let mut names = std::collections::BTreeSet::new();
    for user in &arguments.users {
        let (name, groups) = user.split_once('=').unwrap_or((user, ""));
        if !names.insert(name) {
            return Err(format!(
                "--user {user:?} names the user {name:?} a second time; write all of its groups in one --user"
            ));
        }
        if name.is_empty() {
            return Err(format!("--user {user:?} lacks a name; write NAME or NAME=GROUP,GROUP"));
        }
        let groups: Vec<&str> = groups.split(',').filter(|group| !group.is_empty()).collect();
        builder = builder.user(name, &groups);
    }
    if let Some(path) = &arguments.token_auth_file {
        let csv = read("the tokens", path)?;
        ApiServer::check_tokens(&csv).map_err(|error| format!("{}: {error}", path.display()))?;
        builder = builder.tokens(&csv);
    }
    if let Some(path) = &arguments.client_ca_file {
        builder = builder.client_authorities(&read("the client authorities", path)?);
    }
    Ok(builder)
}

/// Reads a time of the command line, which is not negative.
fn time(text: &str) -> Result<Duration, String> {
    let time: jiff::SignedDuration = text.parse().map_err(|error| format!("{error}"))?;
    Duration::try_from(time).map_err(|error| format!("{error}"))
}

/// Opens the audit log; a new file is readable by its owner only.
fn audit_log(path: &Path) -> Result<Box<dyn std::io::Write + Send>, String> {
    if path == Path::new("-") {
        return Ok(Box::new(std::io::stdout()));
    }
    let file = files::open(path, std::fs::OpenOptions::new().append(true).create(true));
    let file = file.map_err(|e| format!("cannot open the audit log {}: {e}", path.display()))?;
    Ok(Box::new(file))
}

/// Reads a file of the command line.
fn read(what: &str, path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read {what} {}: {error}", path.display()))
}

/// Writes a file that only its owner may read. Readers see the whole file or none.
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write;

    files::check(path)?;
    // The process id keeps two servers that write the same path from sharing a temporary file.
    let mut part = path.as_os_str().to_owned();
    part.push(format!(".{}.part", std::process::id()));
    let part = PathBuf::from(part);
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    // Set at creation: changed afterwards, other users could open the file in between.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options
        .open(&part)
        .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&part, path));
    if written.is_err() {
        // Best effort: the error of the write is reported instead.
        drop(std::fs::remove_file(&part));
    }
    written
}

/// Ctrl-C and SIGTERM, caught from the moment this value is made.
struct StopSignals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl StopSignals {
    #[cfg(unix)]
    fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Nothing to install: Ctrl-C is caught on first use.
    #[cfg(not(unix))]
    fn new() -> std::io::Result<Self> {
        Ok(Self {})
    }

    /// Waits for the first signal of either kind.
    #[cfg(unix)]
    async fn received(mut self) {
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// Waits for Ctrl-C.
    #[cfg(not(unix))]
    async fn received(self) {
        if let Err(error) = tokio::signal::ctrl_c().await {
            eprintln!("error: cannot wait for Ctrl-C: {error}");
        }
    }
}
