//! Adds and removes a finalizer of an object, without touching other writers' fields.
//!
//! Both are merge patches that carry the uid and the resourceVersion from which they were computed,
//! so a list of finalizers that another writer changed meanwhile is never overwritten: the API
//! server answers 409.
//!
//! Not included: the clean-up itself, and the decision when to run it.
//!
//! Controllers that name a [finalizer](crate::controller::ControllerBuilder::finalizer) need
//! neither function: they are for programs that manage finalizers by themselves.

// DESIGN.md, 10: Finalizers are changed by a guarded merge patch
// DESIGN.md, 297: Finalizers are written to one uid, and a status to one resourceVersion

use bytes::Bytes;
use serde_json::{Value, json};

use windlass_client::api::{Api, Patch};
use windlass_core::error::Error;
use windlass_core::resource::{Resource, ResourceExt};

/// Most attempts of a removal; each reads the object again after another writer's change.
const TRIES: u32 = 4;

/// Adds `finalizer` to `object`. `None` when the object is gone.
///
/// An object that carries the finalizer already is patched all the same: check `has_finalizer`
/// first.
/// The name must be qualified: `example.dev/dns`.
///
/// ```no_run
/// # extern crate windlass_runtime as windlass;
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use windlass::{api::Api, client::Client};
/// # async fn example(client: Client) -> Result<(), windlass::Error> {
/// use windlass::finalizer;
///
/// let maps: Api<ConfigMap> = client.namespace("shop");
/// let map = maps.get("home").await?;
/// let Some(map) = finalizer::add(&maps, &map, "example.dev/dns").await? else {
///     return Ok(()); // deleted meanwhile
/// };
/// // Work outside of the cluster, and its undoing.
/// finalizer::remove(&maps, &map, "example.dev/dns").await?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Conflict`](windlass_core::ErrorKind::Conflict) when another writer changed the object since
/// the read; otherwise any error of the API server.
/// # Cancel safety
/// Dropping the future cancels the request; the write may have been executed.
pub async fn add<K: Resource>(
    api: &Api<K>,
    object: &K,
    finalizer: &str,
) -> Result<Option<K>, Error> {
    Ok(add_to(api, object, finalizer).await?.map(|(object, _)| object))
}

/// [`add`], with the bytes of the API server's answer.
pub(crate) async fn add_to<K: Resource>(
    api: &Api<K>,
    object: &K,
    finalizer: &str,
) -> Result<Option<(K, Bytes)>, Error> {
    let finalizers = others(object, finalizer).chain([finalizer]).collect();
    gone_is_none(api, object, api.patch(object.name(), patch(object, finalizers)).answered().await)
}

/// Removes `finalizer` from `object`, or from the newest version if another writer changed it.
///
/// An object that is gone is no error, and neither is a missing finalizer. Returns the object as
/// left by the call, if the object still exists.
///
/// At most 4 attempts, each based on the newest version. Finalizers of others are never touched.
///
/// # Errors
/// [`Conflict`](windlass_core::ErrorKind::Conflict) when other writers keep changing the object;
/// otherwise any error of the API server.
/// # Cancel safety
/// Dropping the future cancels the request under way; a write may have been executed.
pub async fn remove<K: Resource>(
    api: &Api<K>,
    object: &K,
    finalizer: &str,
) -> Result<Option<K>, Error> {
    Ok(remove_from(api, object, finalizer).await?.map(|left| left.object))
}

/// Result of a removal.
pub(crate) struct RemovedFinalizer<K> {
    pub(crate) object: K,
    /// The resourceVersion that was patched; `None` when nothing was written.
    pub(crate) from: Option<String>,
    /// The API server's answer to the patch; empty when nothing was written.
    pub(crate) answer: Bytes,
}

/// [`remove`], with the version that the patch was based on.
pub(crate) async fn remove_from<K: Resource>(
    api: &Api<K>,
    object: &K,
    finalizer: &str,
) -> Result<Option<RemovedFinalizer<K>>, Error> {
    let mut newest = object.clone();
    let mut tries = 1;
    while newest.has_finalizer(finalizer) {
        let finalizers = others(&newest, finalizer).collect();
        let answer = api.patch(newest.name(), patch(&newest, finalizers)).answered().await;
        match gone_is_none(api, object, answer) {
            // Another writer was first, or an own attempt was executed without an answer: both are
            // decided again from the newest object.
            Err(error) if error.code() == Some(409) && tries < TRIES => {}
            answer => {
                let from = Some(newest.resource_version().to_owned());
                return Ok(answer?.map(|(object, answer)| RemovedFinalizer {
                    object,
                    from,
                    answer,
                }));
            }
        }
        tries += 1;
        match api.get_opt(object.name()).await? {
            // An object of the same name with another uid: the object to change is gone.
            Some(other) if other.uid() != object.uid() => return Ok(None),
            Some(other) => newest = other,
            None => return Ok(None),
        }
    }
    Ok(Some(RemovedFinalizer { object: newest, from: None, answer: Bytes::new() }))
}

/// The other finalizers of an object.
fn others<'a, K: Resource>(object: &'a K, finalizer: &'a str) -> impl Iterator<Item = &'a str> {
    let all = object.metadata().finalizers.iter().flatten().map(String::as_str);
    all.filter(move |other| *other != finalizer)
}

/// The patch to these finalizers, bound to the uid and the version of `object`.
fn patch<K: Resource>(object: &K, finalizers: Vec<&str>) -> Patch {
    let mut body = body(object.resource_version(), &finalizers);
    if !object.uid().is_empty() {
        body["metadata"]["uid"] = object.uid().into();
    }
    Patch::Merge(body)
}

/// The body of both patches: the version makes the API server refuse the patch after another write.
fn body(resource_version: &str, finalizers: &[&str]) -> Value {
    json!({ "metadata": { "resourceVersion": resource_version, "finalizers": finalizers } })
}

/// Turns the 404 of a deleted object into `None`. A 404 about anything else stays an error.
fn gone_is_none<K: Resource, A>(
    api: &Api<K>,
    object: &K,
    answer: Result<A, Error>,
) -> Result<Option<A>, Error> {
    let info = api.info();
    match answer {
        Ok(answer) => Ok(Some(answer)),
        // Also when an own attempt removed the last finalizer, and the answer was lost.
        Err(error) if error.is_missing([&info.plural, &info.kind], object.name()) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    #[test]
    fn c6_the_patch_keeps_the_finalizers_of_others_and_names_the_version() {
        let mut map = ConfigMap::default();
        map.metadata.resource_version = Some("7".into());
        map.metadata.uid = Some("u-1".into());
        map.metadata.finalizers = Some(vec!["a.dev/x".into(), "ours.dev/y".into()]);
        let Patch::Merge(left) = patch(&map, others(&map, "ours.dev/y").collect()) else {
            panic!("a merge patch");
        };
        assert_eq!(
            left,
            json!({ "metadata": { "resourceVersion": "7", "uid": "u-1", "finalizers": ["a.dev/x"] } })
        );
    }
}
