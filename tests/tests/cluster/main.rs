//! An operator's promises, and an API server's answers: on the embedded server by default, and on a
//! real kube-apiserver with `WINDLASS_TEST_SERVER=real`.

#![allow(clippy::unwrap_used, reason = "helpers of tests, outside of test functions")]

mod api_helpers;
mod api_reads;
mod api_subresources;
mod bench;
mod children;
mod conditions;
mod converge;
mod conversions;
mod definitions;
mod deletion;
mod dependents;
mod derived_controllers;
mod derived_kinds;
mod directions;
mod discovery;
mod drift;
mod fields;
mod gadget;
mod grant_names;
mod grants;
mod leadership;
mod list_watch;
mod lost_answers;
mod manager;
mod migration;
mod on_change;
mod plan;
mod projections;
mod reads;
mod refusals;
mod rights;
mod schema_derive;
mod schemas;
mod statuses;
mod terms;
mod typed_children;
mod verbs;
mod versions;
mod webhooks;
