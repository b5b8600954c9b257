//! A rolling change of a field of a graph, as its description returns it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use k8s_openapi::api::apps::v1::ControllerRevision;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::settings::{Settings, rollout_settings};
use super::{Rollout, RolloutStatus};
use crate::controller::{Context, Reconciler};
use windlass_core::error::Error;
use windlass_core::rbac::Owns;
use windlass_core::resource::FullObject;

/// A rolling change that a graph applies.
pub(crate) struct RolloutPass<'a, C: Reconciler, K> {
    pub(crate) cx: &'a Context<C>,
    /// Name of the rollout, and mark of its children.
    pub(crate) name: &'a str,
    pub(crate) names: &'a [String],
    pub(crate) settings: Settings,
    pub(crate) is_ready: &'a (dyn Fn(&K) -> bool + Send + Sync),
}

/// The function that applies a rollout of whatever state.
type ApplyRollout<C, K> = Box<
    dyn for<'a> FnOnce(
            RolloutPass<'a, C, K>,
        )
            -> Pin<Box<dyn Future<Output = Result<RolloutStatus, Error>> + Send + 'a>>
        + Send,
>;

/// Children of a field with `#[dependent(rollout)]`: their names, the state that they are made
/// from, and the rules by which a change of the state reaches them.
///
/// ```
/// # extern crate windlass_runtime as windlass;
/// use k8s_openapi::api::apps::v1::StatefulSet;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use windlass::dependents::Dependents;
/// use windlass::prelude::*;
/// use windlass::rollout::RolloutChildren;
///
/// #[derive(Dependents)]
/// #[dependents(by = Databases)]
/// struct Parts {
///     #[dependent(rollout)]
///     shards: Vec<StatefulSet>,
/// }
///
/// #[derive(Controller)]
/// #[controller(for = ConfigMap, dependents(Parts))]
/// struct Databases;
///
/// # fn shard(name: &str, image: &String) -> StatefulSet { StatefulSet::default() }
/// impl DesiredParts for Databases {
///     async fn shards(
///         &self,
///         database: &ConfigMap,
///         _: &Context<Self>,
///     ) -> Result<RolloutChildren<Self, StatefulSet>> {
///         let names = (0..5).map(|n| format!("{}-{n}", database.name())).collect();
///         Ok(RolloutChildren::new("db:17".to_owned(), names, shard).max_unavailable(2))
///     }
/// }
/// # impl Reconciler for Databases {
/// #     type Object = ConfigMap;
/// #     async fn reconcile(&self, database: &ConfigMap, cx: &Context<Self>) -> Result {
/// #         Parts::apply(self, database, cx).await?.action()
/// #     }
/// # }
/// ```
#[must_use = "nothing is applied unless a description returns it"]
pub struct RolloutChildren<C: Reconciler, K> {
    pub(crate) names: Vec<String>,
    pub(crate) settings: Settings,
    pub(crate) apply: ApplyRollout<C, K>,
}

impl<C: Reconciler, K> fmt::Debug for RolloutChildren<C, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RolloutChildren")
            .field("names", &self.names)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl<C: Reconciler, K: FullObject> RolloutChildren<C, K> {
    /// Creates a rollout of the children `names`, each made by `desired` from its name and a state;
    /// see [`Rollout::apply`].
    pub fn new<S>(
        state: S,
        names: Vec<String>,
        desired: impl Fn(&str, &S) -> K + Send + Sync + 'static,
    ) -> Self
    where
        C: Owns<K> + Owns<ControllerRevision>,
        S: Serialize + DeserializeOwned + Send + Sync + 'static,
    {
        let apply: ApplyRollout<C, K> = Box::new(move |pass| {
            Box::pin(async move {
                let RolloutPass { cx, name, names, settings, is_ready } = pass;
                let rollout = Rollout { cx, name, state, settings, is_field: true };
                rollout.apply(names, desired, is_ready).await
            })
        });
        Self { names, settings: Settings::default(), apply }
    }

    rollout_settings!();
}
