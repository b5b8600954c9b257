//! Tests of the server's own objects, pages and metrics.

mod equality;
mod metrics;
mod own;
