//! Writes of the status: only differences, only upon the version that they were computed from.
//!
//! All writes go through one loop: compute the wanted status from the newest known status, send the
//! difference as a merge patch that carries the resourceVersion, and on 409 read the object and try
//! again. A merge patch, not a server-side apply, because a merge patch works for every kind,
//! whether or not its schema declares `conditions` as a map; the resourceVersion guards the list as
//! a whole.
//!
//! The newest known status lives in the context: a reconcile that sets three conditions sends three
//! small patches without a read in between. For a kind that is cached as a projection the whole
//! status is read from the API server first, because a merge of a part would remove the rest.

// DESIGN.md, 9: Status is written as a merge patch guarded by the resourceVersion
// DESIGN.md, 297: Finalizers are written to one uid, and a status to one resourceVersion

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::controller::{Context, Reconciler};
use windlass_client::api::{ApiFuture, Patch};
use windlass_core::conditions::{Condition, Conditions};
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::{DynamicObject, Resource, ResourceExt, StatusOf, StatusPatch};
use windlass_core::wire::Undecodable;

/// Most tries of a status write against other writers.
const TRIES: u32 = 5;

/// The newest known status and the version.
#[derive(Clone, Debug)]
pub(super) struct LatestStatus {
    /// Version that the next patch carries.
    resource_version: String,
    /// The whole status; an empty object when there is none.
    status: Value,
}

impl LatestStatus {
    /// Returns the status of an object that was read whole.
    fn of<K: Resource>(object: &K) -> Result<Self, Error> {
        let mut value = serde_json::to_value(object).map_err(|error| {
            let text = format!("cannot turn \"{}\" into JSON to read its status", object.key());
            Error::new(ErrorKind::Usage, text).because(error)
        })?;
        let status = value.get_mut("status").map(Value::take).unwrap_or_default();
        let status = if status.is_null() { Map::new().into() } else { status };
        Ok(Self { resource_version: object.resource_version().to_owned(), status })
    }
}

impl<C: Reconciler> Context<C> {
    /// Puts `condition` into `status.conditions`, replacing the condition of the same type. The
    /// condition is stamped with the reconciled generation (unless the condition names another),
    /// and with the time of the last transition, which moves only when the condition's status
    /// changes. Writes nothing when nothing changes.
    ///
    /// A condition that the controller declares by `conditions(…)` is written at the end of the
    /// reconcile, together with the others; a reason that the API server would refuse is moved to
    /// the message.
    ///
    /// ```
    /// # extern crate windlass_runtime as windlass;
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # use windlass::controller::{Action, Context, Reconciler, Result};
    /// # use windlass::prelude::*;
    /// # struct Rollouts;
    /// # impl Reconciler for Rollouts {
    /// #     type Object = Deployment;
    /// async fn reconcile(&self, _: &Deployment, cx: &Context<Self>) -> Result {
    ///     cx.set_condition(met("example.dev/Checked", "Passed", "all probes answer")).await?;
    ///     Ok(Action::done())
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when the object is gone, or has no status subresource;
    /// [`ErrorKind::Invalid`] when the condition does not fit the schema (an empty reason, say);
    /// [`ErrorKind::Conflict`] when others keep writing; [`ErrorKind::Usage`] for a condition that
    /// the controller computes.
    /// # Cancel safety
    /// Dropping the future cancels the request under way; a write may have been executed.
    pub async fn set_condition(&self, condition: Condition) -> Result<(), Error> {
        let Some(condition) = self.collected(condition)? else { return Ok(()) };
        let type_ = condition.type_.clone();
        self.write_condition(condition).await?;
        // After the write: a failed one leaves the condition to the outcome of the reconcile.
        self.attempt.cancel.collected().wrote(&type_);
        Ok(())
    }

    /// As [`set_condition`](Self::set_condition), for a condition that shows the outcome of the
    /// reconcile.
    pub(in crate::controller) async fn write_condition(
        &self,
        mut condition: Condition,
    ) -> Result<(), Error> {
        let generation = self.object.metadata().generation;
        condition.observed_generation = condition.observed_generation.or(generation);
        let now = self.clock().wall();
        self.write_status(&move |status| {
            let conditions = status.get("conditions").cloned().unwrap_or_default();
            let conditions = read_conditions(&conditions)?;
            let mut conditions = conditions.unwrap_or_default();
            if !conditions.set(condition.clone(), now) {
                return Ok(status.clone());
            }
            let mut status = status.clone();
            status["conditions"] = serde_json::to_value(conditions)
                .map_err(|e| unreadable_conditions(Undecodable::of(&e)))?;
            Ok(status)
        })
        .await
    }

    /// Returns the condition of that type from the newest known status.
    pub(in crate::controller) async fn condition(
        &self,
        type_: &str,
    ) -> Result<Option<Condition>, Error> {
        let latest = self.latest().await?;
        let conditions = latest.status.get("conditions").cloned().unwrap_or_default();
        let conditions = read_conditions(&conditions)?;
        Ok(conditions.and_then(|conditions| conditions.get(type_).cloned()))
    }

    /// Replaces the status by `status`, of the type of the kind's field `status` or a reference to
    /// it. Conditions stay unchanged unless `status` contains some; so does an `observedGeneration`
    /// that the controller keeps by `conditions(…)`. Writes nothing when nothing changes.
    ///
    /// Writing the same status again costs no request. Fields that the given status lacks are
    /// removed; [`patch_status`](Self::patch_status) leaves them.
    ///
    /// # Errors
    /// As [`set_condition`](Self::set_condition); [`ErrorKind::Usage`] when `status` does not
    /// become a JSON object.
    /// # Cancel safety
    /// As [`set_condition`](Self::set_condition).
    pub fn set_status(
        &self,
        status: impl StatusOf<<C::Object as Resource>::Kind> + Serialize,
    ) -> ApiFuture<'_, ()> {
        let wanted = serde_json::to_value(&status).map_err(|error| {
            Error::new(ErrorKind::Usage, "cannot turn the status into JSON").because(error)
        });
        // The type of the boxed future does not depend on that of the status: a status of another
        // kind is reported once, at the call.
        Box::pin(async move { self.replace_status(wanted?).await })
    }

    /// Replaces the status by a JSON value.
    async fn replace_status(&self, mut wanted: Value) -> Result<(), Error> {
        drop_nulls(&mut wanted);
        if !wanted.is_object() {
            return Err(Error::new(
                ErrorKind::Usage,
                "cannot write a status that is not an object",
            ));
        }
        let keeps_generation = self.shared.conditions.is_some_and(|kept| kept.keeps_generation());
        self.write_status(&move |status| {
            let mut wanted = wanted.clone();
            // Otherwise each reconcile would remove and add the field again.
            if let Some(observed) = status.get("observedGeneration").filter(|_| keeps_generation) {
                wanted["observedGeneration"] = observed.clone();
            }
            let brings_some = wanted["conditions"].as_array().is_some_and(|all| !all.is_empty());
            // An absent or empty list means that the caller does not set conditions.
            match status.get("conditions") {
                Some(conditions) if !brings_some => wanted["conditions"] = conditions.clone(),
                _ if wanted["conditions"].is_null() => drop_nulls(&mut wanted),
                _ => {}
            }
            Ok(wanted)
        })
        .await
    }

    /// Merges `patch` into the status (RFC 7386: `null` removes, lists are replaced): a `Value`, or
    /// the apply configuration of the status, whose names and types are checked. Writes nothing
    /// when nothing changes.
    ///
    /// ```
    /// # extern crate windlass_runtime as windlass;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use windlass::controller::{Action, Context, ControllerBuilder, Reconciler, Result};
    /// # struct Sites;
    /// # impl Reconciler for Sites {
    /// #     type Object = ConfigMap;
    /// #     async fn reconcile(&self, _: &ConfigMap, _: &Context<Self>) -> Result {
    /// #         Ok(Action::done())
    /// #     }
    /// # }
    /// # async fn body(cx: &Context<Sites>) -> Result {
    /// cx.patch_status(serde_json::json!({ "replicas": 3, "lastError": null })).await?;
    /// # Ok(Action::done())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`set_condition`](Self::set_condition).
    /// # Cancel safety
    /// As [`set_condition`](Self::set_condition).
    pub fn patch_status(
        &self,
        patch: impl StatusPatch<<C::Object as Resource>::Kind> + Serialize,
    ) -> ApiFuture<'_, ()> {
        let patch = serde_json::to_value(&patch).map_err(|error| {
            Error::new(ErrorKind::Usage, "cannot turn the change of the status into JSON")
                .because(error)
        });
        // As in `set_status`.
        Box::pin(async move {
            let patch = patch?;
            self.write_status(&move |status| {
                let mut status = status.clone();
                json_patch::merge(&mut status, &patch);
                Ok(status)
            })
            .await
        })
    }

    /// Applies `change` to the newest known status and sends the difference; repeats both after a
    /// conflict.
    pub(super) async fn write_status(
        &self,
        change: &(dyn Fn(&Value) -> Result<Value, Error> + Send + Sync),
    ) -> Result<(), Error> {
        let mut tries = 1;
        loop {
            let latest = self.latest().await?;
            let Some(difference) = difference(&latest.status, &change(&latest.status)?) else {
                return Ok(());
            };
            let version = &latest.resource_version;
            let body = json!({
                "metadata": { "resourceVersion": version },
                "status": difference,
            });
            let api = self.own_api();
            let write = api.patch(self.key.name(), Patch::Merge(body)).status();
            match self.answered(write, ("patch status", &self.key)).await {
                Ok((object, answer)) => {
                    // The next write of this reconcile starts from this version, and so is no
                    // conflict.
                    *self.latest.lock() = self.known(&object)?;
                    self.wrote_own(version, &object, &answer);
                    return Ok(());
                }
                Err(error) if error.is_conflict() && tries < TRIES => {
                    tries += 1;
                    let newest = api.get(self.key.name()).await?;
                    // The status belongs to an object that is gone; the successor is reconciled on
                    // its own.
                    if newest.uid() != self.object.uid() {
                        return Err(error);
                    }
                    *self.latest.lock() = self.known(&newest)?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes the object that a write of something else has left: a write of the status upon the
    /// version before would be refused.
    pub(super) fn wrote_beside_status(&self, written: &C::Object) {
        // The answer to a dry run has neither another version nor the statuses of earlier dry runs.
        // The error of a type that is no JSON is that of the next write of the status.
        if !self.is_dry_run()
            && let Ok(known) = self.known(written)
        {
            *self.latest.lock() = known;
        }
    }

    /// Returns the newest known status; at first the status of the reconciled object.
    async fn latest(&self) -> Result<LatestStatus, Error> {
        if let Some(latest) = self.latest.lock().clone() {
            return Ok(latest);
        }
        let latest = match self.known(&*self.object)? {
            Some(latest) => latest,
            None => self.whole().await?,
        };
        *self.latest.lock() = Some(latest.clone());
        Ok(latest)
    }

    /// Returns the status in `object`; `None` for a projection, which may contain only a part of
    /// the status.
    fn known(&self, object: &C::Object) -> Result<Option<LatestStatus>, Error> {
        if C::Object::projection().is_some() {
            Ok(None)
        } else {
            LatestStatus::of(object).map(Some)
        }
    }

    /// Reads the whole status from the API server, for an object that is cached in part.
    async fn whole(&self) -> Result<LatestStatus, Error> {
        let api = self.shared.client.dynamic(self.shared.info.clone(), self.key.namespace());
        let object: DynamicObject = api.get(self.key.name()).await?;
        if object.uid() != self.object.uid() {
            let text = format!(
                "cannot write the status of \"{}\": another object has its name now",
                self.key
            );
            return Err(Error::new(ErrorKind::Conflict, text));
        }
        LatestStatus::of(&object)
    }
}

/// Decodes `status.conditions`; `None` when there are none.
fn read_conditions(value: &Value) -> Result<Option<Conditions>, Error> {
    let read = Option::<Conditions>::deserialize(value);
    read.map_err(|error| {
        unreadable_conditions(Undecodable::explain_value::<Option<Conditions>>(value, &error))
    })
}

/// The error for a status whose `conditions` have another shape.
pub(super) fn unreadable_conditions(error: Undecodable) -> Error {
    let text = "cannot read `status.conditions` as Kubernetes conditions; \
                use `windlass::conditions::Conditions` in the status";
    Error::new(ErrorKind::Usage, text).because(error)
}

/// Returns the merge patch that turns `from` into `to`; `None` when they are equal.
fn difference(from: &Value, to: &Value) -> Option<Value> {
    if from == to {
        return None;
    }
    let (Value::Object(from), Value::Object(to)) = (from, to) else { return Some(to.clone()) };
    let gone = from.keys().filter(|key| !to.contains_key(*key));
    let mut patch: Map<String, Value> = gone.map(|key| (key.clone(), Value::Null)).collect();
    for (key, wanted) in to {
        match from.get(key) {
            Some(had) => patch.extend(difference(had, wanted).map(|sub| (key.clone(), sub))),
            None => patch.extend([(key.clone(), wanted.clone())]),
        }
    }
    Some(Value::Object(patch))
}

/// Removes nulls: in a merge patch `null` means "remove", so absent fields are left out.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_merged_into_the_old_gives_the_new() {
        let cases = [
            (json!({}), json!({ "a": 1 })),
            (json!({ "a": 1, "b": 2 }), json!({ "b": 2 })),
            (json!({ "a": { "x": 1, "y": 2 } }), json!({ "a": { "y": 3 } })),
            (json!({ "a": [1, 2] }), json!({ "a": [2] })),
            (json!({ "a": { "x": 1 } }), json!({ "a": 5 })),
        ];
        for (from, to) in cases {
            let patch = difference(&from, &to).expect("they differ");
            let mut merged = from.clone();
            json_patch::merge(&mut merged, &patch);
            assert_eq!(merged, to, "{patch}");
        }
    }

    #[test]
    fn a_difference_names_only_what_differs() {
        let from = json!({ "a": { "x": 1, "y": 2 }, "b": [1] });
        let to = json!({ "a": { "x": 1, "y": 3 }, "b": [1] });
        assert_eq!(difference(&from, &to), Some(json!({ "a": { "y": 3 } })));
        assert_eq!(difference(&to, &to), None);
    }
}
