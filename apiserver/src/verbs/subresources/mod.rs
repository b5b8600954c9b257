//! Subresources of single kinds: tokens of service accounts, parts of Pods, the approval of
//! certificates.

pub(crate) mod accounts;
pub(crate) mod certificates;
pub(crate) mod connect;
pub(crate) mod eviction;
pub(crate) mod kubelet;
pub(crate) mod pods;
