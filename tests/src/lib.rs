//! Shared parts of the integration tests: a simulated world in which operator and API server run on
//! a single thread, on a clock that moves only when no task can run, with a single seed.

pub mod book;
pub mod built;
pub mod chaos;
pub mod left_out;
pub mod oracle;
pub mod resident;
pub mod sim;
pub mod widget;
