//! Plan of a controller, as its builder leaves it: identity, sources, permissions, and the options
//! of each reconcile. The builder writes it; a run and its reconciles read it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::context::{Context, TaskContext};
use super::source::{BackgroundSource, Predicate, ReasonNames, Source};
use super::worker::{AfterMaxRetries, LoopGuard, Rate, ReportFuture};
use super::{Failure, Reconciler, Result};
use crate::workqueue::RetryPolicy;
use windlass_core::rbac::Rule;
use windlass_core::resource::ResourceInfo;

/// Specification of a controller, as its builder left it.
pub(super) struct ControllerSpec<C: Reconciler> {
    pub(super) info: ResourceInfo,
    pub(super) name: Arc<str>,
    pub(super) workers: usize,
    pub(super) timeout: Duration,
    pub(super) retry: RetryPolicy,
    pub(super) finalizer: Option<Finalizer<C>>,
    pub(super) rules: Vec<Rule>,
    pub(super) sources: Vec<Source>,
    pub(super) options: ReconcileOptions<C>,
    pub(super) names: ReasonNames,
    pub(super) when: Option<Predicate<C::Object>>,
    pub(super) background_sources: Vec<Arc<dyn BackgroundSource>>,
    pub(super) debounce: Option<(Duration, Duration)>,
}

/// A boxed clean-up future.
pub(super) type Cleanup<'a> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

/// A finalizer's name, and the clean-up that runs before it is removed.
pub(super) struct Finalizer<C: Reconciler> {
    pub(super) name: String,
    pub(super) cleanup: for<'a> fn(&'a C, &'a C::Object, &'a Context<C>) -> Cleanup<'a>,
}

/// Settings that apply to each reconcile.
pub(super) struct ReconcileOptions<C: Reconciler> {
    /// The action when the retries of an object are used up.
    pub(super) then: AfterMaxRetries,
    /// The caller of `OnFailure::failed`, if the controller asked for reports.
    pub(super) report: Option<Report<C>>,
    /// Whether repeated failures are reported, too.
    pub(super) reports_every_failure: bool,
    /// Type of the condition that shows the outcome of the last reconcile.
    pub(super) outcome: Option<String>,
    pub(super) drops_superseded: bool,
    /// Byte limit for the last reconciled states; 0 keeps none.
    pub(super) tracked_bytes: usize,
    pub(super) task: Option<MakeTask<C>>,
    pub(super) guard: LoopGuard,
    pub(super) rate: Option<Rate>,
}

impl<C: Reconciler> Default for ReconcileOptions<C> {
    fn default() -> Self {
        Self {
            then: AfterMaxRetries::Rest,
            report: None,
            reports_every_failure: false,
            outcome: None,
            drops_superseded: false,
            tracked_bytes: 0,
            task: None,
            guard: LoopGuard::default(),
            rate: None,
        }
    }
}

/// The controller's report function.
pub(super) type Report<C> = for<'a> fn(&'a C, &'a Failure, &'a Context<C>) -> ReportFuture<'a>;

/// A boxed task future.
pub(super) type TaskFuture<'a> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

/// Constructor of the task of one object.
pub(super) type MakeTask<C> = for<'a> fn(&'a C, TaskContext<C>) -> TaskFuture<'a>;
