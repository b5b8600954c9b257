use clap::CommandFactory;

use super::*;
use windlass_runtime::manager::Runnable;

fn parse(arguments: &[&str]) -> Result<Options, clap::Error> {
    let arguments = std::iter::once("operator").chain(arguments.iter().copied());
    Options::from_arg_matches(&package::command(None).try_get_matches_from(arguments)?)
}

#[test]
fn addresses_are_written_as_controller_runtime_writes_them() {
    let options = parse(&["--health-probe-bind-address", ":9090", "--metrics-bind-address=0"]);
    let options = options.unwrap();
    assert_eq!(options.health_probe_bind_address, Some(Switch::At("[::]:9090".parse().unwrap())));
    assert_eq!(options.metrics_bind_address, Some(Switch::Off));
    assert!(parse(&["--metrics-bind-address", "nowhere"]).is_err());
}

#[test]
fn version_and_help_name_the_programs_package() {
    let package = Package::new("sites", "1.4.2", "Keeps websites running");
    let said = |flag: &str| {
        let matches = package::command(Some(package)).try_get_matches_from(["sites", flag]);
        let error = matches.unwrap_err();
        assert!(!error.use_stderr(), "{error}");
        error.to_string()
    };
    let version = said("--version");
    assert_eq!(version, "sites 1.4.2\n");
    assert_eq!(said("-V"), version);
    let help = said("--help");
    assert!(help.starts_with("Keeps websites running\n"), "{help}");
    assert!(help.contains("--version"), "{help}");
}

#[test]
fn a_program_without_a_package_still_has_a_version() {
    let matches = package::command(None).try_get_matches_from(["sites", "--version"]);
    let version = matches.unwrap_err().to_string();
    assert!(version.starts_with("operator built with windlass "), "{version}");
    let without_description = package::command(Some(Package::new("sites", "1.0.0", "")));
    let help = without_description.try_get_matches_from(["sites", "--help"]).unwrap_err();
    assert!(help.to_string().starts_with("A Kubernetes operator"), "{help}");
}

#[test]
fn leader_elect_is_a_switch_with_an_optional_value() {
    assert_eq!(parse(&[]).unwrap().election.leader_elect, None);
    assert_eq!(parse(&["--leader-elect"]).unwrap().election.leader_elect, Some(true));
    assert_eq!(parse(&["--leader-elect=false"]).unwrap().election.leader_elect, Some(false));
    assert_eq!(parse(&["--leader-elect", "run"]).unwrap().election.leader_elect, Some(true));
}

#[test]
fn flags_are_understood_before_and_after_the_command() {
    for arguments in [["manifests", "--leader-elect"], ["--leader-elect", "manifests"]] {
        let options = parse(&arguments).unwrap();
        assert!(matches!(options.command, Some(Command::Manifests(_))));
        assert_eq!(options.election.leader_elect, Some(true));
    }
}

#[test]
fn the_flags_of_zap_still_work() {
    let options = parse(&["--zap-log-level=debug", "--zap-encoder=json"]).unwrap();
    assert_eq!(options.log.log_level, Some(tracing::Level::DEBUG));
    assert_eq!(options.log.log_format, options::LogFormat::Json);
}

#[test]
fn flags_win_over_the_program() {
    let manager = || Manager::new(Client::offline()).leader_election("ops");
    let apply = |arguments: &[&str]| parse(arguments).unwrap().apply(manager()).unwrap();
    assert!(apply(&["--leader-elect=false"]).election.is_none());
    assert_eq!(apply(&["--leader-elect"]).election.unwrap().name, "ops");
    assert_eq!(apply(&["--watch-namespace=a, b,"]).namespaces, ["a", "b"]);
    let election = |argument| format!("{:?}", apply(&[argument]).election);
    assert!(election("--lend-lease").contains("asks: false, lends: true"));
    assert!(election("--ask-for-lease").contains("asks: true, lends: false"));
}

#[test]
fn durations_that_are_not_safe_together_are_refused_before_anything_is_started() {
    let manager = Manager::new(Client::offline()).leader_election("ops");
    let options = parse(&["--leader-elect-lease-duration=5s"]).unwrap();
    let refused = options.apply(manager).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Config);
    assert!(refused.to_string().contains("not set up safely"), "{refused}");
}

#[test]
fn an_election_is_named_and_timed_as_by_either_family_of_flags() {
    let manager = || Manager::new(Client::offline()).leader_election("ops");
    for arguments in [
        [
            "--leader-election-id=other",
            "--leader-election-namespace=kube-system",
            "--leader-election-lease-duration=1m",
            "--leader-election-renew-deadline=40s",
            "--leader-election-retry-period=1500ms",
        ],
        [
            "--leader-elect-resource-name=other",
            "--leader-elect-resource-namespace=kube-system",
            "--leader-elect-lease-duration=60s",
            "--leader-elect-renew-deadline=0m40s",
            "--leader-elect-retry-period=1.5s",
        ],
    ] {
        let manager = parse(&arguments).unwrap().apply(manager()).unwrap();
        assert_eq!(manager.display_name(), "ops", "the operator is still called so");
        let election = manager.election.unwrap();
        assert_eq!(election.name, "other");
        assert_eq!(election.namespace.as_deref(), Some("kube-system"));
        assert_eq!(election.timing().lease_duration.as_secs(), 60);
        assert_eq!(election.timing().renew_deadline.as_secs(), 40);
        assert_eq!(election.timing().retry_period.as_millis(), 1500);
    }
}

#[test]
fn credential_plugins_are_all_none_or_a_list() {
    use windlass_client::client::ExecPolicy;
    let policy = |said: &str| parse(&[&format!("--credential-plugins={said}")]);
    let said = |said| policy(said).unwrap().credential_plugins.unwrap();
    assert_eq!(said("all"), ExecPolicy::AllowAll);
    assert_eq!(said("none"), ExecPolicy::Deny);
    assert_eq!(said("aws, /opt/login"), ExecPolicy::allow_list(["aws", "/opt/login"]));
    for wrong in ["", ",", "aws,", " "] {
        assert!(policy(wrong).is_err(), "{wrong:?}");
    }
    assert_eq!(parse(&[]).unwrap().credential_plugins, None);
}

#[test]
fn durations_are_written_as_go_writes_them() {
    let timeout = |text: &str| {
        let flag = format!("--graceful-shutdown-timeout={text}");
        parse(&[&flag]).map(|options| options.graceful_shutdown_timeout.unwrap().as_millis())
    };
    assert_eq!(timeout("30").unwrap(), 30_000);
    assert_eq!(timeout("1m30s").unwrap(), 90_000);
    assert_eq!(timeout("500ms").unwrap(), 500);
    for wrong in ["", "fast", "5x", "s", "-1s", "9999999999999999999999h"] {
        assert!(timeout(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn flags_say_how_much_is_done_at_once_and_for_how_long_it_may_end() {
    let flags = ["--max-concurrent-reconciles=16", "--graceful-shutdown-timeout=40s"];
    let manager = parse(&flags).unwrap().apply(Manager::new(Client::offline())).unwrap();
    assert_eq!(manager.workers, Some(16));
    assert_eq!(manager.drain.as_secs(), 40);
    assert!(!manager.force_install);
    assert!(parse(&["--force-install"]).unwrap().apply(manager).unwrap().force_install);
    assert!(parse(&["--max-concurrent-reconciles=0"]).is_err());
    assert!(parse(&["--max-concurrent-reconciles=65537"]).is_err());
    let options = parse(&["--kube-api-qps=20", "--kube-api-burst=30"]).unwrap();
    assert_eq!((options.kube_api_qps, options.kube_api_burst), (Some(20.0), Some(30)));
    assert!(parse(&["--kube-api-qps=-1"]).is_err());
}

#[test]
fn a_recording_is_off_unless_a_flag_asks_for_it() {
    let manager = |flags: &[&str]| {
        let options = parse(flags).unwrap();
        format!("{:?}", options.apply(Manager::new(Client::offline())).unwrap())
    };
    assert!(manager(&[]).contains("recording: None"));
    let recorded = manager(&["--record=2m", "--record-memory=8"]);
    assert!(recorded.contains("time: 120s, bytes: 8388608"), "{recorded}");
    assert!(manager(&["--record=2m"]).contains("time: 120s, bytes: 67108864"));
    assert!(parse(&["--record-memory=8"]).is_err(), "it bounds nothing");
}

#[test]
fn the_limit_of_a_wait_that_was_not_asked_for_is_refused() {
    assert_eq!(parse(&["--until-ready"]).unwrap().ready_timeout.as_secs(), 60);
    let error = parse(&["--ready-timeout=5s"]).unwrap_err().to_string();
    assert!(error.contains("--until-ready"), "{error}");
}

#[test]
fn the_change_log_has_three_details() {
    for (text, detail) in [("off", "Off"), ("summary", "Summary"), ("full", "Full")] {
        let options = parse(&[&format!("--change-log={text}")]).unwrap();
        let manager = options.apply(Manager::new(Client::offline())).unwrap();
        assert!(format!("{manager:?}").contains(&format!("change_log: Some({detail})")));
    }
    assert!(parse(&["--change-log=all"]).unwrap_err().to_string().contains("off, summary or full"));
}

#[test]
fn a_plan_is_of_all_objects_or_of_named_ones() {
    let plan = |arguments: &[&str]| match parse(arguments).unwrap().command {
        Some(Command::Plan(plan)) => plan,
        command => panic!("{command:?}"),
    };
    let all = plan(&["plan"]);
    assert_eq!((all.kind, all.objects.len(), all.output), (None, 0, options::PlanOutput::Text));
    let some = plan(&["plan", "Widget", "shop/a", "shop/b", "-o", "json"]);
    assert_eq!(
        (some.kind.as_deref(), some.objects),
        (Some("Widget"), vec!["shop/a".to_owned(), "shop/b".to_owned()])
    );
    assert_eq!(some.output, options::PlanOutput::Json);
}

#[test]
fn what_zap_understands_is_understood_and_what_is_unsafe_to_ignore_is_refused() {
    let least = |flags: &[&str]| parse(flags).unwrap().log.least();
    assert_eq!(least(&["--zap-log-level=5"]), Some(tracing::Level::TRACE));
    assert_eq!(least(&["--zap-log-level=panic"]), Some(tracing::Level::ERROR));
    assert_eq!(least(&["--zap-devel"]), Some(tracing::Level::DEBUG));
    assert_eq!(least(&["--zap-stacktrace-level=panic", "--zap-time-encoding=iso8601"]), None);
    assert!(parse(&["--metrics-secure=false"]).is_ok());
    let error = parse(&["--metrics-secure"]).unwrap_err().to_string();
    assert!(error.contains("without TLS"), "{error}");
}

/// Flags that configure the operator, each in a single form; then those that do not concern a
/// container.
const SAID: [&str; 22] = [
    "--kube-api-qps=20.5",
    "--kube-api-burst=30",
    "--metrics-bind-address=127.0.0.1:9090",
    "--health-probe-bind-address=:9440",
    "--leader-elect=true",
    "--lend-lease",
    "--leader-election-id=other",
    "--leader-elect-resource-lock=configmapsleases",
    "--leader-election-namespace=kube-system",
    "--leader-elect-lease-duration=1m",
    "--leader-elect-renew-deadline=40s",
    "--leader-elect-retry-period=1500ms",
    "--max-concurrent-reconciles=16",
    "--graceful-shutdown-timeout=40s500us",
    "--force-install",
    "--change-log=summary",
    "--log-level=debug",
    "--log-format=json",
    "--zap-devel=true",
    "--watch-namespace=a,b",
    "--record=2m",
    "--record-memory=8",
];
const LOCAL: [&str; 10] = [
    "ask-for-lease",
    "credential-plugins",
    "help",
    "kubeconfig",
    "metrics-secure",
    "ready-timeout",
    "until-ready",
    "webhook-url",
    "zap-stacktrace-level",
    "zap-time-encoding",
];

#[test]
fn a_container_is_given_each_flag_that_its_manifests_were_printed_for() {
    for said in SAID {
        let mut flags = vec![said];
        // The flags that clap refuses alone.
        if said.starts_with("--kube-api-burst") {
            flags.push("--kube-api-qps=1");
        } else if said.starts_with("--record-memory") {
            flags.push("--record=2m");
        }
        let options = parse(&flags).unwrap();
        let given = options.arguments().unwrap();
        let mut again = parse(&given.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
        assert_eq!(again.log.least(), options.log.least(), "{said}: {given:?}");
        again.log.clone_from(&options.log);
        assert!(again.watch_namespace.is_empty(), "it is in the environment");
        again.watch_namespace.clone_from(&options.watch_namespace);
        assert_eq!(format!("{again:?}"), format!("{options:?}"), "{said}: {given:?}");
    }
    assert_eq!(parse(&[]).unwrap().arguments().unwrap(), [""; 0]);
    let off = parse(&["--metrics-bind-address=0", "--leader-elect=false"]).unwrap();
    assert_eq!(off.arguments().unwrap(), ["--leader-elect=false", "--metrics-bind-address=0"]);
}

#[test]
fn every_flag_is_either_given_to_the_container_or_a_matter_of_this_machine() {
    let command = Options::command();
    for flag in command.get_arguments().filter_map(clap::Arg::get_long) {
        let said = SAID.iter().any(|said| said[2..].split('=').next() == Some(flag));
        assert!(said != LOCAL.contains(&flag), "what becomes of --{flag} in `manifests`?");
    }
}

#[test]
fn the_url_of_webhooks_needs_a_server_of_webhooks_and_a_machine_outside_of_the_cluster() {
    let options = parse(&["--webhook-url=https://localhost:9443"]).unwrap();
    let refused = options.apply(Manager::new(Client::offline())).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Usage);
    assert!(refused.to_string().contains("the operator has none"), "{refused}");
    let server = Runnable::new("webhooks", |cx| async move {
        cx.stopped().await;
        Ok(())
    });
    let manager = options.apply(Manager::new(Client::offline()).runnable(server)).unwrap();
    assert_eq!(manager.webhook_access.unwrap().url, "https://localhost:9443");
    let refused = options.arguments().unwrap_err();
    assert!(refused.to_string().contains("through their Service"), "{refused}");
}

#[test]
fn flags_of_an_election_that_there_is_not_are_refused_and_asking_brings_one() {
    let apply = |flags: &[&str]| parse(flags).unwrap().apply(Manager::new(Client::offline()));
    let asking = apply(&["--ask-for-lease"]).unwrap();
    assert!(format!("{:?}", asking.election.unwrap()).contains("asks: true"));
    for flag in [
        "--lend-lease",
        "--leader-election-id=x",
        "--leader-elect-resource-lock=leases",
        "--leader-election-namespace=x",
        "--leader-elect-lease-duration=1m",
        "--leader-elect-renew-deadline=5s",
        "--leader-elect-retry-period=1s",
    ] {
        let error = apply(&[flag]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{flag}");
        let name = flag.split('=').next().unwrap();
        assert!(error.to_string().contains(name), "{error}");
    }
    let error = apply(&["--ask-for-lease", "--leader-elect=false"]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(apply(&["--leader-elect=false"]).unwrap().election.is_none());
}

#[test]
fn a_process_that_asks_does_not_lend() {
    let manager = |lends| {
        let election = windlass_runtime::leader::LeaderElection::new("ops").lend(lends);
        Manager::new(Client::offline()).leader_election_with(election)
    };
    let asking = parse(&["--ask-for-lease"]).unwrap().apply(manager(true)).unwrap();
    assert!(format!("{:?}", asking.election).contains("asks: true, lends: false"));
    let both = parse(&["--ask-for-lease", "--lend-lease"]).unwrap().apply(manager(false));
    assert_eq!(both.unwrap_err().kind(), ErrorKind::Usage);
    let error = parse(&["--ask-for-lease"]).unwrap().arguments().unwrap_err();
    assert!(error.to_string().contains("--lend-lease"), "{error}");
}

#[cfg(feature = "local")]
mod samples {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use k8s_openapi::api::core::v1::{Namespace, Secret};
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};
    use serde_json::{from_value, json};

    use super::*;
    use crate::cli::quickstart;
    use crate::prelude::*;

    #[derive(CustomResource, Clone, Debug)]
    #[resource(group = "samples.test.windlass.dev", version = "v1", namespaced)]
    struct Door {
        metadata: ObjectMeta,
        spec: Nothing,
        status: Option<Status>,
    }

    #[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
    struct Nothing {}

    #[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
    struct Status {
        conditions: Conditions,
    }

    /// Uses a key from a Secret, and counts the doors whose key is missing.
    #[derive(Controller)]
    #[controller(for = Door, can(get Secret))]
    struct Porter(Arc<AtomicUsize>);

    impl Reconciler for Porter {
        type Object = Door;

        async fn reconcile(&self, _: &Door, cx: &Context<Self>) -> Result {
            if cx.get_opt::<Secret>("key").await?.is_none() {
                self.0.fetch_add(1, Ordering::Relaxed);
                return Ok(Action::requeue_after(Duration::from_millis(10)));
            }
            cx.set_condition(met("Ready", "Open", "")).await?;
            Ok(Action::done())
        }
    }

    fn app(missed: &Arc<AtomicUsize>) -> App {
        let porter = Porter(Arc::clone(missed));
        App::new(move |client| Manager::new(client).controller(porter).without_signals())
    }

    fn door() -> Door {
        let mut door = Door::new("front", Nothing {});
        door.metadata.namespace = Some("house".to_owned());
        door
    }

    async fn run(app: App) -> Result<ExitCode, Error> {
        let options = parse(&["--until-ready", "--ready-timeout=30s"]).unwrap();
        let samples = app.samples.into_iter().map(|one| one.unwrap()).collect();
        let definitions = app.definitions.into_iter().map(|one| one.unwrap()).collect();
        quickstart::run(app.build, (samples, definitions), &options).await
    }

    #[tokio::test]
    async fn samples_of_any_kind_are_created_in_their_order_and_the_own_kind_is_waited_for() {
        let missed = Arc::default();
        let house: Namespace = from_value(json!({ "metadata": { "name": "house" } })).unwrap();
        let key = json!({ "metadata": { "name": "key", "namespace": "house" } });
        let app = app(&missed).definition::<Door>().sample(house);
        let app = app.sample(from_value::<Secret>(key).unwrap()).sample(door());
        assert_eq!(run(app).await.unwrap(), ExitCode::SUCCESS);
        assert_eq!(missed.load(Ordering::Relaxed), 0, "the key was there before the door");
    }

    #[tokio::test]
    async fn a_sample_whose_kind_nobody_defines_is_refused_with_what_to_do() {
        let app = app(&Arc::default()).sample(door());
        let refused = run(app).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Usage);
        assert!(refused.to_string().contains("--until-ready needs an object"), "{refused}");
        let app = self::app(&Arc::default()).definition::<Door>().sample(door());
        let refused = run(app).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Usage);
        for part in ["Door \"front\"", "App::definition", "its namespace"] {
            assert!(refused.to_string().contains(part), "{part:?} is not in {refused}");
        }
    }

    #[test]
    fn a_sample_without_a_namespace_is_of_the_default_one_and_says_its_type() {
        let secret: Secret = from_value(json!({ "metadata": { "name": "key" } })).unwrap();
        let sample = Sample::of(&secret).unwrap();
        assert_eq!(sample.object.metadata.namespace.as_deref(), Some("default"));
        assert_eq!(
            (sample.object.api_version.as_str(), sample.object.kind.as_str()),
            ("v1", "Secret")
        );
        let house: Namespace = from_value(json!({ "metadata": { "name": "house" } })).unwrap();
        assert_eq!(Sample::of(&house).unwrap().object.metadata.namespace, None);
    }
}

#[test]
fn manifests_are_printed_with_short_descriptions_or_compared() {
    let manifests = |arguments: &[&str]| match parse(arguments).unwrap().command {
        Some(Command::Manifests(manifests)) => manifests,
        command => panic!("{command:?}"),
    };
    assert_eq!(manifests(&["manifests", "--max-description", "80"]).max_description, Some(80));
    assert_eq!(manifests(&["manifests"]).max_description, None);
    let compared = manifests(&["manifests", "diff", "old.yaml", "--allow-ratcheted"]);
    let Some(options::ManifestsCommand::Diff(diff)) = compared.command else { panic!("no diff") };
    assert!(diff.allow_ratcheted && diff.old.ends_with("old.yaml"));
    assert!(parse(&["manifests", "diff"]).is_err(), "the old file is missing");
}

#[test]
fn an_operator_without_an_election_has_one_name_in_manifests_and_in_the_process() {
    let off = parse(&["--leader-elect=false"]).unwrap();
    let elected = Manager::new(Client::offline()).leader_election("site-operator");
    assert_eq!(off.apply(elected).unwrap().display_name(), "site-operator");
    let named = Manager::new(Client::offline()).name("ops").leader_election("site-operator");
    assert_eq!(off.apply(named).unwrap().display_name(), "ops");
    let plain = off.apply(Manager::new(Client::offline())).unwrap();
    assert_eq!(plain.display_name(), program_name());
}
