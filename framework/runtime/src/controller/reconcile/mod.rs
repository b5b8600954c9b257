//! Reconcile of an object: the finalizer, the call of the reconciler, the report of a failure, the
//! task beside the object.

mod left;
mod object_task;
mod observed;
mod report;
mod shadow;
mod step;
mod steps;

pub(crate) use self::left::records;
pub use self::object_task::ObjectTask;
pub(super) use self::object_task::{Tasks, boxed_task};
pub(super) use self::observed::ObservedStep;
pub use self::observed::{ObservedReconcile, ReconcileEnd, ReconcileObserver};
pub use self::report::OnFailure;
pub(super) use self::report::boxed_report;
pub(super) use self::shadow::{ShadowStep, show_wait};
pub(super) use self::step::ObjectStep;
pub(crate) use self::steps::soonest;
pub use self::steps::{Flow, Steps};
