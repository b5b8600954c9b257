//! Given objects: their places, and how they come to be on a server.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use serde::Serialize;
use serde_json::{Map, Value, json};
use windlass_client::api::{Api, Patch};
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::{
    DynamicObject, ObjectKey, Resource, ResourceExt, ResourceInfo, Scope,
};
use windlass_runtime::manager::Manager;

use super::{Case, TestCluster};

/// Namespace of a case without a server.
const DEFAULT: &str = "default";
/// Time between two objects whose order matters: creation times are whole seconds.
const SECOND: Duration = Duration::from_millis(1100);
/// Creation time of objects without one.
const CREATED: &str = "2026-01-01T00:00:00Z";

/// An object of a case.
#[derive(Clone, Debug)]
pub(super) struct GivenObject {
    pub(super) info: ResourceInfo,
    pub(super) value: Value,
}

/// Names of namespaces: those of a case, and those of a server.
#[derive(Clone, Debug)]
pub(super) struct NamespaceNames {
    /// Namespace of objects that name none.
    main: String,
    /// Other names, where a server has others than the case.
    others: BTreeMap<String, String>,
}

impl Default for NamespaceNames {
    fn default() -> Self {
        Self { main: DEFAULT.to_owned(), others: BTreeMap::new() }
    }
}

impl NamespaceNames {
    /// Returns the namespace of an object; empty for a cluster-scoped one.
    fn namespace(&self, object: &GivenObject) -> String {
        match object.text("namespace") {
            _ if object.info.scope == Scope::Cluster => String::new(),
            "" => self.main.clone(),
            named => self.others.get(named).map_or_else(|| named.to_owned(), Clone::clone),
        }
    }

    /// Returns the key of an object, as plans have it.
    pub(super) fn key(&self, object: &GivenObject) -> ObjectKey {
        let (namespace, name) = (self.namespace(object), object.name());
        ObjectKey::new(Some(namespace.as_str()).filter(|it| !it.is_empty()), &name)
    }

    /// Returns the text of a read without the namespace of the case.
    pub(super) fn near(&self, read: &str) -> String {
        let prefix = format!("{}/", self.main);
        // The last word of a list may be its namespace; that of a get is a name.
        let is_get = read.starts_with("get ");
        let words = read.split(' ');
        let words = words.filter(|word| !word.is_empty() && (is_get || *word != self.main));
        let words: Vec<&str> =
            words.map(|word| word.strip_prefix(&prefix).unwrap_or(word)).collect();
        words.join(" ")
    }
}

impl GivenObject {
    /// Takes an object.
    pub(super) fn of<K: Resource>(object: &K) -> Self {
        let (info, mut value) = (info_of::<K>(), json_of(object));
        value["apiVersion"] = json!(info.api_version());
        value["kind"] = json!(info.kind);
        Self { info, value }
    }

    /// Returns an object of which the name alone is known.
    pub(super) fn named<K: Resource>(name: &str) -> Self {
        Self { info: info_of::<K>(), value: json!({ "metadata": { "name": name } }) }
    }

    fn text(&self, field: &str) -> &str {
        self.value["metadata"][field].as_str().unwrap_or_default()
    }

    /// Returns the name, or the beginning of one that the server completes.
    fn name(&self) -> String {
        match (self.text("name"), self.text("generateName")) {
            ("", beginning) if !beginning.is_empty() => format!("{beginning}*"),
            (name, _) => name.to_owned(),
        }
    }

    /// Whether both are states of one object.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.info.group_resource() == other.info.group_resource()
            && (self.name(), self.text("namespace")) == (other.name(), other.text("namespace"))
    }

    /// Group and plural name of the kind.
    pub(super) fn group_and_plural(&self) -> (&str, &str) {
        (&self.info.group, &self.info.plural)
    }

    fn is_terminating(&self) -> bool {
        !self.value["metadata"]["deletionTimestamp"].is_null()
    }

    /// Gives the references to given owners their uids.
    fn adopt(&mut self, uids: &BTreeMap<(String, String), String>) {
        let owners = self.value["metadata"]["ownerReferences"].as_array_mut();
        for owner in owners.into_iter().flatten() {
            let text = |field: &str| owner[field].as_str().unwrap_or_default().to_owned();
            if let Some(uid) = uids.get(&(text("kind"), text("name"))) {
                owner["uid"] = json!(uid);
            }
        }
    }
}

/// Returns group, version and kind of a type.
fn info_of<K: Resource>() -> ResourceInfo {
    let Some(info) = K::static_info() else {
        panic!("a kind that is known at run time only cannot be in a case of a table")
    };
    info
}

/// Returns the objects of a case as a server stores them, with their namespaces.
pub(super) fn stored(case: &Case) -> Vec<(String, GivenObject)> {
    let places = NamespaceNames::default();
    let mut uids = BTreeMap::new();
    let objects = std::iter::once(&case.object).chain(&case.given).enumerate();
    let mut stored: Vec<(String, GivenObject)> = Vec::new();
    for (index, given) in objects {
        let (namespace, mut given) = (places.namespace(given), given.clone());
        let uid = match given.text("uid") {
            "" => format!("00000000-0000-4000-8000-{index:012}"),
            uid => uid.to_owned(),
        };
        uids.insert((given.info.kind.to_string(), given.name()), uid.clone());
        let metadata = &mut given.value["metadata"];
        metadata["uid"] = json!(uid);
        metadata["resourceVersion"] = json!((index + 1).to_string());
        let defaults = [("creationTimestamp", json!(CREATED)), ("generation", json!(1))];
        for (field, value) in defaults {
            if metadata[field].is_null() {
                metadata[field] = value;
            }
        }
        if !namespace.is_empty() {
            metadata["namespace"] = json!(namespace);
        }
        stored.push((namespace, given));
    }
    stored.iter_mut().for_each(|(_, given)| given.adopt(&uids));
    stored
}

/// Puts the objects of a case on a server; returns their places.
///
/// # Errors
/// Those of the requests; an object that is being deleted and has no finalizer.
pub(super) async fn place(
    cluster: &TestCluster,
    case: &Case,
    manager: &Manager,
) -> Result<NamespaceNames, Error> {
    super::install(&cluster.client(), manager).await?;
    let mut objects: Vec<&GivenObject> = std::iter::once(&case.object).chain(&case.given).collect();
    let mut places =
        NamespaceNames { main: cluster.namespace().to_owned(), others: BTreeMap::new() };
    for named in objects.iter().map(|object| object.text("namespace")) {
        if !named.is_empty() && !places.others.contains_key(named) {
            let made = namespace(cluster, named).await?;
            places.others.insert(named.to_owned(), made);
        }
    }
    let is_ordered = objects.iter().any(|object| !object.text("creationTimestamp").is_empty());
    if is_ordered && !cluster.is_embedded() {
        // Objects without a time are the youngest.
        let time = |object: &&GivenObject| object.text("creationTimestamp").to_owned();
        objects.sort_by_key(|object| (time(object).is_empty(), time(object)));
    }
    let mut uids = BTreeMap::new();
    for object in objects {
        let uid = create(cluster, object, &places, &uids).await?;
        uids.insert((object.info.kind.to_string(), object.name()), uid);
        if is_ordered && !cluster.is_embedded() {
            cluster.client().environment().clock.sleep(SECOND).await;
        }
    }
    Ok(places)
}

/// Creates a namespace of a case, under another name on a shared server.
async fn namespace(cluster: &TestCluster, named: &str) -> Result<String, Error> {
    if !cluster.is_embedded() {
        return Ok(cluster.new_namespace().await);
    }
    let mut object = Namespace::default();
    object.metadata.name = Some(named.to_owned());
    match cluster.client().all().create(&object).await {
        Err(error) if !error.is_already_exists() => Err(error),
        _ => Ok(named.to_owned()),
    }
}

/// Creates an object, with its status; returns its uid.
async fn create(
    cluster: &TestCluster,
    given: &GivenObject,
    places: &NamespaceNames,
    uids: &BTreeMap<(String, String), String>,
) -> Result<String, Error> {
    let namespace = places.namespace(given);
    let mut adopted = given.clone();
    adopted.adopt(uids);
    let mut value = adopted.value;
    let status = value.as_object_mut().and_then(|fields| fields.remove("status"));
    if let Some(metadata) = value["metadata"].as_object_mut() {
        prepare(metadata, &namespace);
    }
    let api = api(cluster, given, &namespace);
    let created = api.create(&decoded(value)?).await?;
    let name = created.name().to_owned();
    if let Some(status) = status.filter(|status| !status.is_null()) {
        api.patch(&name, Patch::Merge(json!({ "status": status }))).status().await?;
    }
    if given.is_terminating() {
        if created.metadata.finalizers.as_ref().is_none_or(Vec::is_empty) {
            let text = format!(
                "{} {name} has a deletionTimestamp and no finalizer: it would be gone",
                given.info.kind
            );
            return Err(Error::new(ErrorKind::Usage, text));
        }
        api.delete(&name).await?;
    }
    // Times of creation are the server's: only the embedded one can be given them.
    let time = &given.value["metadata"]["creationTimestamp"];
    if let Some(server) = cluster.server.as_ref().filter(|_| !time.is_null()) {
        let ResourceInfo { group, plural, .. } = &given.info;
        if let Some(mut object) = server.get_object(group, plural, &namespace, &name) {
            object["metadata"]["creationTimestamp"] = time.clone();
            server.commit(group, plural, &namespace, &name, Some(object));
        }
    }
    Ok(created.uid().to_owned())
}

/// Removes what the server sets, and sets the namespace.
fn prepare(metadata: &mut Map<String, Value>, namespace: &str) {
    for field in ["uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "generation"]
    {
        metadata.remove(field);
    }
    if !namespace.is_empty() {
        metadata.insert("namespace".to_owned(), json!(namespace));
    }
}

fn decoded(value: Value) -> Result<DynamicObject, Error> {
    let refuse = |error| Error::new(ErrorKind::Usage, format!("a given object is none: {error}"));
    serde_json::from_value(value).map_err(refuse)
}

fn api(cluster: &TestCluster, given: &GivenObject, namespace: &str) -> Api<DynamicObject> {
    let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
    cluster.client().dynamic(given.info.clone(), namespace)
}

/// Removes the objects that would outlive a case on a shared server: those of cluster-scoped kinds.
pub(super) async fn remove(cluster: &TestCluster, case: &Case) {
    if cluster.is_embedded() {
        return;
    }
    let objects = std::iter::once(&case.object).chain(&case.given);
    for given in objects.filter(|given| given.info.scope == Scope::Cluster) {
        let api = api(cluster, given, "");
        // What fails here stays until the server ends, and fails the creation of the next case.
        let free = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
        let _ = api.patch(&given.name(), free).await;
        let _ = api.delete(&given.name()).await;
    }
}

/// Returns a value as JSON.
///
/// # Panics
/// When it cannot be written, as a map whose keys are no texts.
pub(super) fn json_of(value: &impl Serialize) -> Value {
    match serde_json::to_value(value) {
        Ok(value) => value,
        Err(error) => panic!("cannot write a value of a case as JSON: {error}"),
    }
}
