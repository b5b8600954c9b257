//! Quickstart without a cluster: the embedded API server, the samples, and their progress.

// DESIGN.md, 90: The quickstart takes definitions from `install`, and samples are objects of any

use std::fmt::Write as _;
use std::process::{ExitCode, Termination};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use super::options::Options;
use super::sample::Sample;
use super::show::{Show, becomes_ready, create, print_text};
use super::{Build, program_name};
use crate::local::LocalCluster;
use windlass_core::error::{Error, ErrorKind};
use windlass_runtime::manager::{
    Manager, Running, exit_at_second_signal, first_signal, install_all,
};

/// Parts of the program: sample objects, and definitions that the operator does not install.
pub(super) type ProgramParts = (Vec<Sample>, Vec<CustomResourceDefinition>);

/// Runs the operator that `build` creates, on a cluster of its own.
///
/// A signal during the start is a successful end. The result of the operator precedes failures of
/// the output.
pub(super) async fn run(
    build: Build,
    (samples, mut definitions): ProgramParts,
    options: &Options,
) -> Result<ExitCode, Error> {
    options.election.check()?;
    let prepared = async {
        let cluster = LocalCluster::start(&program_name()).await?;
        // Errors in the flags are reported before anything is shown.
        let mut manager = options.apply((build)(cluster.client().clone()).on_free_ports())?;
        // With a URL of the command line the server asks there, as a cluster does.
        if manager.webhook_access.is_none() {
            cluster.ask_webhooks_of(&mut manager);
        }
        definitions.extend(manager.definitions.iter().flatten().cloned());
        if options.until_ready && !samples.iter().any(|one| becomes_ready(one, &definitions)) {
            let text = "--until-ready needs an object that can become ready: give the program one of a \
                        kind that it installs, with a status, by `App::sample`";
            return Err(Error::new(ErrorKind::Usage, text));
        }
        // The operator installs them again, under its lease. Only those requests are shown: the
        // requests of a routine client are left out.
        install_all(&cluster.client().routine(), &definitions, false).await?;
        Ok::<_, Error>((cluster, manager))
    };
    // A signal before the manager listens ends the start. Dropping the cluster removes its file.
    let (cluster, manager) = tokio::select! {
        biased;
        () = first_signal() => return Ok(ExitCode::SUCCESS),
        prepared = prepared => prepared?,
    };
    if manager.signals {
        exit_at_second_signal();
    }
    run_operator(manager, cluster, (&samples, &definitions), options).await
}

/// Runs the operator from its start to its end. After any end it is stopped in order: the lease is
/// given back, and no work is dropped in the middle.
async fn run_operator(
    manager: Manager,
    cluster: LocalCluster,
    (samples, definitions): (&[Sample], &[CustomResourceDefinition]),
    options: &Options,
) -> Result<ExitCode, Error> {
    let running = manager.start();
    let footer = commands(&cluster, definitions);
    let awaited = samples.iter().filter(|one| becomes_ready(one, definitions)).collect();
    let mut show = Show::new(&running, definitions, awaited, footer);
    let outcome = async {
        // First of all, so that the addresses are there even if a sample is refused.
        print_text(&welcome(&cluster, definitions, &running).await);
        create(cluster.client(), samples).await?;
        watch(&mut show, options).await
    };
    let outcome = outcome.await;
    // Otherwise the operator ends by a signal or by itself, and is joined below.
    if options.until_ready || outcome.is_err() {
        running.stop();
    }
    let exit = running.join().await;
    cluster.shutdown().await;
    // The operator's own failure comes first: it explains the others.
    let exit = exit?;
    outcome?;
    Ok(exit.report())
}

/// Shows the samples until they are ready, or until the operator ends.
///
/// With `--until-ready` the limit ends it with a `Timeout` error that has the reason; otherwise
/// there is no limit.
async fn watch(show: &mut Show<'_>, options: &Options) -> Result<(), Error> {
    if !options.until_ready {
        if show.until_ready(true).await? {
            show.follow().await;
        }
        return Ok(());
    }
    // Only with `--until-ready`, as in a script; a person ends the program by a signal.
    let limit = options.ready_timeout;
    let is_ready = show.clock().timeout(limit, show.until_ready(false)).await.transpose()?;
    if is_ready == Some(true) {
        return Ok(());
    }
    // Trees first: a sample that becomes ready in between is shown twice, and never called unready
    // below a tree that says it is ready.
    show.show("").await?;
    let Some(why) = show.why_not().await? else { return show.ready("").await };
    let text = format!("not ready after {limit:?}: {why}");
    Err(Error::new(ErrorKind::Timeout, text))
}

/// The introduction: all addresses in one block, once the operator's servers are open.
///
/// The addresses of metrics and of the debug pages are left out if the manager serves none.
async fn welcome(
    cluster: &LocalCluster,
    definitions: &[CustomResourceDefinition],
    running: &Running,
) -> String {
    let mut text = format!(
        "No cluster is configured, so a Kubernetes API server runs inside this process.\n  \
         address     https://{}\n  kubeconfig  {}\n",
        cluster.addr(),
        cluster.kubeconfig().display(),
    );
    // The ports are free ones of the moment: they are known once the servers listen.
    if let Some(addr) = running.metrics_addr().await {
        let _ = writeln!(text, "  metrics     http://{addr}/metrics");
    }
    if let Some(addr) = running.debug_addr().await {
        let _ = writeln!(text, "  debug       http://{addr}/debug");
    }
    let _ = writeln!(text, "  try         {}\n", commands(cluster, definitions));
    text
}

/// The command to try in another terminal.
///
/// It names the kinds of the definitions, or `all` when there are none.
fn commands(cluster: &LocalCluster, definitions: &[CustomResourceDefinition]) -> String {
    format!(
        "kubectl --kubeconfig {} get {}",
        cluster.kubeconfig().display(),
        resources(definitions)
    )
}

/// Returns the resources with their groups: kubectl takes a plural alone for that of a built-in
/// kind.
fn resources(definitions: &[CustomResourceDefinition]) -> String {
    let names: Vec<String> = definitions
        .iter()
        .map(|definition| format!("{}.{}", definition.spec.names.plural, definition.spec.group))
        .collect();
    if names.is_empty() { "all".to_owned() } else { names.join(",") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resources_to_try_have_their_groups() {
        let mut definition = CustomResourceDefinition::default();
        definition.spec.names.plural = "cronjobs".to_owned();
        definition.spec.group = "example.dev".to_owned();
        let mut other = definition.clone();
        other.spec.names.plural = "runs".to_owned();
        assert_eq!(resources(&[]), "all");
        assert_eq!(resources(&[definition, other]), "cronjobs.example.dev,runs.example.dev");
    }
}
