//! Children, conditions and other writes by a context.

use super::*;

mod change_log;
mod children;
mod conditions;
mod drift;
mod duplicates;
mod gone;
mod graph;
mod own_parts;
mod patchers;
mod reads;
mod taken;
