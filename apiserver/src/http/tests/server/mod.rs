//! Tests of the server's own objects, pages and metrics.

mod metrics;
mod own;
