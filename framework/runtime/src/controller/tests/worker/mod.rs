//! Failures, deadlines, limits.

use super::*;

mod dropped;
mod endless;
mod failures;
mod namespaces;
mod waiting;
