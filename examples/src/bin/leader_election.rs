//! Several processes, a single leader: client-go's `examples/leader-election`, with the articles'
//! times of 60, 15 and 5 seconds.
//!
//! ```text
//! cargo run --bin leader_election -- --id=one
//! ```
//!
//! Without a cluster this process serves a cluster, and prints the commands for two other
//! terminals: two rivals for a separate lease. Stop the leader with Ctrl-C, and the other process
//! leads at once. Kill the leader, and the other process leads when the lease has run out.
//!
//! With `--lend=true` a leader gives the lease to a process that was started with `--ask=true`, as
//! an operator in a cluster may to the process on a developer's machine, and leads again when that
//! process ends.

use std::process::ExitCode;
use std::time::Duration;

use windlass::client::{Client, ClientConfig};
use windlass::error::Error;
use windlass::leader::{
    ElectionOutcome, Elector, LeaderCallbacks, LeaderElection, LeaseGate, LockKind,
};
use windlass::local::LocalCluster;

use tokio_util::sync::CancellationToken;

/// The flags, by client-go's names.
struct Flags {
    id: Option<String>,
    name: String,
    namespace: String,
    lock: LockKind,
    /// Gives the lease to a process that asks for it.
    lend: bool,
    /// Asks the holder for the lease.
    ask: bool,
    /// Divides all durations; for the impatient and for tests.
    hurry: u32,
}

impl Flags {
    const USAGE: &str = "flags: --id=NAME --lease-lock-name=example --lease-lock-namespace=default \
                         --resource-lock=leases --lend=false --ask=false --hurry=1";

    fn parse(args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut flags = Self {
            id: None,
            name: "example".to_owned(),
            namespace: "default".to_owned(),
            lock: LockKind::Leases,
            lend: false,
            ask: false,
            hurry: 1,
        };
        for arg in args {
            let (flag, value) = arg.split_once('=').ok_or_else(|| Self::USAGE.to_owned())?;
            match flag {
                "--id" => flags.id = Some(value.to_owned()),
                "--lease-lock-name" => flags.name = value.to_owned(),
                "--lease-lock-namespace" => flags.namespace = value.to_owned(),
                "--resource-lock" => {
                    flags.lock = value.parse().map_err(|e: Error| e.to_string())?
                }
                "--lend" | "--ask" => {
                    let on = value.parse().map_err(|_| format!("{flag} is true or false"))?;
                    *(if flag == "--lend" { &mut flags.lend } else { &mut flags.ask }) = on;
                }
                "--hurry" => {
                    // A Lease holds whole seconds.
                    let fits = |factor: &u32| (1..=15).contains(factor) && 60 % factor == 0;
                    let factor = value.parse().ok().filter(fits);
                    flags.hurry = factor.ok_or("--hurry divides 60 and is at most 15")?;
                }
                _ => return Err(Self::USAGE.to_owned()),
            }
        }
        Ok(flags)
    }

    fn election(&self) -> LeaderElection {
        let seconds = |seconds: u64| Duration::from_secs(seconds) / self.hurry;
        // 60 / 15 / 5 s are the times of the articles.
        let election = LeaderElection::new(&self.name)
            .namespace(&self.namespace)
            .resource_lock(self.lock)
            .lease_duration(seconds(60))
            .renew_deadline(seconds(15))
            .retry_period(seconds(5))
            .release_on_cancel(true)
            .lend(self.lend)
            .ask(self.ask);
        match &self.id {
            Some(id) => election.identity(id),
            None => election,
        }
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(ElectionOutcome::Lost | ElectionOutcome::CutShort | ElectionOutcome::Failed) => {
            ExitCode::FAILURE
        }
        Ok(_) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("{text}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<ElectionOutcome, String> {
    // Warnings give the reason why the process cannot lead.
    let lines = tracing_subscriber::fmt().with_writer(std::io::stderr);
    lines.with_max_level(tracing_subscriber::filter::LevelFilter::WARN).init();
    let flags = Flags::parse(std::env::args().skip(1))?;
    let (client, _cluster) = connect().await.map_err(|error| error.to_string())?;
    let elector = Elector::new(flags.election(), &client).map_err(|error| error.to_string())?;
    let id = elector.identity().to_owned();
    println!("{id}: waiting to lead");

    let stop = CancellationToken::new();
    let signal = tokio::spawn({
        let stop = stop.clone();
        async move {
            let _ = tokio::signal::ctrl_c().await;
            stop.cancel();
        }
    });
    let outcome = loop {
        let outcome = elector.run(callbacks(&id), &stop).await;
        if outcome != ElectionOutcome::Lent {
            break outcome;
        }
        println!("{id}: lent the lease, waiting to lead again");
    };
    signal.abort();
    Ok(outcome)
}

/// Returns the callbacks of this process, which print the course of the election.
fn callbacks(id: &str) -> LeaderCallbacks {
    let [started, stopped, new_leader] = [id, id, id].map(str::to_owned);
    LeaderCallbacks::new(
        async move |gate: LeaseGate, stop: CancellationToken| {
            println!("{started}: started leading, the lease is valid for {:?}", gate.validity());
            stop.cancelled().await;
        },
        move || println!("{stopped}: stopped leading"),
    )
    .new_leader(move |leader| {
        let leader_name = if leader == new_leader { "this process" } else { leader };
        println!("{new_leader}: new leader: {leader_name}");
    })
}

/// Connects to the configured cluster, or to a local cluster.
async fn connect() -> Result<(Client, Option<LocalCluster>), Error> {
    if let Some(config) = ClientConfig::find()? {
        return Ok((Client::builder().config(config).build()?, None));
    }
    let cluster = LocalCluster::start("leader-election").await?;
    let path = cluster.kubeconfig().display();
    println!("no cluster is configured, so this process serves one; start two rivals with");
    for id in ["one", "two"] {
        let program = "cargo run --bin leader_election -- --lease-lock-name=rivals";
        println!("  KUBECONFIG={path} {program} --id={id}");
    }
    Ok((cluster.client().clone(), Some(cluster)))
}
