//! No cluster: the embedded API server, the sample, and what becomes of it.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::process::{ExitCode, Termination};
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::options::Options;
use super::tree::Tree;
use super::{Build, Sample, logging, program_name};
use crate::api::Api;
use crate::client::Client;
use crate::error::{Error, ErrorKind};
use crate::local::LocalCluster;
use crate::manager::{Running, first_signal, insist, install_all};
use crate::resource::{DynamicObject, ResourceExt};

const PAUSE: Duration = Duration::from_millis(100);

/// Runs the operator that `build` makes on a cluster of its own.
pub(super) async fn run(
    build: Build,
    sample: Option<Sample>,
    options: &Options,
) -> Result<ExitCode, Error> {
    if options.until_ready && sample.is_none() {
        let text = "--until-ready needs an object: give the program one by `App::sample`";
        return Err(Error::new(ErrorKind::Usage, text));
    }
    options.election.check()?;
    let prepared = async {
        let cluster = LocalCluster::start(&program_name()).await?;
        // What the flags ask for in vain is said before anything is shown.
        let manager = options.apply((build)(cluster.client().clone()).quiet())?;
        prepare(&cluster, sample.as_ref()).await?;
        Ok::<_, Error>((cluster, manager))
    };
    // A signal that comes before the manager listens ends the start, and leaves no file behind.
    let (cluster, manager) = tokio::select! {
        biased;
        () = first_signal() => return Ok(ExitCode::SUCCESS),
        prepared = prepared => prepared?,
    };
    let client = cluster.client().clone();
    if manager.signals {
        insist();
    }
    let running = manager.start();
    let code = match &sample {
        Some(sample) => show(&running, &client, sample, options).await?,
        None => ExitCode::SUCCESS,
    };
    if options.until_ready {
        running.stop();
    }
    let exit = running.join().await?;
    cluster.shutdown().await;
    Ok(if code == ExitCode::SUCCESS { exit.report() } else { code })
}

/// Tells of the API server and installs the sample's kind.
async fn prepare(cluster: &LocalCluster, sample: Option<&Sample>) -> Result<(), Error> {
    say(&welcome(cluster, sample));
    if let Some(sample) = sample {
        install_all(cluster.client(), std::slice::from_ref(&sample.definition)).await?;
    }
    Ok(())
}

fn welcome(cluster: &LocalCluster, sample: Option<&Sample>) -> String {
    let kubeconfig = cluster.kubeconfig().display();
    let mut text = format!(
        "No cluster is configured, so a Kubernetes API server runs inside this process.\n  \
         address     https://{}\n  kubeconfig  {kubeconfig}\n",
        cluster.addr()
    );
    if let Some(sample) = sample {
        let plural = &sample.info.plural;
        let _ = writeln!(text, "  try         kubectl --kubeconfig {kubeconfig} get {plural}");
    }
    text
}

/// Creates the sample and waits for it; prints the tree when it is ready.
async fn show(
    running: &Running,
    client: &Client,
    sample: &Sample,
    options: &Options,
) -> Result<ExitCode, Error> {
    let namespace = sample.object["metadata"]["namespace"].as_str().unwrap_or("default");
    let api: Api<DynamicObject> = client.dynamic(sample.info.clone(), Some(namespace));
    let object: DynamicObject = serde_json::from_value(sample.object.clone()).map_err(|error| {
        Error::new(ErrorKind::Usage, "the sample is no Kubernetes object").because(error)
    })?;
    api.create(&object).await?;
    let clock = client.seams().clock.clone();
    let began = clock.now();
    // Without --until-ready the wait ends with the operator.
    let limit = if options.until_ready { options.ready_timeout } else { Duration::MAX };
    let ended = CancellationToken::new();
    let wait = async {
        while running.is_running() && !ended.is_cancelled() {
            if is_ready(&api.get(object.name()).await?) {
                return Ok::<_, Error>(true);
            }
            clock.sleep(PAUSE).await;
        }
        Ok(false)
    };
    let ready = match limit {
        Duration::MAX => wait.await?,
        limit => clock.within(limit, wait).await.transpose()?.unwrap_or(false),
    };
    if !ready && !options.until_ready {
        return Ok(ExitCode::SUCCESS);
    }
    let colours = std::io::stdout().is_terminal() && logging::colours();
    let tree = Tree::gather(running, &api.get(object.name()).await?, &sample.info).await?;
    let elapsed = clock.now().saturating_duration_since(began).as_secs_f64();
    say(&format!("\n{}", tree.print(colours)));
    if ready {
        let hint = if options.until_ready { "" } else { " Ctrl-C stops." };
        say(&format!("Ready after {elapsed:.1} s.{hint}\n"));
        return Ok(ExitCode::SUCCESS);
    }
    let text = format!(
        "{} {:?} is not ready after {elapsed:.0} s: {}",
        sample.info.kind,
        object.name(),
        why_not(&api.get(object.name()).await?)
    );
    Err(Error::new(ErrorKind::Timeout, text))
}

fn ready_condition(object: &DynamicObject) -> Option<&Value> {
    let conditions = object.rest.get("status")?.get("conditions")?.as_array()?;
    conditions.iter().find(|condition| condition["type"] == "Ready")
}

/// `Ready` is true, for the present generation.
fn is_ready(object: &DynamicObject) -> bool {
    ready_condition(object).is_some_and(|ready| {
        let current = ready["observedGeneration"].as_i64().is_none_or(|g| g >= object.generation());
        ready["status"] == "True" && current
    })
}

fn why_not(object: &DynamicObject) -> String {
    match ready_condition(object) {
        None => "it has no condition Ready; look at the log above".to_owned(),
        Some(ready) => format!(
            "Ready is {}, {}: {}",
            ready["status"].as_str().unwrap_or("?"),
            ready["reason"].as_str().unwrap_or("without a reason"),
            ready["message"].as_str().unwrap_or_default()
        ),
    }
}

fn say(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}
