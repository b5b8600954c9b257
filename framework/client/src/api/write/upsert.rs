//! Brings an object to a wanted state, and creates a missing object.
//!
//! The read decides between creation and change, and another writer may decide otherwise in
//! between: then the creation finds the name taken, or the write finds another version. Both are
//! answered by another read, five attempts in all.

use serde_json::Value;

use crate::api::patch::merge_diff;
use crate::api::{Api, Patch, Retries};
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::{FullObject, Resource, ResourceExt};

/// Result of [`Api::create_or_update`] and [`Api::create_or_patch`].
///
/// ```no_run
/// # extern crate windlass_client as windlass;
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use windlass::api::Upserted;
/// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
/// let mut map = ConfigMap::default();
/// map.metadata.name = Some("settings".into());
/// let maps = client.namespace::<ConfigMap>("shop");
/// match maps.create_or_patch(&map, |map| map.immutable = Some(false)).await? {
///     Upserted::Created(_) => println!("created"),
///     Upserted::Updated(_) => println!("changed"),
///     Upserted::Unchanged(_) => println!("nothing to do"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Upserted<K> {
    /// The object did not exist and was created.
    Created(K),
    /// The object was changed.
    Updated(K),
    /// The object was as wanted: nothing was sent.
    Unchanged(K),
}

impl<K> Upserted<K> {
    /// Returns the object as stored now.
    pub fn into_object(self) -> K {
        match self {
            Self::Created(object) | Self::Updated(object) | Self::Unchanged(object) => object,
        }
    }

    /// Whether something was written.
    pub fn is_written(&self) -> bool {
        !matches!(self, Self::Unchanged(_))
    }
}

/// Request by which an existing object is changed.
///
/// A replacement writes the whole object, a patch the differences.
#[derive(Clone, Copy)]
enum WriteMethod {
    Replace,
    Patch,
}

impl<K: Resource> Api<K> {
    /// Creates `object` if there is none with that name; otherwise changes and replaces the stored
    /// object.
    ///
    /// `change` brings the stored object to the wanted state, and also runs on `object` before the
    /// creation. The replacement is bound to the version that was read. A conflict is retried from
    /// the read on, by [`Retries::DEFAULT_RETRY`]; a conflict that an own, executed attempt may
    /// have caused is [`ErrorKind::Ambiguous`], so that no change is made twice.
    ///
    /// A replace writes the whole object: fields that `K` does not know, because the API server is
    /// newer, are removed. [`create_or_patch`](Self::create_or_patch) leaves such fields alone, and
    /// [`apply`](Self::apply) needs no read. The status is not written if the status is a
    /// subresource.
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
    /// let mut map = ConfigMap::default();
    /// map.metadata.name = Some("settings".into());
    /// let wanted = |map: &mut ConfigMap| {
    ///     map.data.get_or_insert_default().insert("color".into(), "red".into());
    /// };
    /// let done = client.namespace("shop").create_or_update(&map, wanted).await?;
    /// println!("wrote: {}", done.is_written());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] when `object` has no name, or `change` moves the object to another name
    /// or namespace; [`ErrorKind::Conflict`] when all attempts met a conflict; and those of the
    /// calls.
    /// # Cancel safety
    /// Dropping the future cancels the request under way; a write may have been executed.
    pub async fn create_or_update(
        &self,
        object: &K,
        change: impl FnMut(&mut K),
    ) -> Result<Upserted<K>, Error>
    where
        K: FullObject,
    {
        self.upsert(object, change, WriteMethod::Replace).await
    }

    /// As [`create_or_update`](Self::create_or_update), but sends only the differences, as a merge
    /// patch bound to the version that was read. Lists are written whole.
    ///
    /// # Errors
    /// As [`create_or_update`](Self::create_or_update).
    /// # Cancel safety
    /// As [`create_or_update`](Self::create_or_update).
    pub async fn create_or_patch(
        &self,
        object: &K,
        change: impl FnMut(&mut K),
    ) -> Result<Upserted<K>, Error>
    where
        K: FullObject,
    {
        self.upsert(object, change, WriteMethod::Patch).await
    }

    /// Reads, then creates or changes; repeats after a conflict.
    async fn upsert(
        &self,
        object: &K,
        mut change: impl FnMut(&mut K),
        method: WriteMethod,
    ) -> Result<Upserted<K>, Error>
    where
        K: FullObject,
    {
        // An `Api` for all namespaces takes the namespace of the object.
        let api = self.near(object);
        let mut failures = 0;
        loop {
            let result = match api.get(object.name()).opt().await? {
                None => api.create_changed(object, &mut change).await,
                Some(stored) => api.change(stored, &mut change, method).await,
            };
            match result {
                // Another writer was faster: read again.
                Err(error) if error.is_conflict() || error.is_already_exists() => {
                    failures += 1;
                    let environment = self.client().environment();
                    if !Retries::DEFAULT_RETRY.pause(environment, failures).await {
                        return Err(error.note(&format!("tried {failures} times")));
                    }
                }
                result => return result,
            }
        }
    }

    /// Creates `object` after the change.
    async fn create_changed(
        &self,
        object: &K,
        change: &mut impl FnMut(&mut K),
    ) -> Result<Upserted<K>, Error>
    where
        K: FullObject,
    {
        let mut wanted = object.clone();
        change(&mut wanted);
        self.check_unmoved(object, &wanted)?;
        self.create(&wanted).await.map(Upserted::Created)
    }

    /// Changes the stored object, and writes the result unless nothing differs.
    async fn change(
        &self,
        stored: K,
        change: &mut impl FnMut(&mut K),
        method: WriteMethod,
    ) -> Result<Upserted<K>, Error>
    where
        K: FullObject,
    {
        let mut wanted = stored.clone();
        change(&mut wanted);
        self.check_unmoved(&stored, &wanted)?;
        // `change` may replace the whole value; the version and uid that were read still guard the
        // write.
        let (own, read) = (wanted.metadata_mut(), stored.metadata());
        own.resource_version.clone_from(&read.resource_version);
        own.uid.clone_from(&read.uid);
        let Some(mut patch) = merge_diff(&json(&stored)?, &json(&wanted)?) else {
            return Ok(Upserted::Unchanged(stored));
        };
        let written = match method {
            WriteMethod::Replace => self.replace(&wanted).await,
            WriteMethod::Patch => {
                patch["metadata"]["resourceVersion"] = stored.resource_version().into();
                self.patch(stored.name(), Patch::Merge(patch)).await
            }
        };
        written.map(Upserted::Updated)
    }

    /// Refuses a change of name or namespace.
    fn check_unmoved(&self, before: &K, after: &K) -> Result<(), Error> {
        if (before.name(), before.namespace()) == (after.name(), after.namespace()) {
            return Ok(());
        }
        let what = self.info().group_resource();
        let text = format!(
            "cannot change {what} \"{}\": the change gave it another name or namespace",
            before.name()
        );
        Err(Error::new(ErrorKind::Usage, text))
    }
}

/// Encodes an object; the error names the object.
fn json<K: Resource>(object: &K) -> Result<Value, Error> {
    serde_json::to_value(object).map_err(|error| {
        let text = format!("cannot write \"{}\": it cannot be serialized as JSON", object.name());
        Error::new(ErrorKind::Usage, text).because(error)
    })
}
