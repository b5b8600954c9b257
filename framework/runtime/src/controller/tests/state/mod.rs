//! State that a controller keeps between reconciles.

use super::*;

mod changes;
mod own_writes;
mod superseded;
