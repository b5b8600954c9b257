//! Changes a copy of an object and sends exactly the differences.
//!
//! Other fields are not sent: other writers' changes to them stay, unless they should be a
//! conflict. This is no server-side apply: the fields are changed once, and not owned.
//!
//! Invariant: `base` is the last state that the API server is known to have stored, and `object` is
//! the caller's copy. The difference of the two is all that is sent.

use std::fmt;
use std::ops::{Deref, DerefMut};

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::api::patch::merge_diff;
use crate::api::{Api, Patch};
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::{FullObject, Resource, ResourceExt};
use windlass_core::wire::Undecodable;

// DESIGN.md, 297: Finalizers are written to one uid, and a status to one resourceVersion

/// Most tries of an unlocked status against other writers.
const TRIES: u32 = 5;
/// Metadata that the API server maintains, whose differences are not sent.
const SERVER_FIELDS: [&str; 8] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// A copy of an object to change freely; [`send`](Self::send) sends the differences.
///
/// ```no_run
/// # extern crate windlass_client as windlass;
/// # use k8s_openapi::api::apps::v1::Deployment;
/// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
/// let deployments = client.namespace::<Deployment>("shop");
/// let mut web = deployments.patcher(&deployments.get("web").await?);
/// web.spec.get_or_insert_default().replicas = Some(3);
/// web.metadata.labels.get_or_insert_default().insert("tier".into(), "front".into());
/// let is_written = web.send().await?;
/// # Ok(())
/// # }
/// ```
pub struct Patcher<K> {
    /// API of the object's namespace.
    api: Api<K>,
    /// The object as last read or written.
    base: K,
    /// The caller's copy, reached by deref.
    object: K,
    /// Whether a write fails when another writer was first.
    is_locked: bool,
}

/// Shows the object's name only: the object may be a Secret.
impl<K: Resource> fmt::Debug for Patcher<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Patcher")
            .field("api", &self.api)
            .field("object", &self.base.key())
            .finish_non_exhaustive()
    }
}

impl<K> Deref for Patcher<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.object
    }
}

impl<K> DerefMut for Patcher<K> {
    fn deref_mut(&mut self) -> &mut K {
        &mut self.object
    }
}

impl<K: FullObject> Api<K> {
    /// Returns a copy of `object` to change; [`Patcher::send`] sends the differences.
    ///
    /// Nothing is sent. For an API of all namespaces the patcher takes the object's own namespace.
    pub fn patcher(&self, object: &K) -> Patcher<K> {
        let api = self.near(object);
        Patcher { api, base: object.clone(), object: object.clone(), is_locked: true }
    }
}

/// Differences of the object and of the status, as merge patches.
struct PatchChanges {
    /// Patch of the object; `None` without a difference.
    object: Option<Value>,
    /// Patch of the status; `None` without a difference.
    status: Option<Value>,
    /// The whole changed status, to be kept when the object is written first.
    wanted_status: Value,
}

impl<K: FullObject> Patcher<K> {
    /// Sends the changes even if the object was written since the read: a field that both changed
    /// gets this value, and a list is replaced as a whole. Otherwise that is a conflict. An object
    /// of another uid is never touched: a status, of which the API server does not compare the uid,
    /// is sent upon the newest version, and read again after a conflict, which needs the right to
    /// get the object.
    ///
    /// Default: locked, a write in between is a [`Conflict`](ErrorKind::Conflict).
    pub fn unlocked(mut self) -> Self {
        self.is_locked = false;
        self
    }

    /// Returns the object as read, or as the last write left it.
    pub fn original(&self) -> &K {
        &self.base
    }

    /// Whether [`send`](Self::send) would send anything.
    ///
    /// Costs the encoding of both copies.
    pub fn is_changed(&self) -> bool {
        // `send` reports an object that cannot be serialized as JSON.
        self.changes().map_or(true, |changes| changes.object.or(changes.status).is_some())
    }

    /// Sends the changes since the object was read, or sent last; returns whether there were any.
    ///
    /// The object is sent as a JSON merge patch; the status, which is a subresource, as another
    /// patch afterwards. Nothing is sent without a change. Fields that were removed are sent as
    /// `null`, lists as a whole. Fields that the API server maintains (uid, resourceVersion,
    /// managedFields, …) are not sent.
    ///
    /// The copy then holds the API server's answer, and may be changed and sent again.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] when the object was written since the read, or another object has
    /// the name (also [`ErrorKind::Invalid`], when the copy is [unlocked](Self::unlocked)): read
    /// the object again, and change the new copy. [`ErrorKind::NotFound`] when the object is gone,
    /// or a status was changed and the kind has no such subresource; [`ErrorKind::Usage`] when the
    /// name or the namespace was changed. When the object was written and the status was not, the
    /// status is still to be sent.
    /// # Cancel safety
    /// Dropping the future cancels the request under way. The write may have been executed, which
    /// the copy does not show: the next write of a locked copy is then a conflict.
    pub async fn send(&mut self) -> Result<bool, Error> {
        self.send_with_callback(|_, _, _| {}).await
    }

    /// As [`send`](Self::send). Calls `on_write` after each write with the version that the write
    /// was based on (`None` when the API server did not check any), the written object, and the
    /// answer.
    #[doc(hidden)]
    pub async fn send_with_callback(
        &mut self,
        mut on_write: impl FnMut(Option<&str>, &K, &[u8]) + Send,
    ) -> Result<bool, Error> {
        self.check_unmoved()?;
        let PatchChanges { object, status, wanted_status } = self.changes()?;
        let is_written = object.is_some() || status.is_some();
        if let Some(patch) = object {
            let from = self.locked_at().map(str::to_owned);
            let (written, answer) = self.write(patch, from.as_deref(), false).await?;
            on_write(from.as_deref(), &written, &answer);
            // Stored at once: if writing the status fails, only the status is still to be sent.
            self.object = written.clone();
            self.base = written;
            if status.is_some() {
                // The answer has the old status: the changed status is kept, to be sent next.
                self.object = with_status(&self.base, wanted_status)?;
            }
        }
        if let Some(status) = status {
            let from = self.locked_at().map(str::to_owned);
            let (written, answer) = self.write_status(status).await?;
            on_write(from.as_deref(), &written, &answer);
            self.base = written;
        }
        self.object = self.base.clone();
        Ok(is_written)
    }

    /// The only version that the next write accepts; `None` accepts any.
    fn locked_at(&self) -> Option<&str> {
        Some(self.base.resource_version()).filter(|version| self.is_locked && !version.is_empty())
    }

    /// Sends the patch of the status. For most kinds the API server takes no uid there: the version
    /// alone tells another object of the name.
    async fn write_status(&self, status: Value) -> Result<(K, Bytes), Error> {
        let patch = json!({ "status": status });
        let mut version = self.base.resource_version().to_owned();
        if self.is_locked || version.is_empty() || self.base.uid().is_empty() {
            return self.write(patch, self.locked_at(), true).await;
        }
        let mut tries = 1;
        loop {
            match self.write(patch.clone(), Some(&version), true).await {
                Err(error) if error.is_conflict() && tries < TRIES => {
                    tries += 1;
                    let newest = self.api.get(self.base.name()).await?;
                    if newest.uid() != self.base.uid() {
                        return Err(error);
                    }
                    version = newest.resource_version().to_owned();
                }
                answer => return answer,
            }
        }
    }

    /// Sends a patch, bound to the uid and to a version, if there is one.
    async fn write(
        &self,
        mut patch: Value,
        locked_at: Option<&str>,
        is_status: bool,
    ) -> Result<(K, Bytes), Error> {
        let version = self.base.resource_version();
        // Makes the patch fail as a conflict if the object was written since.
        if let Some(version) = locked_at {
            patch["metadata"]["resourceVersion"] = version.into();
        }
        // Another object of the same name is never touched.
        if !self.base.uid().is_empty() {
            patch["metadata"]["uid"] = self.base.uid().into();
        }
        let write = self.api.patch(self.base.name(), Patch::Merge(patch));
        let write = if is_status { write.status() } else { write };
        write.answered().await.map_err(|error| match error.is_conflict() {
            true => error.note(&format!("it was read at resourceVersion {version}")),
            false => error,
        })
    }

    /// The differences between the copy and the object that was read.
    fn changes(&self) -> Result<PatchChanges, Error> {
        let (mut base, mut wanted) = (json(&self.base)?, json(&self.object)?);
        let base_status = take(&mut base, "status");
        let wanted_status = take(&mut wanted, "status");
        for object in [&mut base, &mut wanted] {
            if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
                metadata.retain(|field, _| !SERVER_FIELDS.contains(&field.as_str()));
            }
        }
        let status = match (&base_status, &wanted_status) {
            (Value::Null, Value::Null) => None,
            // A status cannot be removed: a removed status is emptied.
            (base, Value::Null) => merge_diff(base, &Map::new().into()),
            (base, wanted) => merge_diff(base, wanted),
        };
        Ok(PatchChanges { object: merge_diff(&base, &wanted), status, wanted_status })
    }

    /// Refuses a copy with another name or namespace.
    fn check_unmoved(&self) -> Result<(), Error> {
        let (base, object) = (&self.base, &self.object);
        if (base.name(), base.namespace()) == (object.name(), object.namespace()) {
            return Ok(());
        }
        let what = self.api.info().group_resource();
        let text = format!(
            "cannot patch {what} \"{}\": the copy was given another name or namespace",
            base.name()
        );
        Err(Error::new(ErrorKind::Usage, text))
    }
}

/// Removes a field; null when it is absent.
fn take(object: &mut Value, field: &str) -> Value {
    object.as_object_mut().and_then(|object| object.remove(field)).unwrap_or_default()
}

fn json<K: Resource>(object: &K) -> Result<Value, Error> {
    serde_json::to_value(object).map_err(|error| unusable(object, Undecodable::of(&error)))
}

/// The object with another status.
fn with_status<K: Resource>(object: &K, status: Value) -> Result<K, Error> {
    let mut value = json(object)?;
    if let Value::Object(value) = &mut value {
        value.insert("status".to_owned(), status);
    }
    // Through a text: decoding from a `Value` would be a second copy of the kind's decoder.
    serde_json::from_str(&value.to_string())
        .map_err(|error| unusable(object, Undecodable::explain_value::<K>(&value, &error)))
}

/// The error of a copy that cannot be converted.
fn unusable<K: Resource>(object: &K, error: Undecodable) -> Error {
    let text =
        format!("cannot patch \"{}\": it cannot be serialized as JSON and read back", object.key());
    Error::new(ErrorKind::Usage, text).because(error)
}
