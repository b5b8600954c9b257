//! Processes outside of a cluster: at URLs, and in the process of a test's own API server.

mod at_url;
mod in_process;
mod left_over;
mod policies;
mod temporary;

use super::*;
