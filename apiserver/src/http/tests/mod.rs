//! Tests of the server through HTTP, by subject.

mod apply;
mod crd;
mod errors;
mod faults;
mod hostile;
mod protobuf;
mod subresources;
mod tokens;
mod verbs;
mod watch;
