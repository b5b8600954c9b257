//! State of objects between reconciles: own writes, expected children, errors, versions. The state
//! is lost with the process: losing it costs requests, not correctness.

mod apply_cache;
mod change_log;
mod changes;
mod drift;
mod drivers;
mod expectations;
mod fights;
mod last_error;
mod object_memory;
mod own_write_filter;
mod reads;
mod sparse_lock;
mod spec_version;
mod superseded;
mod waits;

pub(super) use self::apply_cache::{
    ApplyCache, ChildHashes, ChildVersion, IntentHashes, RecalledApply, comparable, fingerprint,
};
pub use self::change_log::ChangeLog;
pub(super) use self::change_log::{
    ChangeRecord, Changelog, FieldChange, MANY_PATHS, differences, every_difference, hash,
    is_confidential,
};
pub use self::changes::Changes;
pub(super) use self::changes::LastReconciled;
pub(super) use self::drift::{applied_in, difference, has_lost, owned_content};
pub(super) use self::drivers::Drivers;
pub use self::drivers::ExternalRegistry;
pub(crate) use self::drivers::part_of;
pub use self::expectations::Pending;
pub(super) use self::expectations::{ObservedChild, ParentRef, WriteEffect, WrittenKind};
pub use self::last_error::LastError;
pub(super) use self::last_error::{FailureRecord, LastErrors};
pub(super) use self::object_memory::ObjectMemory;
pub(super) use self::own_write_filter::{FollowUp, OwnWriteFilter};
pub(super) use self::reads::{
    AttemptReads, FoundVersion, ReadChange, ReadMeters, ReadSelection, ReadSourceRef, ReadTarget,
    RegisteredReads, RunRef,
};
pub(super) use self::sparse_lock::SparseLock;
pub(super) use self::spec_version::SpecVersion;
pub(super) use self::superseded::Watch;
pub(super) use self::waits::Waiting;
pub(super) use self::waits::Waits;
pub(in crate::controller) use fights::without_fights;
