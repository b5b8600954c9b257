//! Settings of a builder for the causes of reconciles, and their filters.
//!
//! Three groups: filters (`when`, `owns_when`, …) drop changes before they become keys; sources
//! (`triggered_by`, `polls`, `timer`, `resync`) add keys without a change; `debounce` delays keys
//! that were added.

use std::time::Duration;

use super::{ControllerBuilder, static_info};
use crate::controller::Reconciler;
use crate::controller::source::{
    BackgroundSource, PollHandle, Predicate, Resync, Timer, TimerSource, Trigger, watches,
};
use windlass_cache::store::{Cached, Index, IndexValue};
use windlass_core::error::{Error, ErrorKind};
use windlass_core::rbac;
use windlass_core::resource::{ObjectKey, Resource};

impl<C: Reconciler> ControllerBuilder<C> {
    /// Lets only changes of the reconciled kind that pass `predicate` reconcile an object. After
    /// several calls a change has to pass all predicates. See
    /// [`predicates`](crate::controller::predicates).
    ///
    /// An object that is marked for deletion is reconciled whatever a predicate returns, and so is
    /// an object whose [pause](crate::controller::PAUSED) begins or ends; the task of a deleted
    /// object ends. Resyncs, timers and polls apply to the objects that pass as found at the start,
    /// or as shown once more unchanged. Triggers, children and watched objects are not filtered.
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
    /// use windlass::controller::predicates::{annotations_changed, generation_changed};
    ///
    /// let builder = ControllerBuilder::<Sites>::new()
    ///     .when(generation_changed().or(annotations_changed()));
    /// # let _ = builder;
    /// ```
    pub fn when(mut self, predicate: Predicate<C::Object>) -> Self {
        self.when = Some(match self.when.take() {
            Some(before) => before.and(predicate),
            None => predicate,
        });
        self
    }

    /// As [`owns`](Self::owns), for changes that pass `predicate`.
    ///
    /// The predicate filters changes, not ownership: a child of another owner never passes.
    /// Deletions of children have to pass the predicate, too, or a deleted child is not made again
    /// until the next reconcile.
    ///
    /// # Panics
    /// When the kind is known at run time only.
    #[track_caller]
    pub fn owns_when<K: Resource>(mut self, predicate: Predicate<K>) -> Self {
        let info = static_info::<K>();
        let reason = self.names.add(format!("owned {}", info.group_resource()));
        self.rules.extend(rbac::owned_rules(&info));
        self.sources.push(watches::owned::<K>(self.owners(false), reason, Some(predicate)));
        self
    }

    /// As [`watches`](Self::watches), for changes that pass `predicate`.
    ///
    /// An update passes or fails as a whole; if the update passes, the mapper runs for the old and
    /// the new state.
    ///
    /// # Panics
    /// When the kind is known at run time only.
    #[track_caller]
    pub fn watches_when<K: Resource>(
        mut self,
        predicate: Predicate<K>,
        mapper: fn(&Cached<K>) -> Vec<ObjectKey>,
    ) -> Self {
        let reason = self.watching::<K>();
        self.sources.push(watches::watched::<K>(mapper, reason, Some(predicate)));
        self
    }

    /// As [`watches_by`](Self::watches_by), for changes that pass `predicate`.
    ///
    /// # Panics
    /// When the kind is known at run time only.
    #[track_caller]
    pub fn watches_by_when<K: Resource, V: IndexValue>(
        mut self,
        predicate: Predicate<K>,
        index: Index<C::Object, V>,
    ) -> Self {
        let reason = self.watching::<K>();
        let source = watches::watched_by::<K, C::Object, V>(index, reason, Some(predicate));
        self.sources.push(source);
        self
    }

    /// Reconciles the keys that are sent to `trigger`.
    ///
    /// A trigger may serve several controllers of its kind, and a controller several triggers.
    pub fn triggered_by(mut self, trigger: &Trigger<C::Object>) -> Self {
        let reason = self.names.add(format!("trigger {}", trigger.name()));
        let target = trigger.target(reason);
        self.background_sources.push(target.clone());
        self.sources.push(Box::new(move |at| {
            target.attach::<C::Object>(at);
            Ok(Vec::new())
        }));
        self
    }

    /// Reconciles objects whose value in `polled` appears, changes or disappears. A poll has a
    /// single controller: a second controller with the same poll does not start.
    pub fn polls<V: PartialEq + Send + Sync + 'static>(mut self, polled: &PollHandle<V>) -> Self {
        let reason = self.names.add(format!("poll {}", polled.name()));
        match polled.background_source(reason) {
            Some(source) => self.background_sources.push(source),
            None => {
                // A builder method cannot fail: the error is returned when the sources are
                // attached.
                let text = format!(
                    "poll {} belongs to a controller already: share its `PollHandle`, and wake the \
                     other controller by a `Trigger`",
                    polled.name()
                );
                self.sources
                    .push(Box::new(move |_| Err(Error::new(ErrorKind::Usage, text.clone()))));
            }
        }
        self
    }

    /// Reconciles each object at intervals, whether anything changed or not.
    ///
    /// May be called several times: each timer has a separate interval and a reason `timer NAME`.
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
    /// use std::time::Duration;
    /// use windlass::controller::Timer;
    ///
    /// let probe = Timer::every(Duration::from_secs(60), "probe").idle(Duration::from_secs(10));
    /// let builder = ControllerBuilder::<Sites>::new().timer(probe);
    /// # let _ = builder;
    /// ```
    pub fn timer(mut self, timer: Timer) -> Self {
        let reason = self.names.add_timed(format!("timer {}", timer.name()));
        let timer_source = TimerSource::new(timer, reason);
        let source: std::sync::Arc<dyn BackgroundSource> = timer_source.clone();
        self.background_sources.push(source);
        self.sources.push(Box::new(move |at| Ok(vec![timer_source.attach::<C::Object>(at)])));
        self
    }

    /// Reconciles every object once per `period` (at least 1 s) without a change: spread over the
    /// period, and at a lower priority than changes. Default: 10 h, controller-runtime's
    /// `SyncPeriod`.
    ///
    /// A resync repairs drift that no watch shows, such as a deleted record of an external system.
    /// The cost is a reconcile for each object and period; reconciles whose writes would change
    /// nothing send no request.
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = Some(Resync::every(period));
        self
    }

    /// Disables the periodic resync.
    ///
    /// For reconcilers whose results depend on watched objects only.
    pub fn without_resync(mut self) -> Self {
        self.resync = None;
        self
    }

    /// Reconciles an object once `quiet` has passed without a further cause, and at the latest
    /// after `most`: a burst of changes leads to one reconcile. Objects found at the start,
    /// retries, requeues and timers start no such wait; if they are due during a wait, they join
    /// that wait. Default: no wait.
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
    /// use std::time::Duration;
    ///
    /// // One reconcile for a rollout that changes ten Pods within two seconds.
    /// let builder = ControllerBuilder::<Sites>::new()
    ///     .debounce(Duration::from_millis(500), Duration::from_secs(5));
    /// # let _ = builder;
    /// ```
    pub fn debounce(mut self, quiet: Duration, most: Duration) -> Self {
        self.debounce = Some((quiet, most));
        self
    }
}
