//! Reconcile of an object: the finalizer, the call of the reconciler, the report of a failure, the
//! task beside the object.

mod object_task;
mod observed;
mod report;
mod shadow;
mod step;
mod steps;
mod undriven;

pub use self::object_task::ObjectTask;
pub(super) use self::object_task::{Tasks, boxed_task};
pub(super) use self::observed::ObservedStep;
pub use self::observed::{
    AdmissionFuture, ObservedReconcile, ReconcileEnd, ReconcileObserver, current_reconcile,
};
pub use self::report::OnFailure;
pub(super) use self::report::boxed_report;
pub(super) use self::shadow::{ShadowStep, show_wait};
pub(super) use self::step::ObjectStep;
pub(crate) use self::steps::soonest;
pub use self::steps::{Flow, Steps};
pub(crate) use self::undriven::records;
