//! Controllers from their build to their stop.

use super::*;

mod builder;
mod lifecycle;
mod promises;
