//! Changes a copy of an object and sends exactly what was changed.
//!
//! The rest of the object is none of its business: what others write to other fields meanwhile
//! stays, unless that is to be a conflict. No server-side apply: fields are not owned by this, they
//! are changed once.

use std::fmt;
use std::ops::{Deref, DerefMut};

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::patch::merge_diff;
use super::{Api, Patch};
use crate::error::{Error, ErrorKind};
use crate::resource::{Resource, ResourceExt, Whole};
use crate::wire::Undecodable;

/// What the API server keeps: a copy in which it differs asks for nothing.
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

/// A copy of an object, to be changed as one likes; [`send`](Self::send) sends what differs.
///
/// ```no_run
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
    api: Api<K>,
    /// As it was read, or written last.
    base: K,
    object: K,
    is_locked: bool,
}

/// The object's name only: it may be a Secret.
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

impl<K: Whole> Api<K> {
    /// A copy of `object` to be changed; [`Patcher::send`] sends what differs then.
    pub fn patcher(&self, object: &K) -> Patcher<K> {
        let api = self.near(object);
        Patcher { api, base: object.clone(), object: object.clone(), is_locked: true }
    }
}

/// What differs, of the object and of its status.
struct Changes {
    object: Option<Value>,
    status: Option<Value>,
    wanted_status: Value,
}

impl<K: Whole> Patcher<K> {
    /// Lets it be sent whatever others wrote since the object was read: of a field that both changed
    /// this one wins, and of a list the whole. Otherwise that is a conflict. An object of another uid
    /// is never touched.
    pub fn unlocked(mut self) -> Self {
        self.is_locked = false;
        self
    }

    /// The object as it was read, or as the last write left it.
    pub fn original(&self) -> &K {
        &self.base
    }

    /// Would anything be sent?
    pub fn is_changed(&self) -> bool {
        // What does not become JSON is told when it is sent.
        self.changes().map_or(true, |changes| changes.object.or(changes.status).is_some())
    }

    /// Sends what was changed since the object was read, or sent last: one JSON merge patch of the
    /// object, and after it one of its status, which is a subresource. Nothing is sent when nothing
    /// was changed; true when something was. Fields that were removed are sent as `null`, lists as a
    /// whole. What the API server keeps by itself (uid, resourceVersion, managedFields, …) is not
    /// sent.
    ///
    /// It holds what the API server answered then, and may be changed and sent again.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] when somebody wrote since the object was read, or another object has
    /// its name (also [`ErrorKind::Invalid`], when it is [unlocked](Self::unlocked)): read it, and
    /// change that. [`ErrorKind::NotFound`] when it is gone, or a status was changed and the kind has
    /// no such subresource; [`ErrorKind::Usage`] when the name or the namespace was changed. When the
    /// object was written and its status was not, the status is still to be sent.
    pub async fn send(&mut self) -> Result<bool, Error> {
        self.send_telling(|_, _, _| {}).await
    }

    /// As [`send`](Self::send), telling after each write which version it was made upon (`None` when
    /// the API server was not told to check that), what it left, and the answer that says so.
    pub(crate) async fn send_telling(
        &mut self,
        mut told: impl FnMut(Option<&str>, &K, &[u8]) + Send,
    ) -> Result<bool, Error> {
        self.check_unmoved()?;
        let Changes { object, status, wanted_status } = self.changes()?;
        let is_written = object.is_some() || status.is_some();
        if let Some(patch) = object {
            let from = self.locked_at().map(str::to_owned);
            let (written, answer) = self.write(patch, false).await?;
            told(from.as_deref(), &written, &answer);
            self.object = written.clone();
            self.base = written;
            if status.is_some() {
                // Its status is still to be written.
                self.object = with_status(&self.base, wanted_status)?;
            }
        }
        if let Some(status) = status {
            let from = self.locked_at().map(str::to_owned);
            let (written, answer) = self.write(json!({ "status": status }), true).await?;
            told(from.as_deref(), &written, &answer);
            self.base = written;
        }
        self.object = self.base.clone();
        Ok(is_written)
    }

    /// The version that the next write is accepted upon, if upon no other.
    fn locked_at(&self) -> Option<&str> {
        Some(self.base.resource_version()).filter(|version| self.is_locked && !version.is_empty())
    }

    async fn write(&self, mut patch: Value, is_status: bool) -> Result<(K, Bytes), Error> {
        let version = self.base.resource_version();
        if let Some(version) = self.locked_at() {
            patch["metadata"]["resourceVersion"] = version.into();
        }
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

    fn changes(&self) -> Result<Changes, Error> {
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
            // A status that is taken away is emptied: it cannot be removed.
            (base, Value::Null) => merge_diff(base, &Map::new().into()),
            (base, wanted) => merge_diff(base, wanted),
        };
        Ok(Changes { object: merge_diff(&base, &wanted), status, wanted_status })
    }

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

fn take(object: &mut Value, field: &str) -> Value {
    object.as_object_mut().and_then(|object| object.remove(field)).unwrap_or_default()
}

fn json<K: Resource>(object: &K) -> Result<Value, Error> {
    serde_json::to_value(object).map_err(|error| unusable(object, Undecodable::of(&error)))
}

fn with_status<K: Resource>(object: &K, status: Value) -> Result<K, Error> {
    let mut value = json(object)?;
    if let Value::Object(value) = &mut value {
        value.insert("status".to_owned(), status);
    }
    // By way of a text: to decode a value is another copy of all the code that decodes the kind.
    serde_json::from_str(&value.to_string())
        .map_err(|error| unusable(object, Undecodable::explain_value::<K>(&value, &error)))
}

fn unusable<K: Resource>(object: &K, error: Undecodable) -> Error {
    let text = format!("cannot patch \"{}\": it does not become JSON and back", object.key());
    Error::new(ErrorKind::Usage, text).because(error)
}
