//! Changes, triggers, polls, timers and mappers that enqueue objects.

use super::*;

mod outside;
mod slow;
mod trigger_names;
mod undecodable;
