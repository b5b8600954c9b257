//! Scripts of requests, the recorded answers of a real kube-apiserver to them, and a runner.
//!
//! `corpus/` holds the scripts, `recorded/` the answers of kube-apiserver 1.36.3 with
//! `differences.txt`, the steps that the embedded server answers otherwise. README.md explains the
//! formats.

pub mod compare;
mod connect;
pub mod differences;
pub mod differential;
mod kubeconfig;
pub mod measure;
pub mod normal;
pub mod play;
mod protobuf;
pub mod script;
mod send;
pub mod target;
