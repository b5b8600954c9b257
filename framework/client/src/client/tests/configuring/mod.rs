//! Tests of configurations, through a client.

mod errors;
mod secrets;
