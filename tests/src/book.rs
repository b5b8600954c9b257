//! The book's chapters as documentation, so that `cargo test` compiles their code blocks.
//!
//! The blocks of "Your first operator" are a single program: `examples/src/bin/first_operator.rs`.

#[doc = include_str!("../../book/src/client.md")]
pub mod client {}

#[doc = include_str!("../../book/src/testing.md")]
pub mod testing {}

#[doc = include_str!("../../book/src/testing/exploring-faults.md")]
pub mod testing_exploring_faults {}

#[doc = include_str!("../../book/src/api-server.md")]
pub mod api_server {}

#[doc = include_str!("../../book/src/coming-from/client-go.md")]
pub mod coming_from_client_go {}

#[doc = include_str!("../../book/src/cache/reflector.md")]
pub mod cache_reflector {}
#[doc = include_str!("../../book/src/cache/informers.md")]
pub mod cache_informers {}

#[doc = include_str!("../../book/src/cache/queues.md")]
pub mod cache_queues {}

#[doc = include_str!("../../book/src/cache/modes.md")]
pub mod cache_modes {}

#[doc = include_str!("../../book/src/controllers/finalizers.md")]
pub mod controllers_finalizers {}

#[doc = include_str!("../../book/src/controllers/queues-and-backoff.md")]
pub mod controllers_queues_and_backoff {}

#[doc = include_str!("../../book/src/running/leader-election.md")]
pub mod running_leader_election {}

#[doc = include_str!("../../book/src/controllers/webhooks.md")]
pub mod controllers_webhooks {}

#[doc = include_str!("../../book/src/controllers/children.md")]
pub mod controllers_children {}

#[doc = include_str!("../../book/src/controllers/reading-others.md")]
pub mod controllers_reading_others {}

#[doc = include_str!("../../book/src/controllers/around-one-reconcile.md")]
pub mod controllers_around_one_reconcile {}

#[doc = include_str!("../../book/src/running/production.md")]
pub mod running_production {}

#[doc = include_str!("../../book/src/running/plan.md")]
pub mod running_plan {}

#[doc = include_str!("../../book/src/running/changing-a-crd.md")]
pub mod running_changing_a_crd {}

#[doc = include_str!("../../book/src/running/importing-a-crd.md")]
pub mod running_importing_a_crd {}

#[doc = include_str!("../../book/src/internals.md")]
pub mod internals {}

#[doc = include_str!("../../book/src/controllers/reconcile-and-requeue.md")]
pub mod controllers_reconcile_and_requeue {}

#[doc = include_str!("../../book/src/controllers/permissions.md")]
pub mod controllers_permissions {}

#[doc = include_str!("../../book/src/reference/rules.md")]
pub mod reference_rules {}

#[doc = include_str!("../../book/src/kinds/custom-resources.md")]
pub mod kinds_custom_resources {}

#[doc = include_str!("../../book/src/kinds/paths.md")]
pub mod kinds_paths {}

#[doc = include_str!("../../book/src/kinds/schema.md")]
pub mod kinds_schema {}

#[doc = include_str!("../../book/src/controllers/literals.md")]
pub mod controllers_literals {}

#[doc = include_str!("../../book/src/controllers/apply-and-status.md")]
pub mod controllers_apply_and_status {}

#[doc = include_str!("../../book/src/controllers/external.md")]
pub mod controllers_external {}
#[doc = include_str!("../../book/src/controllers/conditions.md")]
pub mod controllers_conditions {}

#[doc = include_str!("../../book/src/kinds/versions.md")]
pub mod kinds_versions {}
