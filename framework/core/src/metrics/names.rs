//! The catalogue of metrics. Names, types and labels without the prefix `windlass_` are those of
//! controller-runtime and client-go, so that their dashboards and alerts work unchanged.

use super::{MetricDefinition, Shape};

/// Name of a metric as shown to users: the encoder appends `_total` to counters.
macro_rules! shown {
    (Counter $name:literal) => {
        concat!($name, "_total")
    };
    ($shape:ident $name:literal) => {
        $name
    };
}

/// Makes a static [`MetricDefinition`] of each row, and [`ALL`] of all, in the order of the rows.
macro_rules! metrics {
    ($(
        $(#[$more:meta])*
        $id:ident: $shape:ident $(($buckets:ident))? $name:literal [$($label:ident),*]
            $help:literal;
    )+) => {
        $(
            #[doc = concat!("`", shown!($shape $name), "`: ", $help, ".")]
            $(#[$more])*
            pub static $id: MetricDefinition = MetricDefinition {
                name: $name,
                help: $help,
                labels: &[$(stringify!($label)),*],
                shape: Shape::$shape $(($buckets))?,
            };
        )+

        /// Every metric.
        pub static ALL: &[&MetricDefinition] = &[$(&$id),+];
    };
}

metrics! {
    RECONCILE: Counter "controller_runtime_reconcile" [controller, result]
        "Total number of reconciliations per controller";
    RECONCILE_ERRORS: Counter "controller_runtime_reconcile_errors" [controller]
        "Total number of reconciliation errors per controller";
    RECONCILE_TERMINAL_ERRORS: Counter "controller_runtime_terminal_reconcile_errors" [controller]
        "Total number of reconciliation errors that are not retried";
    RECONCILE_PANICS: Counter "controller_runtime_reconcile_panics" [controller]
        "Total number of reconciliation panics per controller";
    RECONCILE_TIMEOUTS: Counter "controller_runtime_reconcile_timeouts" [controller]
        "Total number of reconciliations ended by their own deadline";
    RECONCILE_SECONDS: Histogram(reconcile_buckets) "controller_runtime_reconcile_time_seconds"
        [controller]
        "Length of time per reconciliation per controller";
    MAX_CONCURRENT_RECONCILES: Gauge "controller_runtime_max_concurrent_reconciles" [controller]
        "Maximum number of concurrent reconciles per controller";
    ACTIVE_WORKERS: Gauge "controller_runtime_active_workers" [controller]
        "Number of currently used workers per controller";
    WEBHOOK_REQUESTS: Counter "controller_runtime_webhook_requests" [webhook, code]
        "Total number of admission requests by HTTP status code";
    WEBHOOK_SECONDS: Histogram(webhook_buckets) "controller_runtime_webhook_latency_seconds"
        [webhook]
        "Histogram of the latency of processing admission requests";
    WEBHOOK_IN_FLIGHT: Gauge "controller_runtime_webhook_requests_in_flight" [webhook]
        "Current number of admission requests being served";
    WEBHOOK_PANICS: Counter "controller_runtime_webhook_panics" []
        "Total number of webhook panics";
    WEBHOOK_CONNECTIONS: Gauge "windlass_webhook_connections" []
        "Open connections of the webhook server";
    WEBHOOK_REFUSED: Counter "windlass_webhook_closed_connections" [cause]
        "Connections that the webhook server closed early, by cause";
    CERTIFICATE_EXPIRES: Gauge "windlass_webhook_certificate_not_after_seconds" []
        "Expiry of the served certificate, in seconds since the epoch";
    WEBHOOK_CONFIGURATION_FAULTY: Gauge "windlass_webhook_configuration_faulty" [kind, name]
        "1 while a configuration or conversion of the webhooks is absent, contested or not repaired";
    QUEUE_DEPTH: Gauge "workqueue_depth" [name, controller, priority]
        "Current depth of the work queue";
    QUEUE_ADDS: Counter "workqueue_adds" [name, controller]
        "Total number of adds handled by the work queue";
    QUEUE_RETRIES: Counter "workqueue_retries" [name, controller]
        "Total number of adds with a delay";
    QUEUE_SECONDS: Histogram(queue_buckets) "workqueue_queue_duration_seconds" [name, controller]
        "Time that a key waits in the work queue before it is taken";
    QUEUE_WORK_SECONDS: Histogram(queue_buckets) "workqueue_work_duration_seconds"
        [name, controller]
        "Time that the work on a key takes";
    QUEUE_UNFINISHED_SECONDS: Gauge "workqueue_unfinished_work_seconds" [name, controller]
        "Total seconds for which the keys in work have been processed";
    QUEUE_LONGEST_SECONDS: Gauge "workqueue_longest_running_processor_seconds" [name, controller]
        "Time for which the oldest key has been in work";
    REST_REQUESTS: Counter "rest_client_requests" [code, method, host]
        "Number of HTTP requests, partitioned by status code, method, and host";
    REST_SECONDS: Histogram(rest_buckets) "rest_client_request_duration_seconds" [verb, host]
        "Request latency in seconds, broken down by verb and host";
    REST_RATE_LIMITER_SECONDS: Histogram(rest_buckets) "rest_client_rate_limiter_duration_seconds"
        [verb, host]
        "Client side rate limiter latency in seconds, broken down by verb and host";
    REST_DNS_SECONDS: Histogram(rest_buckets) "rest_client_dns_resolution_duration_seconds" [host]
        "DNS resolver latency in seconds, broken down by host";
    REST_REQUEST_BYTES: Histogram(size_buckets) "rest_client_request_size_bytes" [verb, host]
        "Request size in bytes, broken down by verb and host";
    REST_RESPONSE_BYTES: Histogram(size_buckets) "rest_client_response_size_bytes" [verb, host]
        "Response size in bytes, broken down by verb and host";
    REST_RETRIES: Counter "rest_client_request_retries" [code, verb, host]
        "Number of request retries, partitioned by status code, verb, and host";
    LEADER: Gauge "leader_election_master_status" [name]
        "State of the lease: 1 while this process holds it, else 0";
    LEADER_SLOWPATH: Counter "leader_election_slowpath" [name]
        "Renewals that had to read the lease first";
    INFORMER_OBJECTS: Gauge "windlass_informer_objects" [name, group, version, resource]
        "Objects in the cache";
    INFORMER_INVALID: Gauge "windlass_informer_invalid_objects" [name, group, version, resource]
        "Objects in the cache that do not decode";
    INFORMER_BYTES: Gauge "windlass_informer_bytes" [name, group, version, resource]
        "Bytes of objects in the cache";
    INFORMER_INDEX_ENTRIES: Gauge "windlass_informer_index_entries" [name, group, version, resource]
        "Pairs of object and value in the cache's indexes";
    INFORMER_DROPPED: Counter "windlass_informer_dropped_frames" [resource, reason]
        "Watch frames that were dropped: not newer than the cached object, or without a key";
    INFORMER_QUEUED: Gauge "informer_queued_items" [name, group, version, resource]
        "Deltas waiting to be applied to the store";
    INFORMER_PROCESSING_SECONDS: Histogram(processing_buckets) "informer_processing_latency_seconds"
        [name, group, version, resource]
        "Time that a batch of deltas takes from the queue until listeners have it";
    INFORMER_VERSION: Gauge "informer_store_resource_version" [name, group, version, resource]
        "Newest resourceVersion in the store, last 15 digits";
    /// A healthy watch of an idle kind receives a version about once a minute.
    INFORMER_AGE: Gauge "windlass_informer_version_age_seconds" [name, group, version, resource]
        "Seconds since the cache received its newest resourceVersion";
    INFORMER_SILENCE: Gauge "windlass_informer_silence_seconds" [name, group, version, resource]
        "Seconds since the cache last received anything from the server";
    INFORMER_WAITING: Gauge "windlass_informer_listener_waiting_keys"
        [name, group, version, resource]
        "Keys that wait to be delivered to listeners";
    INFORMER_RELISTS: Counter "windlass_informer_lists" [resource, cause]
        "Lists started, by cause";
    INFORMER_SET_BACK: Counter "windlass_informer_set_back" [resource]
        "Set-backs of the server's store: a backup was restored, or the store was emptied";
    INFORMER_WATCHES: Counter "windlass_informer_watches" [resource]
        "Watches started";
    INFORMER_VERY_SHORT: Counter "windlass_informer_very_short_watches" [resource]
        "Watches that the server closed at once, without any event";
    /// Grows while a list is read.
    INFORMER_LISTED: Counter "windlass_informer_listed_items" [resource]
        "Items of lists read so far";
    INFORMER_LIST_SECONDS: Histogram(list_buckets) "windlass_informer_list_duration_seconds"
        [resource]
        "Time that complete lists took";
    INFORMER_LIST_ITEMS: Histogram(item_buckets) "windlass_informer_list_items" [resource]
        "Items of complete lists";
    INFORMER_LISTENER_PANICS: Counter "windlass_informer_listener_panics" [resource]
        "Panics of listeners";
    RECONCILE_THROTTLED: Counter "windlass_reconcile_throttled" [controller]
        "Objects whose reconciles were throttled because they repeated without end";
    RECONCILE_GIVEN_UP: Counter "windlass_reconcile_given_up" [controller]
        "Objects whose retries were used up";
    WAITING: Gauge "windlass_waiting_objects" [controller]
        "Objects whose last successful reconcile asked to wait";
    CONDITION_TRANSITIONS: Counter "windlass_condition_transitions" [controller, kind, type, status]
        "Changes of the status of conditions that a controller keeps, by the new status";
    OBJECT_TASKS: Gauge "windlass_object_tasks" [controller]
        "Running long-lived tasks of objects";
    OBJECT_TASK_RESTARTS: Counter "windlass_object_task_restarts" [controller]
        "Restarts of long-lived tasks of objects after an error or a panic";
    PAUSED: Gauge "windlass_paused_objects" [controller]
        "Objects that a controller skips because of their pause annotation";
    SHADOW_DIFFERENCES: Gauge "windlass_shadow_differences" [controller]
        "Objects whose state a shadow would lastingly write differently from the running operator";
    READS: Gauge "windlass_reads" [controller]
        "Reads of other objects whose changes reconcile their readers";
    READ_WAKES: Counter "windlass_read_wakes" [controller]
        "Reconciles that were asked for because an object that was read has changed";
    READS_WIDENED: Counter "windlass_reads_widened" [controller]
        "Objects with too many reads: every change of the kind reconciles them";
    POLLS: Counter "windlass_polls" [controller, poll, result]
        "Lists of polled sources, by result (success, error, timeout, panic)";
    TRIGGER_KEYS: Counter "windlass_trigger_keys" [controller, trigger, result]
        "Keys that were sent to triggers, by result (added, absent)";
    /// Verbs: observe, find, create, update, delete. Results: success, error, refused, timeout,
    /// cancelled, `dry_run`.
    EXTERNAL_CALLS: Counter "windlass_external_calls" [controller, verb, result]
        "Calls of providers of external resources";
    /// Absent where that is not known.
    MEMORY_BUDGET: Gauge "windlass_memory_budget_bytes" [name]
        "Memory that the process may use";
}

/// From 5 ms to 10 min.
fn list_buckets() -> Vec<f64> {
    vec![0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 180.0, 600.0]
}

/// Powers of ten, from 1 to a million.
fn item_buckets() -> Vec<f64> {
    vec![1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6]
}

/// controller-runtime's 40 buckets, 5 ms to 60 s.
fn reconcile_buckets() -> Vec<f64> {
    vec![
        0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8,
        0.9, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0,
        15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0,
    ]
}

/// client-go's 12 buckets for the time that a batch of an informer takes: 1 ms to 10 s.
fn processing_buckets() -> Vec<f64> {
    vec![0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0]
}

/// client-go's 12 buckets: 10 ns, times 10 each.
fn queue_buckets() -> Vec<f64> {
    (0..12).map(|i| 1e-8 * 10_f64.powi(i)).collect()
}

/// client-go's buckets for requests.
fn rest_buckets() -> Vec<f64> {
    vec![0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0]
}

/// client-go's 11 buckets for sizes: 64 B to 16 MiB.
fn size_buckets() -> Vec<f64> {
    let bytes: [u32; 11] =
        [64, 256, 512, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216];
    bytes.into_iter().map(f64::from).collect()
}

/// The 11 default buckets of Prometheus, which controller-runtime has for webhooks: 5 ms to 10 s.
fn webhook_buckets() -> Vec<f64> {
    vec![0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0]
}
