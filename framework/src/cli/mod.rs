//! Command line of an operator: `run`, `plan`, `shadow`, `migrate`, `manifests`, `manifests diff`,
//! and the usual flags.
//!
//! Every operator needs the same main: read a kubeconfig, set up logging, run, print manifests. An
//! [`App`] is that main; flags and environment variables have controller-runtime's names. Without a
//! configured cluster, and with the feature `local`, the `App` starts the embedded API server,
//! creates the samples and shows their state. A configured cluster, even a wrong cluster, is never
//! replaced by the embedded server.
//!
//! ```no_run
//! use windlass::{client::Client, manager::Manager};
//!
//! fn operator(client: Client) -> Manager {
//!     Manager::new(client).leader_election("website-operator")
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     windlass::cli::main(operator)
//! }
//! ```

mod arguments;
mod diff;
mod escape;
mod import;
mod logging;
mod migrate;
mod options;
mod package;
mod plan;
#[cfg(feature = "local")]
mod quickstart;
mod sample;
#[cfg(feature = "local")]
mod show;
#[cfg(feature = "local")]
mod tree;

use std::error::Error as _;
use std::fmt;
use std::io::Write;
use std::process::{ExitCode, Termination};

use clap::FromArgMatches;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use escape::indented;
#[doc(hidden)]
pub use import::main as tool_main;
pub use import::{ImportOptions, ImportOutput, import_definitions};
use options::{Command, Election, Options, Switch};
pub use package::Package;
use sample::Sample;
use windlass_client::client::{Client, ClientConfig};
use windlass_core::crd::CustomResource;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::FullObject;
use windlass_runtime::leader::LeaderElection;
use windlass_runtime::manager::{
    Manager, ManifestOptions, RecordingOptions, WebhookAccess, definition_of,
    exit_at_second_signal, exit_code, serves_webhooks,
};

/// Creates the operator for a client.
type Build = Box<dyn FnOnce(Client) -> Manager>;

/// Runs the command line of the operator that `build` creates for a client.
///
/// An [`App`] has further settings: a [sample](App::sample), and for `--version` and `--help` a
/// [package](App::package).
///
/// ```no_run
/// use windlass::{client::Client, manager::Manager};
///
/// fn main() -> std::process::ExitCode {
///     windlass::cli::main(|client: Client| Manager::new(client))
/// }
/// ```
pub fn main(build: impl FnOnce(Client) -> Manager + 'static) -> ExitCode {
    App::new(build).main()
}

/// An operator as a program.
///
/// `manifests diff OLD.yaml` compares the definitions with older definitions and prints each change
/// with the consequence. Exit code 0: all changes are compatible; 2: a change breaks stored objects
/// or clients; any other code: an error.
///
/// `plan [KIND NAMESPACE/NAME…]` prints the changes that a run would make ([`Manager::plan`]),
/// `--output=json` as JSON. Exit code 0: none; 2: there are changes; 1: an error, also of a single
/// object. `shadow` runs beside a running operator, writes nothing, and reports lasting differences
/// ([`Manager::shadow`]).
///
/// `migrate` stores all objects of the operator's kinds in their storage versions
/// ([`StorageMigration`](windlass_runtime::manager::StorageMigration)).
///
/// | step | `run` | `plan`, `shadow` | `manifests` |
/// |---|---|---|---|
/// | flags are parsed | yes | yes | yes |
/// | a kubeconfig is read | yes | yes, and needed | no |
/// | `build` is called | with a client of the cluster | with one that makes dry runs only | with a client without a server |
/// | definitions of `definition` | installed on an embedded server only | left out | printed |
/// | samples | created on an embedded server only | left out | left out |
#[must_use = "call `main`"]
pub struct App {
    /// Creates the operator for a client.
    build: Build,
    /// Package of the program; `None` without a named package.
    package: Option<Package>,
    /// Objects to create on the embedded server, in their order.
    samples: Vec<Result<Sample, Error>>,
    /// Definitions of kinds that the operator does not install.
    definitions: Vec<Result<CustomResourceDefinition, Error>>,
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").field("samples", &self.samples).finish_non_exhaustive()
    }
}

impl App {
    /// Creates the program of the operator that `build` creates for a client. `build` must not send
    /// requests: `manifests` calls it without a cluster.
    ///
    /// `build` is called once, after the flags were parsed.
    pub fn new(build: impl FnOnce(Client) -> Manager + 'static) -> Self {
        let (samples, definitions) = (Vec::new(), Vec::new());
        Self { build: Box::new(build), package: None, samples, definitions }
    }

    /// Name, version and description of the program's package, for `--version` and `--help`. Write
    /// `.package(windlass::package!())`. Default: both flags name windlass only.
    pub fn package(mut self, package: Package) -> Self {
        self.package = Some(package);
        self
    }

    /// Adds an object to create on the embedded server, of any kind: a kind of the operator, or a
    /// Secret that the operator needs.
    ///
    /// Several samples are created in the order of the calls, in the namespace `default` unless
    /// they name one. The quickstart shows the objects of all kinds that the operator
    /// [installs](Manager::install) and the objects that they own, and waits until the samples of
    /// those kinds are `Ready`, if the kind has a status.
    ///
    /// ```no_run
    /// # use windlass::{cli::App, client::Client, manager::Manager};
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// # fn operator(client: Client) -> Manager { Manager::new(client) }
    /// # fn example(token: Secret, site: ConfigMap) -> std::process::ExitCode {
    /// App::new(operator).sample(token).sample(site).main()
    /// # }
    /// ```
    pub fn sample<K: FullObject>(mut self, sample: K) -> Self {
        self.samples.push(Sample::of(&sample));
        self
    }

    /// Adds the definition of a kind that the operator does not [install](Manager::install): the
    /// definition is printed with the manifests, and installed on the embedded server.
    pub fn definition<K: CustomResource>(mut self) -> Self {
        self.definitions.push(definition_of::<K>());
        self
    }

    /// Parses the command line and executes the command; errors are printed. The exit code is that
    /// of [`Exit`](windlass_runtime::manager::Exit) or [`exit_code`].
    pub fn main(self) -> ExitCode {
        let parsed = package::command(self.package)
            .try_get_matches()
            .and_then(|matches| Options::from_arg_matches(&matches));
        let options = match parsed {
            Ok(options) => options,
            Err(error) => {
                let _ = error.print();
                // Help was requested, or the usage is wrong: `exit_code` has 64 for that.
                return if error.use_stderr() { ExitCode::from(64) } else { ExitCode::SUCCESS };
            }
        };
        let is_plan = matches!(options.command, Some(Command::Plan(_)));
        match self.execute(options) {
            Ok(code) => code,
            Err(error) => {
                let mut text = format!("error: {}", indented(&error));
                let mut cause = error.source();
                while let Some(source) = cause {
                    text.push_str(&format!("\n  because: {}", indented(source)));
                    cause = source.source();
                }
                let _ = writeln!(std::io::stderr(), "{text}");
                // Other numbers than those of `run`: 2 means changes.
                ExitCode::from(if is_plan { plan::FAILED } else { exit_code(&error) })
            }
        }
    }

    /// Prints manifests, or runs the operator on a new runtime.
    fn execute(self, options: Options) -> Result<ExitCode, Error> {
        if let Some(Command::Manifests(wanted)) = &options.command {
            return self.print_manifests(&options, wanted);
        }
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|error| {
            Error::new(ErrorKind::Other, "cannot start the tokio runtime").because(error)
        })?;
        let outcome = runtime.block_on(self.run(options));
        // A drop would wait without a limit for tasks that block a thread.
        runtime.shutdown_background();
        outcome
    }

    /// Runs the operator on the configured cluster, or on the embedded API server without a
    /// configured cluster; or plans on the configured cluster.
    async fn run(self, mut options: Options) -> Result<ExitCode, Error> {
        let config = match &options.kubeconfig {
            Some(path) => Some(ClientConfig::from_file(path, None)?),
            None => ClientConfig::find()?,
        };
        let Some(mut config) = config else {
            match options.command {
                Some(Command::Plan(_) | Command::Shadow(_)) => return Err(plan::no_cluster()),
                Some(Command::Migrate) => return Err(migrate::no_cluster()),
                _ => {}
            }
            return Box::pin(self.run_without_cluster(options)).await;
        };
        if let Some(policy) = &options.credential_plugins {
            config = config.with_exec_policy(policy.clone());
        }
        if options.until_ready {
            let text = "--until-ready shows the sample on the embedded API server, but a cluster is \
                        configured; unset KUBECONFIG, or watch the object with kubectl";
            return Err(Error::new(ErrorKind::Usage, text));
        }
        if matches!(options.command, Some(Command::Plan(_))) {
            // The plan is the output: a line about each reconcile would hide the plan.
            options.log.log_level.get_or_insert(tracing::Level::WARN);
        }
        logging::start(&options, false);
        tracing::info!(
            server = %config.server(),
            origin = config.origin(),
            "the operator uses this cluster"
        );
        let mut builder = Client::builder().config(config);
        if let Some(qps) = options.kube_api_qps {
            builder = builder.qps(qps);
        }
        if let Some(burst) = options.kube_api_burst {
            builder = builder.burst(burst);
        }
        let client = builder.build()?;
        if let Some(Command::Plan(arguments)) = &options.command {
            // Before the program gets the client: reconcilers may keep clones of it.
            let manager = options.apply((self.build)(client.dry_run()))?;
            return plan::run(manager, arguments).await;
        }
        if matches!(options.command, Some(Command::Migrate)) {
            let manager = options.apply((self.build)(client.clone()))?;
            return migrate::run(manager, &client, self.definitions).await;
        }
        let manager = match &options.command {
            Some(Command::Shadow(arguments)) => {
                let manager = options.apply((self.build)(client.dry_run()))?;
                manager.shadow(arguments.settle_time)
            }
            _ => options.apply((self.build)(client))?,
        };
        // A second signal ends the process, even if a reconcile blocks a thread.
        if manager.signals {
            exit_at_second_signal();
        }
        Ok(manager.run().await?.report())
    }

    /// Runs the operator on an embedded API server.
    #[cfg(feature = "local")]
    async fn run_without_cluster(self, options: Options) -> Result<ExitCode, Error> {
        logging::start(&options, true);
        let samples = self.samples.into_iter().collect::<Result<_, _>>()?;
        let definitions = self.definitions.into_iter().collect::<Result<_, _>>()?;
        quickstart::run(self.build, (samples, definitions), &options).await
    }

    /// Returns the error of a build without an embedded API server.
    #[cfg(not(feature = "local"))]
    async fn run_without_cluster(self, _: Options) -> Result<ExitCode, Error> {
        let text = "no cluster is configured: set KUBECONFIG, write ~/.kube/config, or run in a Pod \
                    (this build has no embedded API server; the feature `local` adds it)";
        Err(Error::new(ErrorKind::Config, text))
    }

    /// Prints the manifests of the operator under these flags, or the changes of the definitions.
    fn print_manifests(
        self,
        options: &Options,
        wanted: &options::Manifests,
    ) -> Result<ExitCode, Error> {
        let built = (self.build)(Client::offline());
        let had_an_election = built.election.is_some();
        let mut manager = options.apply(built)?;
        for definition in self.definitions {
            // Kinds that the operator does not install are part of the manifests nevertheless.
            manager = manager.describes(definition?);
        }
        let mut manifest_options = ManifestOptions::default();
        manifest_options.namespace.clone_from(&wanted.namespace);
        manifest_options.image.clone_from(&wanted.image);
        manifest_options.namespaced = wanted.namespaced;
        manifest_options.max_description = wanted.max_description;
        let definitions = manager.printed_definitions(&manifest_options)?;
        if let Some(options::ManifestsCommand::Diff(diff)) = &wanted.command {
            return diff::run(diff, &definitions);
        }
        // The manifests describe the operator under these flags: the container needs the same
        // flags.
        manifest_options.args = options.arguments()?;
        let is_unnamed = !had_an_election && options.election.leader_election_id.is_none();
        if let Some(election) = manager.election.as_ref().filter(|_| is_unnamed) {
            // The program in the container may have another name than this program.
            manifest_options.args.push(format!("--leader-election-id={}", election.name));
        }
        let text = manager.manifests(&manifest_options)?;
        diff::warn_of_size(&definitions);
        // A closed pipe (`| head`) is no failure.
        let _ = std::io::stdout().write_all(text.as_bytes());
        Ok(ExitCode::SUCCESS)
    }
}

/// Name of the binary, as a valid object name.
fn program_name() -> String {
    let path = std::env::current_exe().unwrap_or_default();
    let name = path.file_stem().map(|name| name.to_string_lossy().to_lowercase().replace('_', "-"));
    name.unwrap_or_else(|| "operator".to_owned())
}

impl Options {
    /// Overrides the program's settings with the flags and the environment.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for flags of an election or of webhooks that do not exist;
    /// [`ErrorKind::Config`] for an election that is not safe.
    fn apply(&self, mut manager: Manager) -> Result<Manager, Error> {
        if let Some(switch) = self.health_probe_bind_address {
            manager = match switch {
                Switch::At(addr) => manager.health(addr),
                Switch::Off => manager.without_health(),
            };
        }
        if let Some(switch) = self.metrics_bind_address {
            manager = match switch {
                Switch::At(addr) => manager.metrics(addr),
                Switch::Off => manager.without_metrics(),
            };
        }
        manager = self.election.apply(manager)?;
        // Objects of the cluster have the name, such as the Secret of the webhooks' certificates:
        // the same in the manifests and in the process.
        if manager.name.is_none() && manager.election.is_none() {
            manager = manager.name(program_name());
        }
        if let Some(workers) = self.max_concurrent_reconciles {
            manager = manager.max_concurrent_reconciles(workers);
        }
        if let Some(limit) = self.graceful_shutdown_timeout {
            manager = manager.drain(limit);
        }
        if self.force_install {
            manager = manager.force_install();
        }
        if let Some(detail) = self.change_log {
            manager = manager.change_log(detail);
        }
        if let Some(time) = self.record {
            let options = RecordingOptions::default().time(time);
            let memory = self.record_memory.map(|mebibytes| usize::from(mebibytes) << 20);
            manager = manager.recording(memory.map_or(options, |bytes| options.bytes(bytes)));
        }
        let namespaces: Vec<&str> = self
            .watch_namespace
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .collect();
        if !namespaces.is_empty() {
            manager = manager.namespaces(namespaces);
        }
        if let Some(url) = &self.webhook_url {
            if !serves_webhooks(&manager) {
                let text = "--webhook-url needs webhooks or admission policies, and the operator has none: give its \
                            manager a `WebhookServer` or `AdmissionPolicies`";
                return Err(Error::new(ErrorKind::Usage, text));
            }
            manager.webhook_access = Some(WebhookAccess::at(url));
        }
        manager.election.as_ref().map_or(Ok(()), LeaderElection::check)?;
        Ok(manager)
    }
}

impl Election {
    /// Overrides the election's settings, or adds or removes the election.
    fn apply(&self, mut manager: Manager) -> Result<Manager, Error> {
        self.check()?;
        match self.leader_elect {
            // The flag wins over the program: the same binary runs with and without replicas. The
            // operator keeps the name that it has by the lease.
            Some(false) => {
                let named = manager.election.as_ref().filter(|_| manager.name.is_none());
                if let Some(name) = named.map(|election| election.name.clone()) {
                    manager = manager.name(name);
                }
                manager = manager.without_leader_election();
            }
            // A process that asks for a lease must not work without one.
            elect if manager.election.is_none() && (elect.is_some() || self.ask_for_lease) => {
                let lease = manager.name.clone().unwrap_or_else(program_name);
                manager = manager.leader_election(lease);
            }
            _ => {}
        }
        let Some(mut settings) = manager.election.take() else {
            return self.needs_an_election().map(|()| manager);
        };
        if let Some(lease) = &self.leader_election_id {
            // The operator keeps the name that came from the lease.
            manager.name.get_or_insert_with(|| settings.name.clone());
            settings.name.clone_from(lease);
        }
        if let Some(lock) = self.leader_elect_resource_lock {
            settings = settings.resource_lock(lock);
        }
        if let Some(namespace) = &self.leader_election_namespace {
            settings = settings.namespace(namespace);
        }
        if let Some(duration) = self.leader_elect_lease_duration {
            settings = settings.lease_duration(duration);
        }
        if let Some(duration) = self.leader_elect_renew_deadline {
            settings = settings.renew_deadline(duration);
        }
        if let Some(duration) = self.leader_elect_retry_period {
            settings = settings.retry_period(duration);
        }
        if self.lend_lease {
            settings = settings.lend(true);
        }
        if self.ask_for_lease {
            // Also if the program lends: two replicas that both lend and ask would pass the lease
            // on for ever.
            settings = settings.ask(true).lend(false);
        }
        Ok(manager.leader_election_with(settings))
    }

    /// Refuses flags that exclude each other.
    fn check(&self) -> Result<(), Error> {
        if self.ask_for_lease && self.lend_lease {
            let text = "--ask-for-lease and --lend-lease exclude each other: the process on your \
                        machine asks, the one in the cluster lends";
            return Err(Error::new(ErrorKind::Usage, text));
        }
        if self.leader_elect == Some(false) { self.needs_an_election() } else { Ok(()) }
    }

    /// Refuses every flag that has no effect without an election.
    fn needs_an_election(&self) -> Result<(), Error> {
        let given = [
            ("--ask-for-lease", self.ask_for_lease),
            ("--lend-lease", self.lend_lease),
            ("--leader-election-id", self.leader_election_id.is_some()),
            ("--leader-elect-resource-lock", self.leader_elect_resource_lock.is_some()),
            ("--leader-election-namespace", self.leader_election_namespace.is_some()),
            ("--leader-elect-lease-duration", self.leader_elect_lease_duration.is_some()),
            ("--leader-elect-renew-deadline", self.leader_elect_renew_deadline.is_some()),
            ("--leader-elect-retry-period", self.leader_elect_retry_period.is_some()),
        ];
        let given = given.iter().filter(|(_, is_given)| *is_given);
        let names: Vec<&str> = given.map(|(name, _)| *name).collect();
        if names.is_empty() {
            return Ok(());
        }
        let text = format!(
            "{} cannot be followed without a leader election: every replica would work at once; \
             add --leader-elect, or leave it out",
            names.join(", ")
        );
        Err(Error::new(ErrorKind::Usage, text))
    }
}

#[cfg(test)]
mod tests;
