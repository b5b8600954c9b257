//! Quantities, addresses, URLs, versions, times and texts, with the semantics of the Go packages that
//! kube-apiserver uses: plain functions and types that know nothing of CEL values.

pub mod base64;
pub mod cidr;
pub mod duration;
pub mod format;
pub mod ip;
pub mod named_format;
pub mod number;
pub mod quantity;
pub mod regex;
pub mod semver;
pub mod text;
pub mod timestamp;
pub mod url;
