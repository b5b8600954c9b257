//! What the integration tests share: a simulated world in which operator and API server run on one
//! thread, on a clock that moves only when nobody can work, with one seed for everything.

pub mod book;
pub mod built;
pub mod chaos;
pub mod left_out;
pub mod oracle;
pub mod resident;
pub mod sim;
pub mod widget;
