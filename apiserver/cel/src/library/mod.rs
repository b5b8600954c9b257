//! Quantities, addresses, URLs, versions, times and texts, with the semantics of the Go packages
//! that kube-apiserver uses: plain functions and types that know nothing of CEL values.

#[cfg(feature = "eval")]
pub mod base64;
#[cfg(feature = "eval")]
pub mod cidr;
#[cfg(feature = "eval")]
pub mod duration;
#[cfg(feature = "eval")]
pub mod format;
#[cfg(feature = "eval")]
pub mod ip;
#[cfg(feature = "eval")]
pub mod named_format;
#[cfg(feature = "eval")]
pub mod number;
#[cfg(feature = "eval")]
pub mod quantity;
pub mod regex;
#[cfg(feature = "eval")]
pub mod semver;
#[cfg(feature = "eval")]
pub mod text;
#[cfg(feature = "eval")]
pub mod timestamp;
#[cfg(feature = "eval")]
pub mod url;
