//! Settings of a builder for changes since the last successful reconcile.

use std::future::Future;
use std::pin::Pin;

use super::ControllerBuilder;
use crate::controller::spec::ChangeHandler;
use crate::controller::{Context, OwnsConditions, Reconciler, Result};
use windlass_core::conditions::ConditionSet;

/// The boxed future of a handler of [`ControllerBuilder::on_change`].
pub type ChangeFuture<'a> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

impl<C: Reconciler> ControllerBuilder<C> {
    /// Keeps each object's state at the last reconcile, so that
    /// [`Context::changes`](crate::controller::Context::changes) can return the difference. At most
    /// 64 MiB of such states, in JSON; the state that was reconciled longest ago is evicted first.
    ///
    /// States that are evicted read as unknown: the reconcile then treats everything as changed.
    pub fn track_changes(self) -> Self {
        self.track_changes_within(64 << 20)
    }

    /// As [`track_changes`](Self::track_changes), with at most `bytes` bytes.
    ///
    /// Zero keeps no states. Each state counts with the JSON and about 256 bytes.
    pub fn track_changes_within(mut self, bytes: usize) -> Self {
        self.options.tracked_bytes = bytes;
        self
    }

    /// Runs a handler before the reconciler when a field differs from the last successful reconcile
    /// of the object, by `is_same`; `field` names the field in the text of a failure. Handlers run
    /// in sequence, in the order of the calls. A failed handler fails the reconcile, and runs again
    /// at the next attempt, whether or not the field has changed once more.
    ///
    /// The derive writes this call as `on_change(spec.host = rehost)`, with a method of the
    /// controller.
    ///
    /// When the last state is not known, every handler runs: at the first reconcile of an object,
    /// after a restart or a change of leaders, and when the state was evicted. So a handler has to
    /// tolerate repetitions, as a reconciler does. Switches [`track_changes`](Self::track_changes)
    /// on, unless already on. Handlers do not run for an object that is being deleted.
    ///
    /// ```
    /// # extern crate windlass_runtime as windlass;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use windlass::controller::{Action, Context, ControllerBuilder, Reconciler, Result};
    /// struct Sites;
    ///
    /// impl Sites {
    ///     async fn republish(&self, site: &ConfigMap, _: &Context<Self>) -> Result<()> {
    ///         println!("{:?} has new pages", site.metadata.name);
    ///         Ok(())
    ///     }
    /// }
    /// # impl Reconciler for Sites {
    /// #     type Object = ConfigMap;
    /// #     async fn reconcile(&self, _: &ConfigMap, _: &Context<Self>) -> Result {
    /// #         Ok(Action::done())
    /// #     }
    /// # }
    ///
    /// let builder = ControllerBuilder::<Sites>::new().on_change(
    ///     "data",
    ///     |old, new| old.data == new.data,
    ///     |sites, site, cx| Box::pin(sites.republish(site, cx)),
    /// );
    /// # let _ = builder;
    /// ```
    pub fn on_change(
        mut self,
        field: &'static str,
        is_same: fn(&C::Object, &C::Object) -> bool,
        run: for<'a> fn(&'a C, &'a C::Object, &'a Context<C>) -> ChangeFuture<'a>,
    ) -> Self {
        self.options.on_change.push(ChangeHandler { field, is_same, run, condition: None });
        if self.options.tracked_bytes == 0 { self.track_changes() } else { self }
    }

    /// Shows the outcome of the handler that was added last in a declared condition; see
    /// [`conditions`](Self::conditions). Without an earlier handler the call has no effect.
    ///
    /// | handler | condition |
    /// |---|---|
    /// | has succeeded, or had nothing to do since the last success | true, `Succeeded` |
    /// | has failed | false, `HandlerFailed`, with the error |
    /// | waits ([`Failure::wait_for`](crate::controller::Failure::wait_for)) | false, with the reason and the text of the wait |
    /// | has panicked, or was dropped at the deadline of the reconcile | unknown, `HandlerNotFinished` |
    /// | was not reached, because an earlier handler failed | as before |
    ///
    /// A condition of `stalled_on(…)`, which is true in a bad state, shows the failures that only a
    /// change of the object helps against:
    ///
    /// | handler | condition of `stalled_on(…)` |
    /// |---|---|
    /// | has succeeded, or had nothing to do since the last success | absent |
    /// | has failed with [`Failure::terminal`](crate::controller::Failure::terminal) | true, `HandlerFailed`, with the error; `Stalled` and `Ready` follow |
    /// | waits | absent |
    /// | has failed otherwise, has panicked, was dropped, or was not reached | as before |
    ///
    /// The condition is written with all others at the end of the reconcile, and `Ready` follows if
    /// the condition is among `ready(all(…))`. Several handlers may share a condition: the last
    /// handler that ran counts, and a failing handler is the last. A value that the reconciler sets
    /// afterwards in the same condition takes the place of the outcome. A controller whose handler
    /// has a condition that the controller does not keep does not start.
    ///
    /// The derive writes this call as `on_change(spec.host = rehost, condition = HostReady)`.
    pub fn change_condition<T: ConditionSet>(mut self, condition: &T) -> Self
    where
        C: OwnsConditions<T>,
    {
        if let Some(handler) = self.options.on_change.last_mut() {
            handler.condition = Some(condition.as_str().to_owned());
        }
        self
    }
}
