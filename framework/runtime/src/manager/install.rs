//! Installation of custom resource definitions: makes an API server serve them, and waits until it
//! does.
//!
//! A definition is only written when the stored one differs from it, and never over one that a
//! newer version of the program wrote: a process of the old version that starts once more, in the
//! middle of a roll-out, would take away fields that the new one uses, and the API server would
//! prune them from every object that is written. Definitions carry their program's version in an
//! annotation for that.
//!
//! A definition that others manage too (`foreign.rs`) is only replaced if the replacement loses no
//! part of it. Otherwise the stored one stays, and the program works by it if its versions are
//! served.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionCondition,
};
use semver::Version;
use serde_json::{Map, Value};
use tracing::{debug, info, warn};

use super::foreign;
use super::manifests::plain_numbers;
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
/// Fields of a definition that an API server fills in.
const FILLED_IN: [&str; 4] = ["conversion", "listKind", "preserveUnknownFields", "singular"];

/// Returns the definition of `K`, with the version of its program.
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
pub struct LeftAlone {
    /// Its name.
    pub(crate) name: String,
    /// The losses, the fields that this program misses, and the remedy.
    #[doc(hidden)]
    pub text: String,
}

/// Findings of a replica that writes nothing.
#[derive(Debug, Default)]
pub(super) struct Look {
    /// Whether the kinds of all definitions are served, in every version that they have.
    pub(super) are_served: bool,
    pub(super) left_alone: Vec<LeftAlone>,
}

/// Looks whether the kinds of all definitions are served, in every version that they have. Writes
/// nothing, but tries out the definitions that the leader would write: a version whose definition
/// is refused must not take the place of one that works. An API server that cannot be asked counts
/// as one that serves none.
///
/// # Errors
/// The definitions may not be read, and are not known to be served; the API server would refuse
/// one; one is not this program's, would lose something, and does not serve the versions that this
/// program needs.
pub(super) async fn look(
    client: &Client,
    definitions: &[CustomResourceDefinition],
    force: bool,
) -> Result<Look, Error> {
    let api: Api<CustomResourceDefinition> = client.all();
    let mut look = Look { are_served: true, ..Look::default() };
    for definition in definitions {
        match api.get_opt(definition.name()).await {
            Ok(stored) => {
                match stored.as_ref().map(|stored| plan(client, definition, stored, force)) {
                    Some(InstallPlan::Keep(left_alone)) => look.left_alone.extend(left_alone),
                    Some(InstallPlan::Refuse(error)) => return Err(error),
                    Some(InstallPlan::Write) | None => try_out(&api, definition).await?,
                }
                look.are_served &= stored.is_some_and(|stored| {
                    matches!(served(&stored), Ok(true)) && has_versions_of(definition, &stored)
                });
            }
            Err(error) if error.kind() == ErrorKind::Forbidden => {
                // Without the right to read definitions, discovery decides.
                if !is_known_without(client, definition).await {
                    return Err(refused(definition.name(), error));
                }
            }
            Err(error) => {
                debug!(definition = definition.name(), error = ?error, "cannot look at it");
                return Ok(Look { are_served: false, ..look });
            }
        }
    }
    Ok(look)
}

/// Makes the API server check the definition that a leader would write, without storing it.
async fn try_out(
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

/// Applies the definitions that are missing or differ, and waits until every one is established.
/// Returns those of others that were left alone; with `force` none is.
///
/// # Errors
/// An objection of the API server against a definition at once, and a definition of others that
/// stays and does not serve the versions that this program needs; anything else after a minute.
/// # Cancel safety
/// Dropping the future cancels the request under way; definitions that were applied before stay.
pub async fn install_all(
    client: &Client,
    definitions: &[CustomResourceDefinition],
    force: bool,
) -> Result<Vec<LeftAlone>, Error> {
    let clock = &client.environment().clock;
    let mut last = None;
    let work = Box::pin(async {
        let mut left_alone = Vec::new();
        for definition in definitions {
            left_alone.extend(install(client, definition, force, &mut last).await?);
        }
        Ok(left_alone)
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

/// Installs one definition, and waits until it is served; `last` keeps the last error.
async fn install(
    client: &Client,
    definition: &CustomResourceDefinition,
    force: bool,
    last: &mut Option<Error>,
) -> Result<Option<LeftAlone>, Error> {
    let api: Api<CustomResourceDefinition> = client.all();
    let name = definition.name();
    let mut pause = FIRST_PAUSE;
    // Once the definition was found or made right, only its conditions are waited for.
    let mut found = None;
    loop {
        let step = match found.take() {
            Some(left_alone) => api.get(name).await.map(|stored| (stored, left_alone)),
            None => make_right(client, definition, force).await,
        };
        match step {
            Ok((stored, left_alone)) if served(&stored)? => {
                info!(definition = name, "custom resource definition is served");
                return Ok(left_alone);
            }
            Ok((_, left_alone)) => found = Some(left_alone),
            // No repetition changes this outcome.
            Err(error) if error.kind() == ErrorKind::Config => return Err(error),
            Err(error) if worth_retrying(error.kind()) => {
                // Logged once: an API server that is away would fill the log.
                if last.is_none() {
                    warn!(definition = name, error = ?error, "not installed yet; trying again");
                }
                *last = Some(error);
            }
            Err(error)
                if error.kind() == ErrorKind::Forbidden
                    && is_known_without(client, definition).await =>
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

/// Returns the stored definition, after writing it if that is needed.
async fn make_right(
    client: &Client,
    definition: &CustomResourceDefinition,
    force: bool,
) -> Result<(CustomResourceDefinition, Option<LeftAlone>), Error> {
    let api: Api<CustomResourceDefinition> = client.all();
    let name = definition.name();
    let Some(stored) = api.get_opt(name).await? else {
        // Another manager may create it at the same moment: the answer is then a conflict, and the
        // next turn compares.
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
    match plan(client, definition, &stored, force) {
        InstallPlan::Refuse(error) => Err(error),
        InstallPlan::Keep(left_alone) => {
            if let Some(LeftAlone { text, .. }) = &left_alone {
                warn!(definition = name, "{text}");
            }
            Ok((stored, left_alone))
        }
        InstallPlan::Write => {
            // With the version that was compared: a change in between is a conflict, not a loss.
            let mut own = definition.clone();
            own.metadata.resource_version.clone_from(&stored.metadata.resource_version);
            let written = api.apply(name, &own).force().await?;
            if is_of_others(client, definition, &stored) {
                say_what_went(definition, &stored);
            }
            Ok((written, None))
        }
    }
}

/// Next step with a definition that is stored.
enum InstallPlan {
    /// The stored definition is as it should be, or stays all the same.
    Keep(Option<LeftAlone>),
    /// This program's own definition takes its place.
    Write,
    /// Neither is possible.
    Refuse(Error),
}

/// Compares the own definition with the stored one.
fn plan(
    client: &Client,
    own: &CustomResourceDefinition,
    stored: &CustomResourceDefinition,
    force: bool,
) -> InstallPlan {
    if is_newer(stored, own) || is_same(own, stored) {
        return InstallPlan::Keep(None);
    }
    if force || !is_of_others(client, own, stored) {
        return InstallPlan::Write;
    }
    let losses = foreign::lost(own, stored);
    if losses.is_empty() { InstallPlan::Write } else { objection(own, stored, &losses) }
}

/// Whether another manager created the stored definition, or changed it.
fn is_of_others(
    client: &Client,
    own: &CustomResourceDefinition,
    stored: &CustomResourceDefinition,
) -> bool {
    let is_unmarked = version_of(own).is_some() && version_of(stored).is_none();
    is_unmarked || foreign::is_managed_by_others(stored, client.manager())
}

/// Logs the parts of others' work that a replaced definition had: by force any part, otherwise
/// rules and defaults.
fn say_what_went(own: &CustomResourceDefinition, stored: &CustomResourceDefinition) {
    let (lost, loosened) = (foreign::lost(own, stored), foreign::loosened(own, stored));
    let all: Vec<String> = lost.into_iter().chain(loosened).collect();
    let name = own.name();
    if all.is_empty() {
        info!(
            definition = name,
            "the definition that others manage too is replaced by this program's"
        );
    } else {
        let went = foreign::named(&all);
        warn!(
            definition = name,
            "the definition that others manage too is replaced by this program's, which has not: {went}"
        );
    }
}

/// Decides that the stored definition stays, because of `losses`; refuses if the program cannot
/// work by it.
fn objection(
    own: &CustomResourceDefinition,
    stored: &CustomResourceDefinition,
    losses: &[String],
) -> InstallPlan {
    let what = format!(
        "the custom resource definition {:?} is not this program's alone, and its own would take from it: {}",
        own.name(),
        foreign::named(losses)
    );
    let remedy = "declare in the types what is missing, have the definition's owner change it, or replace it \
                  whatever is lost (`--force-install`, `Manager::force_install`)";
    if !has_versions_of(own, stored) {
        let versions: Vec<&str> = served_versions(own).collect();
        let text =
            format!("{what}; it is left as it is, but does not serve {versions:?}: {remedy}");
        return InstallPlan::Refuse(Error::new(ErrorKind::Config, text));
    }
    let pruned = foreign::pruned(own, stored);
    let missing = match pruned.as_slice() {
        [] => String::new(),
        pruned => {
            let pruned = foreign::named(pruned);
            format!("; it has not, so the API server drops from all that is written: {pruned}")
        }
    };
    let text =
        format!("{what}; it is left as it is, and this program works by it{missing}; {remedy}");
    InstallPlan::Keep(Some(LeftAlone { name: own.name().to_owned(), text }))
}

/// Whether discovery shows the kind as served; for a process that may not read definitions.
async fn is_known_without(client: &Client, definition: &CustomResourceDefinition) -> bool {
    let spec = &definition.spec;
    let catalog = client.discovery().refresh().await;
    catalog.is_ok_and(|catalog| {
        served_versions(definition).all(|version| {
            let version = catalog.version(&spec.group, version);
            version.is_some_and(|version| version.resource(&spec.names.plural).is_some())
        })
    })
}

/// Returns the names of the served versions.
fn served_versions(definition: &CustomResourceDefinition) -> impl Iterator<Item = &str> {
    let versions = definition.spec.versions.iter().filter(|version| version.served);
    versions.map(|version| version.name.as_str())
}

/// Whether `stored` serves every version that `own` does.
fn has_versions_of(own: &CustomResourceDefinition, stored: &CustomResourceDefinition) -> bool {
    served_versions(own).all(|wanted| served_versions(stored).any(|version| version == wanted))
}

/// Returns the error about a definition that cannot be installed.
fn refused(name: &str, error: Error) -> Error {
    let text = format!(
        "cannot install the custom resource definition {name:?}; apply the operator's manifests, \
         which hold it, or leave out `install`"
    );
    Error::new(error.kind(), text).because(error)
}

/// Returns the version of the program that wrote the definition, from its annotation.
fn version_of(definition: &CustomResourceDefinition) -> Option<&str> {
    definition.metadata.annotations.as_ref()?.get(VERSION).map(String::as_str)
}

/// Whether a newer version of the program than the one that has `own` wrote the stored definition.
fn is_newer(stored: &CustomResourceDefinition, own: &CustomResourceDefinition) -> bool {
    let versions = version_of(stored).zip(version_of(own));
    // A text that is no version has no order, so the definition is not protected by it. Build
    // metadata does not count.
    versions.is_some_and(|(stored, own)| match (Version::parse(stored), Version::parse(own)) {
        (Ok(stored), Ok(own)) => stored.cmp_precedence(&own).is_gt(),
        _ => false,
    })
}

/// Whether applying `own` would change nothing.
fn is_same(own: &CustomResourceDefinition, stored: &CustomResourceDefinition) -> bool {
    let value = |definition: &CustomResourceDefinition| {
        let mut value = serde_json::to_value(&definition.spec).unwrap_or_default();
        plain_numbers(&mut value);
        value
    };
    version_of(own) == version_of(stored) && holds(&value(own), &value(stored))
}

/// Whether `stored` equals `own`, except for fields that an API server fills in.
fn holds(own: &Value, stored: &Value) -> bool {
    match (own, stored) {
        (Value::Object(own), Value::Object(stored)) => {
            let filled = |(key, _): &(&String, &Value)| FILLED_IN.contains(&key.as_str());
            let extra = |map: &Map<String, Value>| map.iter().filter(|at| !filled(at)).count();
            own.iter().all(|(key, own)| stored.get(key).is_some_and(|stored| holds(own, stored)))
                // A field that only the stored definition has is a difference, too.
                && extra(own) == extra(stored)
        }
        (Value::Array(own), Value::Array(stored)) => {
            own.len() == stored.len()
                && own.iter().zip(stored).all(|(own, stored)| holds(own, stored))
        }
        _ => own == stored,
    }
}

/// Whether an error of this kind may pass within the time limit.
fn worth_retrying(kind: ErrorKind) -> bool {
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

/// Whether the definition is established. An error when it never will be.
fn served(definition: &CustomResourceDefinition) -> Result<bool, Error> {
    let conditions = definition.status.as_ref().and_then(|status| status.conditions.as_deref());
    let condition = |kind: &str| -> Option<&CustomResourceDefinitionCondition> {
        conditions?.iter().find(|condition| condition.type_ == kind)
    };
    if let Some(refused) = condition("NamesAccepted").filter(|names| names.status == "False") {
        let text = format!(
            "the API server does not accept the names of {:?}: {}; another definition has them",
            definition.name(),
            refused.message.as_deref().unwrap_or("no message")
        );
        return Err(Error::new(ErrorKind::Config, text));
    }
    Ok(condition("Established").is_some_and(|established| established.status == "True"))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinitionStatus;

    use serde_json::json;

    use super::*;

    fn with(conditions: &[(&str, &str)]) -> CustomResourceDefinition {
        let conditions = conditions
            .iter()
            .map(|(kind, status)| CustomResourceDefinitionCondition {
                type_: (*kind).to_owned(),
                status: (*status).to_owned(),
                ..CustomResourceDefinitionCondition::default()
            })
            .collect();
        CustomResourceDefinition {
            status: Some(CustomResourceDefinitionStatus {
                conditions: Some(conditions),
                ..CustomResourceDefinitionStatus::default()
            }),
            ..CustomResourceDefinition::default()
        }
    }

    #[test]
    fn a_definition_is_served_once_it_is_established() {
        assert!(!served(&CustomResourceDefinition::default()).unwrap());
        assert!(!served(&with(&[("NamesAccepted", "True")])).unwrap());
        assert!(served(&with(&[("NamesAccepted", "True"), ("Established", "True")])).unwrap());
    }

    fn stored_by(version: Option<&str>) -> CustomResourceDefinition {
        let mut definition = with(&[("Established", "True")]);
        let annotation = version.map(|version| (VERSION.to_owned(), version.to_owned()));
        definition.metadata.annotations = Some(annotation.into_iter().collect());
        definition
    }

    #[test]
    fn a_definition_of_a_newer_program_is_left_alone_and_one_of_unknown_age_is_not() {
        let own = stored_by(Some("1.2.0"));
        assert!(is_newer(&stored_by(Some("1.10.0")), &own));
        assert!(!is_newer(&stored_by(Some("1.2.0")), &own));
        assert!(!is_newer(&stored_by(Some("1.2.0-rc.1")), &own));
        assert!(!is_newer(&stored_by(None), &own));
        assert!(!is_newer(&stored_by(Some("2")), &own));
        assert!(!is_newer(&stored_by(Some("1.2.0+linux")), &own));
        let candidate = stored_by(Some("1.2.0-rc.2"));
        for newer in ["1.2.0", "1.2.0-rc.10"] {
            assert!(is_newer(&stored_by(Some(newer)), &candidate), "{newer}");
        }
    }

    #[test]
    fn defaults_of_a_server_are_no_difference_and_surplus_fields_are_one() {
        let own = json!({ "names": { "plural": "sites" }, "schema": { "a": { "maximum": 5 } } });
        let mut stored = own.clone();
        stored["conversion"] = json!({ "strategy": "None" });
        stored["names"]["listKind"] = json!("SiteList");
        assert!(holds(&own, &stored));
        let mut wider = stored.clone();
        wider["schema"]["b"] = json!({});
        assert!(!holds(&own, &wider), "a field that the definition has no more");
        let mut other = stored.clone();
        other["schema"]["a"]["maximum"] = json!(6);
        assert!(!holds(&own, &other));
    }

    #[test]
    fn a_kind_is_served_when_all_of_its_versions_are() {
        let of = |versions: &[(&str, bool)]| {
            let versions: Vec<_> = versions
                .iter()
                .map(|(name, served)| json!({ "name": name, "served": served, "storage": false }))
                .collect();
            let mut definition = with(&[("Established", "True")]);
            definition.spec.versions = serde_json::from_value(json!(versions)).unwrap();
            definition
        };
        let own = of(&[("v1", true), ("v2", true), ("v0", false)]);
        assert!(has_versions_of(&own, &of(&[("v3", true), ("v2", true), ("v1", true)])));
        assert!(!has_versions_of(&own, &of(&[("v1", true)])));
        assert!(!has_versions_of(&own, &of(&[("v1", true), ("v2", false)])));
    }

    #[test]
    fn names_that_clash_are_an_error_at_once() {
        let error = served(&with(&[("NamesAccepted", "False")])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
    }
}
