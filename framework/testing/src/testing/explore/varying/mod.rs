//! Comparison of ends of runs whose names and values differ without a fault.
//!
//! Files: `names` puts keys in place of uids and of names that vary, `pattern` is the common part
//! of texts, `relations` are the places of an end that agree in each run. `elapsed` has the values
//! that follow from times and attempts: `readings` are the numbers in them, `history` their writes,
//! `facts` what else a run has shown, and a `side` is an end with these.

// DESIGN.md, 289: Explorations learn what varies from runs in another year

pub(super) mod elapsed;
pub(super) mod facts;
pub(super) mod history;
pub(super) mod names;
mod pattern;
mod readings;
pub(super) mod relations;
mod side;
