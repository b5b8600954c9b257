//! Finalizers, steps and tasks of objects.

use super::*;

mod finalizers;
mod steps;
mod tasks;
