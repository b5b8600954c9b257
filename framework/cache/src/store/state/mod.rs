//! The state that the store's lock protects, and the changes that deltas make to it.

mod apply;
mod own_writes;
mod snapshot_diff;
#[expect(clippy::module_inception, reason = "the folder is named after its main type")]
mod state;
mod tombstones;

pub use own_writes::Unconfirmed;
pub(in crate::store) use snapshot_diff::Differences;
pub(crate) use snapshot_diff::SnapshotDiff;
pub(in crate::store) use state::{OwnWriteOrder, StoreState};
