//! Verbs that need answers of webhooks: their runs, and conversions between versions.

pub(crate) mod convert;
pub(crate) mod run;
