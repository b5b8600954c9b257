//! Storage migration: objects that are stored in an older version are written once more, so that
//! the definition can lose that version.
//!
//! An API server stores an object in the storage version of the definition at each write, and
//! remembers in `status.storedVersions` every version that may still be stored. A patch without a
//! change is such a write.
//!
//! Invariant: a version leaves `storedVersions` only after every object was written since the
//! moment at which the definition was read, and only if the definition still stores the same
//! version. A migration that is dropped leaves objects of both versions, and the next migration
//! begins anew.

// DESIGN.md, 223: A storage migration writes every object once, and then trims the stored versions

use std::fmt;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};
use tracing::{error, info, warn};

use super::{Manager, ManifestContext, Runnable, RunnableManifest, manifests};
use windlass_client::api::{Api, Patch};
use windlass_client::client::Client;
use windlass_core::crd::CustomResource;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::{DynamicObject, ResourceExt, ResourceInfo, Scope};

/// Time in which API servers learn of a new storage version by their watches, before objects are
/// written.
const LEARNED: Duration = Duration::from_secs(5);
/// Objects of a page.
const PAGE: u32 = 500;
/// Most attempts to write an object, or the status of a definition.
const ATTEMPTS: usize = 10;
/// Refused objects that are named.
const REFUSED: usize = 100;
/// Objects after which progress is logged.
const PROGRESS: usize = 10_000;
/// API of roles.
const RBAC: &str = "rbac.authorization.k8s.io/v1";

/// A storage migration: the objects of these kinds are stored in the storage versions of their
/// definitions, and `status.storedVersions` names no other.
///
/// As a runnable the migration works on the leader, once at the start of each term; a kind without
/// older stored versions costs a request. The command line has this as `migrate`, for all kinds of
/// the operator.
///
/// ```no_run
/// # extern crate windlass_runtime as windlass;
/// # use windlass::{client::Client, crd::CustomResource, manager::{Manager, StorageMigration}};
/// # fn example<CronJob: CustomResource>(client: Client) -> Manager {
/// Manager::new(client)
///     .leader_election("cron-operator")
///     .install::<CronJob>()
///     .runnable(StorageMigration::new().kind::<CronJob>())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "run it, or give it to a manager"]
pub struct StorageMigration {
    /// Names of definitions.
    definitions: Vec<String>,
    /// Their groups and plurals.
    resources: Vec<(String, String)>,
}

/// The result for a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MigratedKind {
    /// Name of the definition, such as `websites.example.dev`.
    pub definition: String,
    /// The version in which every object is stored now, such as `v1`.
    pub version: String,
    /// Versions that `status.storedVersions` names no more; empty when nothing was to be done.
    pub removed: Vec<String>,
    /// Objects that were written once more, unchanged; 0 when only one version was stored.
    pub objects: usize,
    /// Writes that were repeated because another client changed the object meanwhile.
    pub conflicts: usize,
    /// Objects that the API server did not take back, at most a hundred of them; while there are
    /// some, no version is removed.
    pub refused: Vec<RefusedObject>,
    /// Number of refused objects beyond those in `refused`.
    pub more_refused: usize,
}

/// An object that a migration could not write.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusedObject {
    /// Namespace of the object; `None` for a cluster-scoped kind.
    pub namespace: Option<String>,
    /// Name of the object.
    pub name: String,
    /// Message of the API server, such as that of a validation.
    pub reason: String,
}

impl fmt::Display for RefusedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        write!(f, "{}: {}", self.name, self.reason)
    }
}

impl MigratedKind {
    /// Whether objects were refused, so that older versions are stored still.
    pub fn has_refused(&self) -> bool {
        !self.refused.is_empty()
    }

    /// Keeps an object that was refused.
    fn refuse(&mut self, object: RefusedObject) {
        // Without a permission each object is refused: the log is bounded as the list is.
        if self.refused.len() == REFUSED {
            self.more_refused += 1;
            return;
        }
        warn!(definition = self.definition, %object, "an object is not migrated");
        self.refused.push(object);
    }
}

impl fmt::Display for MigratedKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.has_refused() {
            let count = self.refused.len() + self.more_refused;
            let (are, them) = if count == 1 { ("is", "it") } else { ("are", "them") };
            write!(
                f,
                "{}: {} objects are stored in {} now ({} conflicts), and {count} {are} refused; correct {them}, \
                 and migrate again:",
                self.definition, self.objects, self.version, self.conflicts
            )?;
            for object in &self.refused {
                write!(f, "\n  {object}")?;
            }
            return match self.more_refused {
                0 => Ok(()),
                more => write!(f, "\n  and {more} more"),
            };
        }
        if self.removed.is_empty() {
            return write!(f, "{}: all objects are stored in {}", self.definition, self.version);
        }
        write!(
            f,
            "{}: {} objects are stored in {} now ({} conflicts); {} may be removed",
            self.definition,
            self.objects,
            self.version,
            self.conflicts,
            self.removed.join(", ")
        )
    }
}

impl StorageMigration {
    /// Returns a migration of no kind: add kinds by [`kind`](Self::kind).
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a kind, by the type of any version.
    pub fn kind<K: CustomResource>(mut self) -> Self {
        if let Some(info) = K::static_info() {
            self.definitions.push(info.group_resource());
            self.resources.push((info.group.to_string(), info.plural.to_string()));
        }
        self
    }

    /// Returns the migration of all kinds that an operator installs, or prints with the manifests.
    ///
    /// # Errors
    /// Those of the definitions.
    pub fn of(operator: &Manager) -> Result<Self, Error> {
        let mut migration = Self::new();
        for definition in manifests::definitions(operator, None)? {
            let spec = &definition.spec;
            migration.definitions.push(definition.name().to_owned());
            migration.resources.push((spec.group.clone(), spec.names.plural.clone()));
        }
        Ok(migration)
    }

    /// Migrates the kinds, one after the other. Objects that the API server does not take back,
    /// such as those that an admission policy denies, are in the result, and the others are
    /// written.
    ///
    /// # Errors
    /// Those of the API server that do not concern one object; [`ErrorKind::Conflict`] when a
    /// definition changes its storage version meanwhile. Kinds before it are done, and a further
    /// run does the rest.
    /// # Cancel safety
    /// Safe: objects that were written stay so.
    pub async fn run(&self, client: &Client) -> Result<Vec<MigratedKind>, Error> {
        let mut done = Vec::new();
        for definition in &self.definitions {
            done.push(migrate(client, definition).await?);
        }
        Ok(done)
    }

    /// Returns the roles of a migration in an operator.
    fn attachment(&self, place: &ManifestContext<'_>) -> RunnableManifest {
        let named = |resource: &str, verbs: &[&str]| {
            json!({
                "apiGroups": ["apiextensions.k8s.io"], "resources": [resource], "verbs": verbs,
                "resourceNames": self.definitions,
            })
        };
        let mut rules = vec![
            named("customresourcedefinitions", &["get"]),
            named("customresourcedefinitions/status", &["patch"]),
        ];
        for (group, plural) in &self.resources {
            rules.push(json!({
                "apiGroups": [group], "resources": [plural], "verbs": ["get", "list", "patch"],
            }));
        }
        let name = format!("{}-migration", place.name);
        let metadata = json!({ "name": name, "labels": { "app.kubernetes.io/name": place.name } });
        let role = json!({
            "apiVersion": RBAC, "kind": "ClusterRole", "metadata": metadata, "rules": rules,
        });
        let binding = json!({
            "apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": metadata,
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name },
            "subjects": [{ "kind": "ServiceAccount", "name": place.name, "namespace": place.namespace }],
        });
        RunnableManifest { roles: vec![role, binding], ..RunnableManifest::default() }
    }
}

impl From<StorageMigration> for Runnable {
    fn from(migration: StorageMigration) -> Self {
        let attached = migration.clone();
        let runnable = Runnable::new("storage-migration", move |cx| {
            let migration = migration.clone();
            async move {
                let work = migration.run(cx.client());
                tokio::select! {
                    biased;
                    () = cx.stopped() => {}
                    done = work => done?.iter().filter(|kind| kind.has_refused()).for_each(report),
                }
                // Another run would refuse the same objects: the next term, or `migrate`, tries
                // again.
                Ok(())
            }
        });
        runnable.with_leadership().attaching(move |place| Ok(attached.attachment(place)))
    }
}

/// Logs the objects that keep a kind from being migrated.
fn report(kind: &MigratedKind) {
    error!(definition = kind.definition, "{kind}");
}

/// Migrates one kind.
async fn migrate(client: &Client, name: &str) -> Result<MigratedKind, Error> {
    let api = client.all::<CustomResourceDefinition>();
    let definition = api.get(name).await?;
    let version = storage_version(&definition)?;
    let before = stored_versions(&definition);
    let mut done = MigratedKind {
        definition: name.to_owned(),
        removed: before.iter().filter(|stored| **stored != version).cloned().collect(),
        version,
        objects: 0,
        conflicts: 0,
        refused: Vec::new(),
        more_refused: 0,
    };
    if done.removed.is_empty() {
        return Ok(done);
    }
    info!(definition = name, version = done.version, removed = ?done.removed, "migrating stored objects");
    client.environment().clock.sleep(LEARNED).await;
    let objects = client.dynamic(resource(&definition, &done.version)?, None);
    let mut stream = objects.list().page_size(PAGE).stream();
    while let Some(object) = stream.next().await {
        let object: DynamicObject = object?;
        let before = done.objects;
        write(client, &objects, object, &mut done).await?;
        if done.objects > before && done.objects.is_multiple_of(PROGRESS) {
            info!(definition = name, objects = done.objects, "objects are written");
        }
    }
    if done.has_refused() {
        done.removed.clear();
        return Ok(done);
    }
    trim(&api, &before, &done).await?;
    info!(definition = name, objects = done.objects, conflicts = done.conflicts, "migrated");
    Ok(done)
}

/// Writes an object without a change. An object that others wrote or deleted meanwhile is read
/// again.
async fn write(
    client: &Client,
    all: &Api<DynamicObject>,
    mut object: DynamicObject,
    done: &mut MigratedKind,
) -> Result<(), Error> {
    let info = all.info().clone();
    let namespace = object.metadata.namespace.clone();
    let api: Api<DynamicObject> = client.dynamic(info, namespace.as_deref());
    let name = object.name().to_owned();
    for _ in 0..ATTEMPTS {
        // With the version that was read: an object of the same name may be a successor.
        let version = &object.metadata.resource_version;
        let patch = Patch::Merge(json!({ "metadata": { "resourceVersion": version } }));
        match api.patch(&name, patch).await {
            Ok(_) => {
                done.objects += 1;
                return Ok(());
            }
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) if error.is_conflict() => {
                done.conflicts += 1;
                let Some(newer) = api.get_opt(&name).await? else { return Ok(()) };
                object = newer;
            }
            Err(error) if concerns_object(&error) => {
                done.refuse(refused(namespace, name, with_causes(&error)));
                return Ok(());
            }
            Err(error) => return Err(error),
        }
    }
    done.refuse(refused(namespace, name, format!("others changed it {ATTEMPTS} times")));
    Ok(())
}

fn refused(namespace: Option<String>, name: String, reason: String) -> RefusedObject {
    RefusedObject { namespace, name, reason }
}

/// Returns an error with its causes, which have the words of the API server.
fn with_causes(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        text.push_str(&format!(": {next}"));
        cause = next.source();
    }
    text
}

/// Whether an answer is about the object that was sent, and not about the API server or the sender.
fn concerns_object(error: &Error) -> bool {
    error.code().is_some_and(|code| !matches!(code, 401 | 429 | 502..=504))
}

/// Removes the older versions from the stored versions.
async fn trim(
    api: &Api<CustomResourceDefinition>,
    before: &[String],
    done: &MigratedKind,
) -> Result<(), Error> {
    for _ in 0..ATTEMPTS {
        let now = api.get(&done.definition).await?;
        let is_same = storage_version(&now)? == done.version
            && stored_versions(&now).iter().all(|version| before.contains(version));
        if !is_same {
            let text = format!(
                "the storage version of {} changed during its migration; migrate again",
                done.definition
            );
            return Err(Error::new(ErrorKind::Conflict, text));
        }
        let patch = Patch::Merge(json!({
            "metadata": { "resourceVersion": now.metadata.resource_version },
            "status": { "storedVersions": [done.version] },
        }));
        let status = api.subresource::<Value>(&done.definition, "status");
        match status.patch(patch).await {
            Ok(_) => return Ok(()),
            Err(error) if error.is_conflict() => {
                warn!(
                    definition = done.definition,
                    "the definition was changed; comparing it again"
                );
            }
            Err(error) => return Err(error),
        }
    }
    let text = format!("{} was changed by others {ATTEMPTS} times; migrate again", done.definition);
    Err(Error::new(ErrorKind::Conflict, text))
}

fn storage_version(definition: &CustomResourceDefinition) -> Result<String, Error> {
    let stored = definition.spec.versions.iter().find(|version| version.storage);
    stored.map(|version| version.name.clone()).ok_or_else(|| {
        let text = format!("the definition {:?} has no storage version", definition.name());
        Error::new(ErrorKind::Config, text)
    })
}

fn stored_versions(definition: &CustomResourceDefinition) -> Vec<String> {
    let status = definition.status.as_ref();
    status.and_then(|status| status.stored_versions.clone()).unwrap_or_default()
}

/// Returns the kind in the storage version, or in another served version: an API server stores each
/// write in the storage version.
fn resource(definition: &CustomResourceDefinition, storage: &str) -> Result<ResourceInfo, Error> {
    let spec = &definition.spec;
    let mut served = spec.versions.iter().filter(|version| version.served);
    let is_served = served.clone().any(|version| version.name == storage);
    let version = if is_served {
        storage.to_owned()
    } else if let Some(version) = served.next() {
        version.name.clone()
    } else {
        let text = format!("no version of {:?} is served", definition.name());
        return Err(Error::new(ErrorKind::Config, text));
    };
    Ok(ResourceInfo {
        group: spec.group.clone().into(),
        version: version.into(),
        kind: spec.names.kind.clone().into(),
        plural: spec.names.plural.clone().into(),
        scope: if spec.scope == "Namespaced" { Scope::Namespaced } else { Scope::Cluster },
    })
}
