//! Waits until a single object is in a state, or deleted, for a limited time.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use super::follow::{Follow, FollowedState};
use crate::api::Api;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::{PartialObject, Resource, ResourceExt};

/// The predicate of a condition.
type Test<K> = Box<dyn Fn(&K) -> bool + Send + Sync>;

/// A condition for [`Api::wait_for`]: a predicate of an object, and a name for error texts.
///
/// ```no_run
/// # extern crate windlass_client as windlass;
/// use k8s_openapi::api::core::v1::Pod;
/// use windlass::api::WaitCondition;
///
/// let running = WaitCondition::new("running", |pod: &Pod| {
///     pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running")
/// });
/// assert!(!running.holds(&Pod::default()));
/// ```
pub struct WaitCondition<K> {
    /// Completes "it is not …" in error texts.
    name: String,
    test: Test<K>,
}

impl<K: Resource> WaitCondition<K> {
    /// Creates a condition from a predicate; `name` completes "it is not …".
    ///
    /// The predicate is called for each state that the watch shows, and must not block.
    pub fn new(name: impl Into<String>, test: impl Fn(&K) -> bool + Send + Sync + 'static) -> Self {
        Self { name: name.into(), test: Box::new(test) }
    }

    /// Holds if `status.conditions` has a condition of this type and status, such as `Available`
    /// and `True`. A condition that was written for an older generation of the object does not
    /// count.
    ///
    /// Types and statuses are compared by case. The object is encoded for each check, so that any
    /// kind can be asked.
    pub fn is(kind: &str, status: &str) -> Self {
        let (kind, status) = (kind.to_owned(), status.to_owned());
        Self::new(format!("{kind}={status}"), move |object| {
            serde_json::to_value(object).is_ok_and(|object| has_condition(&object, &kind, &status))
        })
    }

    /// Whether `object` fulfils the condition.
    pub fn holds(&self, object: &K) -> bool {
        (self.test)(object)
    }
}

impl<K> fmt::Debug for WaitCondition<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WaitCondition").field(&self.name).finish()
    }
}

/// Whether the object has the condition, for the present generation.
fn has_condition(object: &Value, kind: &str, status: &str) -> bool {
    let generation = object["metadata"]["generation"].as_i64().unwrap_or(0);
    // Without `observedGeneration` there is nothing to compare: the condition counts as current.
    let current = |observer: &Value| {
        observer["observedGeneration"].as_i64().is_none_or(|observed| observed >= generation)
    };
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    current(&object["status"])
        && conditions
            .filter(|condition| condition["type"] == kind)
            .any(|condition| condition["status"] == status && current(condition))
}

impl<K: Resource> Api<K> {
    /// Waits until the object fulfils `condition`, for at most `timeout`, and returns that state.
    ///
    /// An object that does not exist yet is waited for. Needs the verbs `list` and `watch`.
    ///
    /// Lists, and then watches from that version; a watch that ends, breaks, falls silent or
    /// expires is continued. After a failed watch another list shows whether the server's store was
    /// set back; if so, the wait goes on with the restored state.
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// # use std::time::Duration;
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # use windlass::api::WaitCondition;
    /// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
    /// let api = client.namespace::<Deployment>("shop");
    /// api.wait_for("web", &WaitCondition::is("Available", "True"), Duration::from_secs(60)).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`] at the end of the time; [`ErrorKind::NotFound`] when the object
    /// existed and is deleted, or takes another uid; [`ErrorKind::Decode`] when the object does not
    /// decode; and lasting errors such as [`ErrorKind::Forbidden`].
    /// # Cancel safety
    /// Safe: dropping the future ends the watch.
    pub async fn wait_for(
        &self,
        name: &str,
        condition: &WaitCondition<K>,
        timeout: Duration,
    ) -> Result<K, Error> {
        let mut follow = Follow::new(self, name)?;
        let mut uid: Option<String> = None;
        let wait = async {
            loop {
                match follow.next().await? {
                    FollowedState::There(object) => {
                        // Another uid means that the object was deleted and created again in a gap
                        // of the watch.
                        if uid.as_ref().is_some_and(|uid| uid != object.uid()) {
                            return Err(self.went(name, condition));
                        }
                        if condition.holds(&object) {
                            return Ok(object);
                        }
                        uid = Some(object.uid().to_owned());
                    }
                    FollowedState::Absent if uid.is_some() => {
                        return Err(self.went(name, condition));
                    }
                    FollowedState::Absent => {}
                }
            }
        };
        // The follower waits out all passing failures: only this bounds the time.
        if let Some(result) = self.client().environment().clock.timeout(timeout, wait).await {
            return result;
        }
        let now = if uid.is_some() {
            format!("it is not {}", condition.name)
        } else {
            "it does not exist".to_owned()
        };
        Err(self.too_late(name, &now, timeout, follow.trouble))
    }

    /// Waits until the object of that name and `uid` is gone, for at most `timeout`.
    ///
    /// Another object of that name does not matter. With an empty `uid`, waits until there is none
    /// of that name. Only metadata is read. Needs the verbs `list` and `watch`.
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// # use std::time::Duration;
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
    /// let pods = client.namespace::<Pod>("shop");
    /// let deleted = pods.delete("web-0").await?;
    /// pods.wait_deleted("web-0", deleted.uid(), Duration::from_secs(60)).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`] at the end of the time, naming the finalizers; and lasting errors.
    /// # Cancel safety
    /// Safe: dropping the future ends the watch.
    pub async fn wait_deleted(
        &self,
        name: &str,
        uid: &str,
        timeout: Duration,
    ) -> Result<(), Error> {
        let mut follow = Follow::new(&self.metadata(), name)?;
        let mut last: Option<PartialObject> = None;
        let wait = async {
            loop {
                match follow.next().await? {
                    FollowedState::There(object) if uid.is_empty() || object.uid() == uid => {
                        last = Some(object);
                    }
                    // Gone, or another object of the name.
                    _ => return Ok(()),
                }
            }
        };
        if let Some(result) = self.client().environment().clock.timeout(timeout, wait).await {
            return result;
        }
        let now = match &last {
            Some(object) if !object.is_terminating() => "it is not marked for deletion".to_owned(),
            Some(object) => match object.metadata.finalizers.as_deref().unwrap_or_default() {
                [] => "it is still ending".to_owned(),
                finalizers => format!("its finalizers are {}", finalizers.join(", ")),
            },
            None => "nothing was seen of it".to_owned(),
        };
        Err(self.too_late(name, &now, timeout, follow.trouble))
    }

    /// The error for an object that was deleted during the wait.
    fn went(&self, name: &str, condition: &WaitCondition<K>) -> Error {
        let (what, wanted) = (self.target.noun(name), &condition.name);
        let text = format!("cannot wait for {what} to be {wanted}: it was deleted");
        Error::new(ErrorKind::NotFound, text)
    }

    /// The error at the end of the time, with the last failure as the cause.
    fn too_late(&self, name: &str, now: &str, timeout: Duration, trouble: Option<Error>) -> Error {
        let what = self.target.noun(name);
        let text = format!("waited {timeout:?} for {what} in vain: {now}");
        let error = Error::new(ErrorKind::Timeout, text);
        match trouble {
            Some(trouble) => error.because(trouble),
            None => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_condition_of_an_older_generation_does_not_count() {
        let object = |own: Value, status: Value| {
            let conditions = json!([{ "type": "Ready", "status": "True" }]);
            let mut object = json!({
                "metadata": { "generation": 2 }, "status": { "conditions": conditions },
            });
            object["status"]["conditions"][0]["observedGeneration"] = own;
            object["status"]["observedGeneration"] = status;
            has_condition(&object, "Ready", "True")
        };
        assert!(object(Value::Null, Value::Null));
        assert!(object(json!(2), json!(2)));
        assert!(!object(json!(1), json!(2)));
        assert!(!object(json!(2), json!(1)));
        assert!(!has_condition(&json!({}), "Ready", "True"));
    }
}
