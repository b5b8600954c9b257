//! Answers to keys of kube-rs, controller-runtime and kubebuilder, which users bring along.

/// A word of another framework, and the text against it.
const HINTS: &[(&[&str], &str)] = &[
    (
        &["concurrency", "max_concurrent_reconciles", "max_concurrency", "parallelism", "threads"],
        "the number of objects that are reconciled at once is `workers = 4`",
    ),
    (
        &["predicate", "predicates", "event_filter", "with_event_filter", "filter"],
        "changes are filtered by `when = generation_changed()`, those of children by \
         `owns(Deployment, when = …)`",
    ),
    (
        &["kind", "object", "of", "reconciles", "resource", "crd"],
        "the reconciled kind is written `for = Website`",
    ),
    (
        &[
            "sync_period",
            "resync_period",
            "resync_interval",
            "requeue",
            "requeue_after",
            "requeue_every",
            "interval",
            "every",
        ],
        "every object is reconciled once per period by `resync = \"10m\"`; the delay after one reconcile is \
         `Action::requeue_after` in its result",
    ),
    (
        &[
            "rbac",
            "verbs",
            "groups",
            "resources",
            "permissions",
            "grants",
            "role",
            "resource_names",
            "urls",
        ],
        "rights follow from `for`, `owns` and `watches`; further ones are written `can(get list Pod)`, by name \
         `can(get Secret[\"tls\"])`, on paths `can(get \"/metrics\")`",
    ),
    (
        &["error_policy", "backoff", "rate_limiter", "max_retries", "retries"],
        "failed reconciles are retried by `retry(at_most = 10, base = \"5ms\", cap = \"5m\")`; the default is for \
         ever, with growing delays",
    ),
    (
        &["timeout", "deadline", "reconciliation_timeout"],
        "the deadline of a reconcile is `reconcile_timeout = \"5m\"`",
    ),
    (
        &["leader_election", "namespace", "namespaces", "metrics", "cache", "client", "shutdown"],
        "this is a setting of the operator, not of a controller: see the methods of `Manager`",
    ),
    (
        &["children", "owned", "secondary"],
        "kinds of children are written `owns(Deployment, Service)`",
    ),
    (
        &["webhook", "webhooks", "validate"],
        "a controller has no webhooks: rules of its kind are written at the fields of the resource; a rule that \
         reads other objects is a handler of `windlass::webhook`",
    ),
    (
        &["cleanup", "on_delete", "deletion"],
        "clean-up is `Finalize::cleanup`, which runs with `finalizer = \"example.dev/dns\"`",
    ),
];

/// Returns the text against a word of another framework.
pub(super) fn of(word: &str) -> Option<&'static str> {
    HINTS.iter().find(|(words, _)| words.contains(&word)).map(|(_, text)| *text)
}

/// Returns all words with a text.
pub(super) fn words() -> impl Iterator<Item = &'static str> {
    HINTS.iter().flat_map(|(words, _)| words.iter().copied())
}
