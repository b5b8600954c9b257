//! Installation of custom resource definitions: makes an API server serve them, and waits for that.
//!
//! A definition is only written when the stored one differs, and never over a definition of a newer
//! version of the program: a process of the old version that starts once more, in the middle of a
//! roll-out, would take away fields that the new version uses, and the API server would prune them
//! from every object that is written. Definitions carry the program's version in an annotation for
//! that.
//!
//! A definition that others manage too (`foreign.rs`) is only replaced if the replacement loses no
//! part. Otherwise the stored definition stays, and the program works by that definition if all
//! versions that it needs are served.

// DESIGN.md, 11: Only the Lease, its Events and dry runs bypass the write gate
// DESIGN.md, 36: A definition of a newer program version is not replaced

mod compare;
#[cfg(test)]
mod tests;

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use tracing::{debug, info, warn};

use self::compare::{has_versions_of, is_newer, is_same, served, served_versions, version_of};
use super::foreign;
use windlass_client::api::Api;
use windlass_client::client::Client;
use windlass_core::crd::CustomResource;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::ResourceExt;

/// Longest time from the first try until everything is served.
const LIMIT: Duration = Duration::from_secs(60);
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// Annotation with the version of the package that declares the kind.
const VERSION: &str = "windlass.dev/version";

/// Returns the definition of `K`, with the version of the program.
pub fn definition_of<K: CustomResource>() -> Result<CustomResourceDefinition, Error> {
    let mut definition = K::crd()?;
    if let Some(version) = K::package_version() {
        let annotations = definition.metadata.annotations.get_or_insert_default();
        annotations.insert(VERSION.to_owned(), version.to_owned());
    }
    Ok(definition)
}

/// A definition of others that was not replaced, though this program's own differs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub struct KeptDefinition {
    /// Name of the definition.
    pub(crate) name: String,
    /// The losses, the fields that this program misses, and the remedy.
    #[doc(hidden)]
    pub text: String,
}

/// Result of [`check_definitions`].
#[derive(Debug, Default)]
pub(super) struct DefinitionCheck {
    /// Whether the kinds of all definitions are served, in every version that they have.
    pub(super) are_served: bool,
    pub(super) kept: Vec<KeptDefinition>,
}

/// Checks whether the kinds of all definitions are served, in every version. Writes nothing, but
/// sends the definitions that the leader would write as a dry run: a version of the program whose
/// definition is refused must not replace a working one. An API server that does not answer counts
/// as serving none.
///
/// # Errors
/// The definitions may not be read, and discovery does not show them; the API server would refuse a
/// definition; others manage a definition that would lose a part and does not serve the versions
/// that this program needs.
pub(super) async fn check_definitions(
    client: &Client,
    definitions: &[CustomResourceDefinition],
    force: bool,
) -> Result<DefinitionCheck, Error> {
    let api: Api<CustomResourceDefinition> = client.all();
    let mut check = DefinitionCheck { are_served: true, ..DefinitionCheck::default() };
    for definition in definitions {
        match api.get_opt(definition.name()).await {
            Ok(stored) => {
                let definition = &with_client_of(definition, stored.as_ref());
                match stored.as_ref().map(|stored| plan(client, definition, stored, force)) {
                    Some(InstallPlan::Keep(kept)) => check.kept.extend(kept),
                    Some(InstallPlan::Refuse(error)) => return Err(error),
                    Some(InstallPlan::Write) | None => check_by_dry_run(&api, definition).await?,
                }
                check.are_served &= stored.is_some_and(|stored| {
                    matches!(served(&stored), Ok(true)) && has_versions_of(definition, &stored)
                });
            }
            Err(error) if error.kind() == ErrorKind::Forbidden => {
                // Without the right to read definitions, discovery decides.
                if !is_discovered(client, definition).await {
                    return Err(refused(definition.name(), error));
                }
            }
            Err(error) => {
                debug!(definition = definition.name(), error = ?error, "the definition cannot be read");
                return Ok(DefinitionCheck { are_served: false, ..check });
            }
        }
    }
    Ok(check)
}

/// Effect of an installation.
pub(super) enum PlannedInstall {
    /// The stored definition is up to date, or this process may not read a definition that is
    /// served.
    Same,
    /// The definition of that name would be replaced.
    Written(String),
    /// The stored definition stays, for the reason in the text.
    Remark(String),
}

/// Compares a definition with the stored definition, for a plan. The API server checks a definition
/// that would be written.
///
/// # Errors
/// [`ErrorKind::Config`] when the definition is not installed, or could not be; any error of the
/// API server.
pub(super) async fn planned(
    client: &Client,
    definition: &CustomResourceDefinition,
    force: bool,
) -> Result<PlannedInstall, Error> {
    let api: Api<CustomResourceDefinition> = client.all();
    let name = definition.name();
    let stored = match api.get_opt(name).await {
        Ok(stored) => stored,
        Err(error) if error.kind() == ErrorKind::Forbidden => {
            return match is_discovered(client, definition).await {
                true => Ok(PlannedInstall::Same),
                false => Err(refused(name, error)),
            };
        }
        Err(error) => return Err(error),
    };
    let Some(stored) = stored else {
        let text = format!(
            "cannot plan: the custom resource definition {name:?} is not installed, so its kind has no \
             objects; a run would install it, and `manifests` prints it"
        );
        return Err(Error::new(ErrorKind::Config, text));
    };
    let definition = &with_client_of(definition, Some(&stored));
    match plan(client, definition, &stored, force) {
        InstallPlan::Keep(None) => Ok(PlannedInstall::Same),
        InstallPlan::Keep(Some(kept)) => Ok(PlannedInstall::Remark(kept.text)),
        InstallPlan::Refuse(error) => Err(error),
        InstallPlan::Write => {
            check_by_dry_run(&api, definition).await?;
            Ok(PlannedInstall::Written(name.to_owned()))
        }
    }
}

/// Makes the API server check the definition that a leader would write, without storing the
/// definition.
async fn check_by_dry_run(
    api: &Api<CustomResourceDefinition>,
    own: &CustomResourceDefinition,
) -> Result<(), Error> {
    // Forced: the content is to be checked, not conflicts with other managers.
    match api.apply(own.name(), own).force().dry_run().await {
        Err(error) if matches!(error.kind(), ErrorKind::Invalid | ErrorKind::BadRequest) => {
            Err(refused(own.name(), error))
        }
        // The leader may have the rights, and an API server that is away comes back.
        Err(error) => {
            debug!(definition = own.name(), error = ?error, "cannot try it out");
            Ok(())
        }
        Ok(_) => Ok(()),
    }
}

/// Applies the definitions that are missing or differ, and waits until every definition is
/// established. Returns the definitions of others that were not replaced; with `force` all are
/// replaced.
///
/// # Errors
/// A refusal of a definition by the API server at once, and a definition of others that
/// stays and does not serve the versions that this program needs; anything else after a minute.
/// # Cancel safety
/// Dropping the future cancels the request under way; definitions that were applied before stay.
pub async fn install_all(
    client: &Client,
    definitions: &[CustomResourceDefinition],
    force: bool,
) -> Result<Vec<KeptDefinition>, Error> {
    let clock = &client.environment().clock;
    let mut last = None;
    let work = Box::pin(async {
        let mut kept = Vec::new();
        for definition in definitions {
            kept.extend(install(client, definition, force, &mut last).await?);
        }
        Ok(kept)
    });
    let outcome = clock.timeout(LIMIT, work).await;
    outcome.unwrap_or_else(|| {
        let names: Vec<&str> = definitions.iter().map(ResourceExt::name).collect();
        let text = format!(
            "the custom resource definitions {names:?} were not served within {} s; look at their \
             conditions and at the API server",
            LIMIT.as_secs()
        );
        let error = Error::new(ErrorKind::Timeout, text);
        Err(match last {
            Some(cause) => error.because(cause),
            None => error,
        })
    })
}

/// Installs one definition, and waits until the API server serves it; `last` keeps the last error.
async fn install(
    client: &Client,
    definition: &CustomResourceDefinition,
    force: bool,
    last: &mut Option<Error>,
) -> Result<Option<KeptDefinition>, Error> {
    let api: Api<CustomResourceDefinition> = client.all();
    let name = definition.name();
    let mut pause = FIRST_PAUSE;
    // Once the definition is up to date, only the conditions are waited for.
    let mut found = None;
    loop {
        let step = match found.take() {
            Some(kept) => api.get(name).await.map(|stored| (stored, kept)),
            None => create_or_update(client, definition, force).await,
        };
        match step {
            Ok((stored, kept)) if served(&stored)? => {
                info!(definition = name, "custom resource definition is served");
                return Ok(kept);
            }
            Ok((_, kept)) => found = Some(kept),
            // No repetition changes this outcome.
            Err(error) if error.kind() == ErrorKind::Config => return Err(error),
            Err(error) if is_retriable(error.kind()) => {
                // Logged once: an API server that is away would fill the log.
                if last.is_none() {
                    warn!(definition = name, error = ?error, "not installed yet; trying again");
                }
                *last = Some(error);
            }
            Err(error)
                if error.kind() == ErrorKind::Forbidden
                    && is_discovered(client, definition).await =>
            {
                info!(definition = name, "served; this process may not read or write it");
                return Ok(None);
            }
            Err(error) => return Err(refused(name, error)),
        }
        client.environment().clock.sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Returns the stored definition, after writing it if needed.
async fn create_or_update(
    client: &Client,
    definition: &CustomResourceDefinition,
    force: bool,
) -> Result<(CustomResourceDefinition, Option<KeptDefinition>), Error> {
    let api: Api<CustomResourceDefinition> = client.all();
    let name = definition.name();
    let Some(stored) = api.get_opt(name).await? else {
        // Another manager may create the definition at the same moment: the answer is then a
        // conflict, and the next turn compares.
        let made =
            if force { api.apply(name, definition).force() } else { api.apply(name, definition) };
        return Ok((made.await?, None));
    };
    if is_newer(&stored, definition) {
        warn!(
            definition = name,
            stored = version_of(&stored),
            own = version_of(definition),
            "a newer version of this program installed the definition: it is left as it is"
        );
    }
    let definition = &with_client_of(definition, Some(&stored));
    match plan(client, definition, &stored, force) {
        InstallPlan::Refuse(error) => Err(error),
        InstallPlan::Keep(kept) => {
            if let Some(KeptDefinition { text, .. }) = &kept {
                warn!(definition = name, "{text}");
            }
            Ok((stored, kept))
        }
        InstallPlan::Write => {
            // With the version that was compared: a change in between is a conflict, not a loss.
            let mut own = definition.clone();
            own.metadata.resource_version.clone_from(&stored.metadata.resource_version);
            let written = api.apply(name, &own).force().await?;
            if has_other_managers(client, definition, &stored) {
                log_removed_parts(definition, &stored);
            }
            Ok((written, None))
        }
    }
}

/// Returns a definition with the webhook of the stored definition: the types do not know where the
/// operator runs, and the webhook server keeps that part.
fn with_client_of(
    own: &CustomResourceDefinition,
    stored: Option<&CustomResourceDefinition>,
) -> CustomResourceDefinition {
    let mut own = own.clone();
    let stored = stored.and_then(|stored| stored.spec.conversion.as_ref()?.webhook.as_ref());
    let webhook = own.spec.conversion.as_mut().and_then(|own| own.webhook.as_mut());
    if let (Some(webhook), Some(stored)) = (webhook, stored) {
        webhook.client_config.clone_from(&stored.client_config);
    }
    own
}

/// Next step with a definition that is stored.
enum InstallPlan {
    /// The stored definition is up to date, or stays although different.
    Keep(Option<KeptDefinition>),
    /// This program's own definition replaces the stored definition.
    Write,
    /// Neither is possible.
    Refuse(Error),
}

/// Compares the own definition with the stored definition.
fn plan(
    client: &Client,
    own: &CustomResourceDefinition,
    stored: &CustomResourceDefinition,
    force: bool,
) -> InstallPlan {
    if is_newer(stored, own) || is_same(own, stored) {
        return InstallPlan::Keep(None);
    }
    if force || !has_other_managers(client, own, stored) {
        return InstallPlan::Write;
    }
    let losses = foreign::losses(own, stored);
    if losses.is_empty() { InstallPlan::Write } else { keep_or_refuse(own, stored, &losses) }
}

/// Whether another manager created the stored definition, or changed it.
fn has_other_managers(
    client: &Client,
    own: &CustomResourceDefinition,
    stored: &CustomResourceDefinition,
) -> bool {
    let is_unmarked = version_of(own).is_some() && version_of(stored).is_none();
    is_unmarked || foreign::is_managed_by_others(stored, client.manager())
}

/// Logs the parts of a definition of others that the replacement does not have: with `force` any
/// part, otherwise only rules and defaults.
fn log_removed_parts(own: &CustomResourceDefinition, stored: &CustomResourceDefinition) {
    let (losses, rules) = (foreign::losses(own, stored), foreign::removed_rules(own, stored));
    let all: Vec<String> = losses.into_iter().chain(rules).collect();
    let name = own.name();
    if all.is_empty() {
        info!(
            definition = name,
            "the definition that others manage too is replaced by this program's"
        );
    } else {
        let removed = foreign::join(&all);
        warn!(
            definition = name,
            "the definition that others manage too is replaced by this program's, which lacks: {removed}"
        );
    }
}

/// Decides that the stored definition stays, because of `losses`; refuses if the program cannot
/// work by that definition.
fn keep_or_refuse(
    own: &CustomResourceDefinition,
    stored: &CustomResourceDefinition,
    losses: &[String],
) -> InstallPlan {
    let conflict = format!(
        "the custom resource definition {:?} is not this program's alone, and its own would take from it: {}",
        own.name(),
        foreign::join(losses)
    );
    let remedy = "declare the missing parts in the types, ask the owner of the definition to change it, or \
                  replace it in spite of the losses (`--force-install`, `Manager::force_install`)";
    if !has_versions_of(own, stored) {
        let versions: Vec<&str> = served_versions(own).collect();
        let text =
            format!("{conflict}; it is left as it is, but does not serve {versions:?}: {remedy}");
        return InstallPlan::Refuse(Error::new(ErrorKind::Config, text));
    }
    let missing = foreign::missing(own, stored).describe();
    let text =
        format!("{conflict}; it is left as it is, and this program works by it{missing}; {remedy}");
    InstallPlan::Keep(Some(KeptDefinition { name: own.name().to_owned(), text }))
}

/// Whether discovery shows the kind as served; for a process that may not read definitions.
async fn is_discovered(client: &Client, definition: &CustomResourceDefinition) -> bool {
    let spec = &definition.spec;
    let catalog = client.discovery().refresh().await;
    catalog.is_ok_and(|catalog| {
        served_versions(definition).all(|version| {
            let version = catalog.version(&spec.group, version);
            version.is_some_and(|version| version.resource(&spec.names.plural).is_some())
        })
    })
}

/// Returns the error about a definition that cannot be installed.
fn refused(name: &str, error: Error) -> Error {
    let text = format!(
        "cannot install the custom resource definition {name:?}; apply the operator's manifests, \
         which hold it, or leave out `install`"
    );
    Error::new(error.kind(), text).because(error)
}

/// Whether an error of this kind may pass within the time limit.
fn is_retriable(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Ambiguous
            | ErrorKind::Conflict
            | ErrorKind::Connect
            | ErrorKind::NotFound
            | ErrorKind::Server
            | ErrorKind::Timeout
            | ErrorKind::TooManyRequests
            | ErrorKind::Transport
    )
}
