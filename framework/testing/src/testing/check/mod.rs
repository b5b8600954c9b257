//! A test for free: a kind's definition, with defaults and rules, against an API server.

mod changes;
mod examples;
pub mod judge;
mod lost;
mod repeats;
mod report;
mod status;
#[cfg(test)]
mod tests;
mod texts;
mod values;
mod versions;
#[cfg(test)]
mod warned_tests;

use std::sync::atomic::{AtomicU64, Ordering};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Map, Value, json};
use windlass_client::api::Api;
use windlass_core::crd::{CustomResource, Versions};
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::{DynamicObject, ResourceInfo, Scope};
use windlass_core::rng::Rng;
use windlass_core::wire::{Undecodable, times};
use windlass_runtime::manager::{AdmissionCheck, install_all};

use super::TestCluster;
use judge::{CheckTarget, judge};
use repeats::Experiment;
pub use report::CheckReport;
pub(in crate::testing) use values::{Path, Values};

/// Values that are tried.
const VALUES: usize = 200;
/// Seed of the values.
const SEED: u64 = 1;

/// Checks a kind: the definition against an API server, the values against serde and the server.
///
/// The definition is installed on the embedded server, or on the real server with
/// `WINDLASS_TEST_SERVER=real`. A kind with several versions is installed with the checked one
/// alone, in a group of the check's own, such as `check-v1.example.dev`.
///
/// Then 200 objects are generated from the schema by a fixed seed, half of which fit the schema
/// while the others have a single change, and each is written as a dry run. An object that the
/// server stores must be readable by the type, with the server's defaults, and must come back
/// unchanged when the type writes it. A status is tried in the same way, 200 times, by updates of
/// an object that was stored. Objects of a kind with several versions are converted from each
/// version to each other version and back, and must come back unchanged.
///
/// A named field that serde reads, and writes again of none of these values nor of further ones, is
/// lost: one variant of an untagged enum takes the values of another, or the field is not written.
///
/// The report lists the places that serde checks and the server does not, and the size of the
/// definition; print the report, or compare it in a test.
///
/// ```no_run
/// # extern crate windlass_testing as windlass;
/// use windlass::testing::check;
/// # use windlass::crd::CustomResource;
///
/// # async fn example<Website: CustomResource>() {
/// let report = check::<Website>().await;
/// assert!(report.unchecked().is_empty(), "{report}");
/// # }
/// ```
///
/// # Panics
/// When the server refuses the definition, when serde and the server differ at a place without a
/// warning, when a field is lost, or when the server stores none of the objects or of the statuses;
/// the text lists the differences, or the first refusal.
pub async fn check<K: CustomResource>() -> CheckReport {
    check_from::<K>([]).await
}

/// Checks a kind as [`check`] does, with objects and statuses made from `examples` beside the
/// generated ones: for rules that hardly any generated object fits.
///
/// The server must accept each example unchanged. The generated objects have the metadata of the
/// first example.
///
/// # Panics
/// As [`check`], and when the server refuses an example.
pub async fn check_from<K: CustomResource>(examples: impl IntoIterator<Item = K>) -> CheckReport {
    match try_check_from(examples).await {
        Ok(report) => report,
        Err(error) => panic!("{error:?}"),
    }
}

/// Checks a kind as [`check`] does.
///
/// # Errors
/// [`ErrorKind::Usage`] with the differences, or when the server stored no object, or no status;
/// the error of the definition; errors of the server.
pub async fn try_check<K: CustomResource>() -> Result<CheckReport, Error> {
    try_check_from::<K>([]).await
}

/// Checks a kind as [`check_from`] does.
///
/// # Errors
/// As [`try_check`]; [`ErrorKind::Usage`] when the server refuses an example.
pub async fn try_check_from<K: CustomResource>(
    examples: impl IntoIterator<Item = K>,
) -> Result<CheckReport, Error> {
    checked::<K>(examples::as_json(examples)?, None).await
}

/// Checks a kind as [`check_from`] does, and finds the rules of its schema that its validating
/// webhooks repeat: [`CheckReport::repeated`]. `handler` is an `AdmissionHandler`, which
/// `Webhooks::build` returns.
///
/// The API server checks the schema before it asks a webhook, so a handler is never asked about an
/// object that breaks the schema. Stored objects are changed at one place each. Those that then
/// break exactly one rule of the schema, whether a bound or CEL, are judged by the handlers too, as
/// are those that the server stores. A rule is repeated at a field if the handlers refused such
/// objects there, and none that the server stores.
///
/// That is a remark and no proof: the handlers are asked about creations by a user without groups.
/// A rule about users, updates or other objects may stand behind the same field, and a bound that
/// is a little stricter than the schema's may not have been met. A refusal that names no field is
/// not compared.
///
/// # Panics
/// As [`check_from`].
pub async fn check_webhooks<K: CustomResource>(
    examples: impl IntoIterator<Item = K>,
    handler: &impl AdmissionCheck,
) -> CheckReport {
    match try_check_webhooks(examples, handler).await {
        Ok(report) => report,
        Err(error) => panic!("{error:?}"),
    }
}

/// Checks a kind as [`check_webhooks`] does.
///
/// # Errors
/// As [`try_check_from`].
pub async fn try_check_webhooks<K: CustomResource>(
    examples: impl IntoIterator<Item = K>,
    handler: &impl AdmissionCheck,
) -> Result<CheckReport, Error> {
    checked::<K>(examples::as_json(examples)?, Some(handler)).await
}

/// Checks a kind with examples, and the handlers of its webhooks if there are any.
async fn checked<K: CustomResource>(
    examples: Vec<Value>,
    handler: Option<&dyn AdmissionCheck>,
) -> Result<CheckReport, Error> {
    let definition = K::crd()?;
    let unchecked = windlass_core::crd::warnings::<K>()?;
    let info = info_of::<K>()?;
    let cluster = TestCluster::builder().try_start().await?;
    let installed = installed::<K>(&definition, &info.version);
    let group = installed.spec.group.clone().into();
    install_all(&cluster.client(), &[installed], true).await?;
    let schema = schema_of(&definition, &info.version);
    let api = api(&cluster, &ResourceInfo { group, ..info.clone() });
    let mut head = json!({ "apiVersion": info.api_version(), "kind": info.kind });
    examples::accepted(&api, &examples, &head).await?;
    // Rules may name the metadata: the objects made from examples have the metadata of the first
    // example.
    if let Some(metadata) = examples.first().and_then(|it| it.get("metadata")) {
        head["metadata"] = metadata.clone();
    }
    let values: Vec<Value> = examples.iter().cloned().map(without_head).collect();
    let statuses: Vec<Value> = examples.iter().filter_map(|it| it.get("status").cloned()).collect();
    let warnings = about_values(&unchecked);
    let target = CheckTarget {
        schema: &schema,
        warnings: &warnings,
        decode: &|value| decode::<K>(&with_head(value, &head)),
        store: &|value| Box::pin(store(&api, with_head(&value, &head))),
        examples: &values,
        is_exact: false,
    };
    let tally = judge(&target, Rng::seeded(SEED), VALUES).await;
    let status = status::judge_status::<K>(&api, &definition, &target, &head, &statuses).await?;
    let bytes = serde_json::to_vec(&definition).map_or(0, |text| text.len());
    let rules = count_rules(&whole_schema(&definition, &info.version));
    let mut report = CheckReport::new(&info.kind, bytes, rules, tally, status, unchecked.clone());
    if let Some(handler) = handler {
        let namespace = (info.scope == Scope::Namespaced).then(|| cluster.namespace());
        let (api, info, head, schema) = (&api, &info, &head, &schema);
        let experiment = Experiment { api, info, namespace, head, schema, handler };
        report = report.with_repeats(experiment.run(&values).await?);
    }
    let versions = Versions::of::<K>();
    let versions = versions.map(|all| versions::judge_versions(&all, &definition, &examples));
    report.with_versions(versions).into_result()
}

fn info_of<K: CustomResource>() -> Result<ResourceInfo, Error> {
    K::static_info().ok_or_else(|| {
        Error::new(
            ErrorKind::Usage,
            "cannot check a kind whose type is a value; derive `CustomResource`",
        )
    })
}

/// The remarks which say that an API server checks the values of a field less strictly than serde.
fn about_values(remarks: &[String]) -> Vec<String> {
    // A remark about the whole definition names no field; columns and selectable fields check
    // nothing.
    // The check has a verdict of its own about a lost field and about a function.
    let others = [
        ": kubectl shows `<invalid>` ",
        "` has no effect below a list or a map: ",
        " (`skip_serializing`), so an object that is written back loses the stored value",
        ": a function of serde makes ",
    ];
    let is_about_values = |remark: &&String| {
        remark.starts_with('.') && !others.iter().any(|text| remark.contains(text))
    };
    remarks.iter().filter(is_about_values).cloned().collect()
}

/// The definition that a check installs. That of a kind with several versions has a single one,
/// because nothing answers conversions, and a group of its own: a shared real server may already
/// store objects of the other versions, and other tests may work with the whole definition.
fn installed<K: CustomResource>(
    definition: &CustomResourceDefinition,
    version: &str,
) -> CustomResourceDefinition {
    let mut installed = definition.clone();
    if Versions::of::<K>().is_none() {
        return installed;
    }
    let spec = &mut installed.spec;
    spec.group = format!("check-{version}.{}", spec.group);
    installed.metadata.name = Some(format!("{}.{}", spec.names.plural, spec.group));
    spec.conversion = None;
    spec.versions.retain(|it| it.name == version);
    for version in &mut spec.versions {
        (version.served, version.storage) = (true, true);
    }
    installed
}

/// The schema of the fields that users write: without metadata, which the server checks, and
/// without the status.
fn schema_of(definition: &CustomResourceDefinition, version: &str) -> Value {
    without(whole_schema(definition, version), &["apiVersion", "kind", "metadata", "status"])
}

/// Returns the schema of a kind's spec; null without one.
pub(in crate::testing) fn spec_schema<K: CustomResource>() -> Result<Value, Error> {
    let info = K::static_info();
    let version = info.as_ref().map(|info| info.version.as_ref()).unwrap_or_default();
    Ok(whole_schema(&K::crd()?, version)["properties"]["spec"].take())
}

/// The schema of a version without metadata.
fn schema_of_version(definition: &CustomResourceDefinition, version: &str) -> Value {
    without(whole_schema(definition, version), &["apiVersion", "kind", "metadata"])
}

fn without(mut schema: Value, names: &[&str]) -> Value {
    for name in names {
        if let Some(Value::Object(fields)) = schema.get_mut("properties") {
            fields.remove(*name);
        }
    }
    schema
}

/// The schema of a version.
fn whole_schema(definition: &CustomResourceDefinition, version: &str) -> Value {
    let version = definition.spec.versions.iter().find(|it| it.name == version);
    let schema = version.and_then(|it| it.schema.as_ref()?.open_api_v3_schema.as_ref());
    serde_json::to_value(schema).unwrap_or_default()
}

/// The API of the kind, in the cluster's namespace if it is namespaced.
fn api(cluster: &TestCluster, info: &ResourceInfo) -> Api<DynamicObject> {
    let namespace = (info.scope == Scope::Namespaced).then(|| cluster.namespace());
    cluster.client().dynamic(info.clone(), namespace)
}

/// An object as it is sent: in the group of the definition that the check installed.
fn sent(api: &Api<DynamicObject>, mut object: Value) -> Result<DynamicObject, serde_json::Error> {
    if let Value::Object(fields) = &mut object {
        fields.insert("apiVersion".to_owned(), api.info().api_version().into());
    }
    serde_json::from_value(object)
}

/// An object with type and name.
fn with_head(value: &Value, head: &Value) -> Value {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut object = value.as_object().cloned().unwrap_or_default();
    for (key, value) in head.as_object().into_iter().flatten() {
        object.entry(key.clone()).or_insert_with(|| value.clone());
    }
    object.entry("metadata").or_insert_with(|| {
        // `Relaxed`: the number need only be unique.
        json!({ "name": format!("check-{}", COUNT.fetch_add(1, Ordering::Relaxed)) })
    });
    Value::Object(object)
}

/// Reads and writes an object like the kind's type; returns the part that users write.
fn decode<K: CustomResource>(object: &Value) -> Result<Value, String> {
    rewritten::<K>(object).map(without_head)
}

/// Reads and writes a whole object like the kind's type, as the client does: a time after jiff's
/// last is one that the type takes.
fn rewritten<K: CustomResource>(object: &Value) -> Result<Value, String> {
    let decoded = times::from_slice::<K>(object.to_string().as_bytes())
        .map_err(|error| Undecodable::explain_value::<K>(object, &error).to_string())?;
    let mut written = serde_json::to_value(&decoded).map_err(|error| error.to_string())?;
    times::encode_value(&mut written);
    Ok(written)
}

/// An object without the fields that every object has.
fn without_head(object: Value) -> Value {
    let fields = object.as_object().cloned().unwrap_or_default();
    let own = |key: &String| !matches!(key.as_str(), "apiVersion" | "kind" | "metadata" | "status");
    Value::Object(fields.into_iter().filter(|(key, _)| own(key)).collect::<Map<_, _>>())
}

/// Writes an object as a dry run, and returns the object that the server would store.
async fn store(api: &Api<DynamicObject>, object: Value) -> Result<Value, String> {
    let object = sent(api, object).map_err(|error| error.to_string())?;
    let stored = api.create(&object).dry_run().await.map_err(|error| error.to_string())?;
    let stored = serde_json::to_value(&stored).map_err(|error| error.to_string())?;
    Ok(without_head(stored))
}

/// The number of rules in a schema.
fn count_rules(schema: &Value) -> usize {
    match schema {
        Value::Object(fields) => {
            let own = fields.get("x-kubernetes-validations").and_then(Value::as_array);
            own.map_or(0, Vec::len) + fields.values().map(count_rules).sum::<usize>()
        }
        Value::Array(list) => list.iter().map(count_rules).sum(),
        _ => 0,
    }
}
