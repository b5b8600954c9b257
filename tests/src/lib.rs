//! Shared parts of the integration tests: a simulated world in which operator and API server run on
//! one thread, on a clock that moves only when no task can run, with one seed for everything.

pub mod book;
pub mod built;
pub mod chaos;
pub mod left_out;
pub mod oracle;
pub mod resident;
pub mod sim;
pub mod widget;
