//! A built controller: the manager holds and runs it, and reads its state.

mod busy;
mod dump;
mod erased;
mod handle;
mod keys;
mod planning;

pub use self::busy::BusyReport;
pub use self::erased::{ControllerRun, ControllerState, ErasedController, PlanRun};
pub(super) use self::handle::Handle;
