//! Bytes of the Kubernetes API as values: pure functions, no I/O.

pub(crate) mod status;
