//! Comparison of ends of runs whose names and values differ without a fault.
//!
//! Files: `elapsed` are values that grow with delays, `names` puts keys in place of uids and of
//! names that vary, `pattern` is the common part of texts, `relations` are the places of an end
//! that agree in each run.

// DESIGN.md, 289: Explorations learn what varies from runs in another year

pub(super) mod elapsed;
pub(super) mod names;
mod pattern;
pub(super) mod relations;
