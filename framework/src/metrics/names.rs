//! The catalogue of metrics. Names, types and labels without the prefix `windlass_` are those of
//! controller-runtime and client-go, so that their dashboards and alerts work unchanged.

use super::{Def, Shape};

/// `controller_runtime_reconcile_total`: total number of reconciliations per controller.
pub static RECONCILE: Def = Def {
    name: "controller_runtime_reconcile",
    help: "Total number of reconciliations per controller",
    labels: &["controller", "result"],
    shape: Shape::Counter,
};
/// `controller_runtime_reconcile_errors_total`: total number of reconciliation errors per
/// controller.
pub static RECONCILE_ERRORS: Def = Def {
    name: "controller_runtime_reconcile_errors",
    help: "Total number of reconciliation errors per controller",
    labels: &["controller"],
    shape: Shape::Counter,
};
/// `controller_runtime_terminal_reconcile_errors_total`: total number of reconciliation errors that
/// are not retried.
pub static RECONCILE_TERMINAL_ERRORS: Def = Def {
    name: "controller_runtime_terminal_reconcile_errors",
    help: "Total number of reconciliation errors that are not retried",
    labels: &["controller"],
    shape: Shape::Counter,
};
/// `controller_runtime_reconcile_panics_total`: total number of reconciliation panics per
/// controller.
pub static RECONCILE_PANICS: Def = Def {
    name: "controller_runtime_reconcile_panics",
    help: "Total number of reconciliation panics per controller",
    labels: &["controller"],
    shape: Shape::Counter,
};
/// `controller_runtime_reconcile_timeouts_total`: total number of reconciliations ended by their
/// own deadline.
pub static RECONCILE_TIMEOUTS: Def = Def {
    name: "controller_runtime_reconcile_timeouts",
    help: "Total number of reconciliations ended by their own deadline",
    labels: &["controller"],
    shape: Shape::Counter,
};
/// `controller_runtime_reconcile_time_seconds`: length of time per reconciliation per controller.
pub static RECONCILE_SECONDS: Def = Def {
    name: "controller_runtime_reconcile_time_seconds",
    help: "Length of time per reconciliation per controller",
    labels: &["controller"],
    shape: Shape::Histogram(reconcile_buckets),
};
/// `controller_runtime_max_concurrent_reconciles`: maximum number of concurrent reconciles per
/// controller.
pub static MAX_CONCURRENT_RECONCILES: Def = Def {
    name: "controller_runtime_max_concurrent_reconciles",
    help: "Maximum number of concurrent reconciles per controller",
    labels: &["controller"],
    shape: Shape::Gauge,
};
/// `controller_runtime_active_workers`: number of currently used workers per controller.
pub static ACTIVE_WORKERS: Def = Def {
    name: "controller_runtime_active_workers",
    help: "Number of currently used workers per controller",
    labels: &["controller"],
    shape: Shape::Gauge,
};
/// `workqueue_depth`: current depth of the work queue.
pub static QUEUE_DEPTH: Def = Def {
    name: "workqueue_depth",
    help: "Current depth of the work queue",
    labels: &["name", "controller", "priority"],
    shape: Shape::Gauge,
};
/// `workqueue_adds_total`: total number of adds handled by the work queue.
pub static QUEUE_ADDS: Def = Def {
    name: "workqueue_adds",
    help: "Total number of adds handled by the work queue",
    labels: &["name", "controller"],
    shape: Shape::Counter,
};
/// `workqueue_retries_total`: total number of adds with a delay.
pub static QUEUE_RETRIES: Def = Def {
    name: "workqueue_retries",
    help: "Total number of adds with a delay",
    labels: &["name", "controller"],
    shape: Shape::Counter,
};
/// `workqueue_queue_duration_seconds`: time that a key waits in the work queue before it is taken.
pub static QUEUE_SECONDS: Def = Def {
    name: "workqueue_queue_duration_seconds",
    help: "How long an item stays in the work queue before being requested",
    labels: &["name", "controller"],
    shape: Shape::Histogram(queue_buckets),
};
/// `workqueue_work_duration_seconds`: time that the work on a key takes.
pub static QUEUE_WORK_SECONDS: Def = Def {
    name: "workqueue_work_duration_seconds",
    help: "How long processing an item from the work queue takes",
    labels: &["name", "controller"],
    shape: Shape::Histogram(queue_buckets),
};
/// `workqueue_unfinished_work_seconds`: seconds of work in progress that no finished item accounts
/// for.
pub static QUEUE_UNFINISHED_SECONDS: Def = Def {
    name: "workqueue_unfinished_work_seconds",
    help: "Seconds of work in progress that no finished item accounts for",
    labels: &["name", "controller"],
    shape: Shape::Gauge,
};
/// `workqueue_longest_running_processor_seconds`: time for which the oldest key has been in work.
pub static QUEUE_LONGEST_SECONDS: Def = Def {
    name: "workqueue_longest_running_processor_seconds",
    help: "How long the longest running item has been in work",
    labels: &["name", "controller"],
    shape: Shape::Gauge,
};
/// `rest_client_requests_total`: number of http requests, partitioned by status code, method, and
/// host.
pub static REST_REQUESTS: Def = Def {
    name: "rest_client_requests",
    help: "Number of HTTP requests, partitioned by status code, method, and host",
    labels: &["code", "method", "host"],
    shape: Shape::Counter,
};
/// `rest_client_request_duration_seconds`: request latency in seconds, broken down by verb and
/// host.
pub static REST_SECONDS: Def = Def {
    name: "rest_client_request_duration_seconds",
    help: "Request latency in seconds, broken down by verb and host",
    labels: &["verb", "host"],
    shape: Shape::Histogram(rest_buckets),
};
/// `rest_client_rate_limiter_duration_seconds`: time that requests waited for a permit of the
/// client's rate limiter.
pub static REST_RATE_LIMITER_SECONDS: Def = Def {
    name: "rest_client_rate_limiter_duration_seconds",
    help: "Client side rate limiter latency in seconds, broken down by verb and host",
    labels: &["verb", "host"],
    shape: Shape::Histogram(rest_buckets),
};
/// `rest_client_dns_resolution_duration_seconds`: time that the lookup of a host's addresses took.
pub static REST_DNS_SECONDS: Def = Def {
    name: "rest_client_dns_resolution_duration_seconds",
    help: "DNS resolver latency in seconds, broken down by host",
    labels: &["host"],
    shape: Shape::Histogram(rest_buckets),
};
/// `rest_client_request_size_bytes`: size of request bodies.
pub static REST_REQUEST_BYTES: Def = Def {
    name: "rest_client_request_size_bytes",
    help: "Request size in bytes, broken down by verb and host",
    labels: &["verb", "host"],
    shape: Shape::Histogram(size_buckets),
};
/// `rest_client_response_size_bytes`: size of responses that were read whole.
pub static REST_RESPONSE_BYTES: Def = Def {
    name: "rest_client_response_size_bytes",
    help: "Response size in bytes, broken down by verb and host",
    labels: &["verb", "host"],
    shape: Shape::Histogram(size_buckets),
};
/// `rest_client_request_retries_total`: number of request retries, partitioned by status code,
/// verb, and host.
pub static REST_RETRIES: Def = Def {
    name: "rest_client_request_retries",
    help: "Number of request retries, partitioned by status code, verb, and host",
    labels: &["code", "verb", "host"],
    shape: Shape::Counter,
};
/// `leader_election_master_status`: 1 while this process holds the lease, else 0.
pub static LEADER: Def = Def {
    name: "leader_election_master_status",
    help: "1 while this process holds the lease, else 0",
    labels: &["name"],
    shape: Shape::Gauge,
};
/// `leader_election_slowpath_total`: renewals that had to read the lease first.
pub static LEADER_SLOWPATH: Def = Def {
    name: "leader_election_slowpath",
    help: "Renewals that had to read the lease first",
    labels: &["name"],
    shape: Shape::Counter,
};
/// `windlass_informer_objects`: objects in the cache.
pub static INFORMER_OBJECTS: Def = Def {
    name: "windlass_informer_objects",
    help: "Objects in the cache",
    labels: &["name", "group", "version", "resource"],
    shape: Shape::Gauge,
};
/// `windlass_informer_invalid_objects`: objects in the cache that do not decode.
pub static INFORMER_INVALID: Def = Def {
    name: "windlass_informer_invalid_objects",
    help: "Objects in the cache that do not decode",
    labels: &["name", "group", "version", "resource"],
    shape: Shape::Gauge,
};
/// `windlass_informer_bytes`: bytes of objects in the cache.
pub static INFORMER_BYTES: Def = Def {
    name: "windlass_informer_bytes",
    help: "Bytes of objects in the cache",
    labels: &["name", "group", "version", "resource"],
    shape: Shape::Gauge,
};
/// `windlass_informer_index_entries`: pairs of object and value in the cache's indexes.
pub static INFORMER_INDEX_ENTRIES: Def = Def {
    name: "windlass_informer_index_entries",
    help: "Pairs of object and value in the cache's indexes",
    labels: &["name", "group", "version", "resource"],
    shape: Shape::Gauge,
};
/// `windlass_informer_dropped_frames_total`: frames not newer than the cached object, and frames
/// that could not be placed.
pub static INFORMER_DROPPED: Def = Def {
    name: "windlass_informer_dropped_frames",
    help: "Frames not newer than the cached object, and frames that could not be placed",
    labels: &["resource", "reason"],
    shape: Shape::Counter,
};
/// `informer_queued_items`: deltas waiting to be applied to the store.
pub static INFORMER_QUEUED: Def = Def {
    name: "informer_queued_items",
    help: "Deltas waiting to be applied to the store",
    labels: &["name", "group", "version", "resource"],
    shape: Shape::Gauge,
};
/// `informer_processing_latency_seconds`: time that a batch of deltas takes, from the queue until
/// it is applied to the store and handed to the listeners.
pub static INFORMER_PROCESSING_SECONDS: Def = Def {
    name: "informer_processing_latency_seconds",
    help: "Time taken to process events after popping from the queue",
    labels: &["name", "group", "version", "resource"],
    shape: Shape::Histogram(processing_buckets),
};
/// `informer_store_resource_version`: newest resourceVersion in the store, last 15 digits.
pub static INFORMER_VERSION: Def = Def {
    name: "informer_store_resource_version",
    help: "Newest resourceVersion in the store, last 15 digits",
    labels: &["name", "group", "version", "resource"],
    shape: Shape::Gauge,
};
/// `windlass_informer_version_age_seconds`: seconds since the cache received its newest
/// resourceVersion; a healthy watch of an idle kind receives one about once a minute.
pub static INFORMER_AGE: Def = Def {
    name: "windlass_informer_version_age_seconds",
    help: "Seconds since the cache was shown its newest resourceVersion",
    labels: &["name", "group", "version", "resource"],
    shape: Shape::Gauge,
};
/// `windlass_informer_silence_seconds`: seconds since the last data from the server, by a list or a
/// watch. It grows together with the age of the newest version when the server or the network is
/// down, and stays small when only the versions stand still.
pub static INFORMER_SILENCE: Def = Def {
    name: "windlass_informer_silence_seconds",
    help: "Seconds since anything came from the server",
    labels: &["name", "group", "version", "resource"],
    shape: Shape::Gauge,
};
/// `windlass_informer_listener_waiting_keys`: keys that wait to be delivered to listeners, all
/// together.
pub static INFORMER_WAITING: Def = Def {
    name: "windlass_informer_listener_waiting_keys",
    help: "Keys that wait to be told to listeners",
    labels: &["name", "group", "version", "resource"],
    shape: Shape::Gauge,
};
/// `windlass_informer_lists_total`: lists started, by cause.
pub static INFORMER_RELISTS: Def = Def {
    name: "windlass_informer_lists",
    help: "Lists started, by cause",
    labels: &["resource", "cause"],
    shape: Shape::Counter,
};
/// `windlass_informer_set_back_total`: times that the server's store was found to be set back.
pub static INFORMER_SET_BACK: Def = Def {
    name: "windlass_informer_set_back",
    help: "Times that the server's store was found to be set back: restored from a backup, or emptied",
    labels: &["resource"],
    shape: Shape::Counter,
};
/// `windlass_informer_watches_total`: watches started.
pub static INFORMER_WATCHES: Def = Def {
    name: "windlass_informer_watches",
    help: "Watches started",
    labels: &["resource"],
    shape: Shape::Counter,
};
/// `windlass_informer_very_short_watches_total`: watches that were closed at once.
pub static INFORMER_VERY_SHORT: Def = Def {
    name: "windlass_informer_very_short_watches",
    help: "Watches that were closed at once and told nothing",
    labels: &["resource"],
    shape: Shape::Counter,
};
/// `windlass_informer_listed_items_total`: items of lists read so far; grows while a list is read.
pub static INFORMER_LISTED: Def = Def {
    name: "windlass_informer_listed_items",
    help: "Items of lists read so far",
    labels: &["resource"],
    shape: Shape::Counter,
};
/// `windlass_informer_list_duration_seconds`: time that complete lists took.
pub static INFORMER_LIST_SECONDS: Def = Def {
    name: "windlass_informer_list_duration_seconds",
    help: "How long complete lists took",
    labels: &["resource"],
    shape: Shape::Histogram(list_buckets),
};
/// `windlass_informer_list_items`: items of complete lists.
pub static INFORMER_LIST_ITEMS: Def = Def {
    name: "windlass_informer_list_items",
    help: "Items of complete lists",
    labels: &["resource"],
    shape: Shape::Histogram(item_buckets),
};

/// `windlass_informer_listener_panics_total`: panics of listeners.
pub static INFORMER_LISTENER_PANICS: Def = Def {
    name: "windlass_informer_listener_panics",
    help: "Panics of functions that were told a change",
    labels: &["resource"],
    shape: Shape::Counter,
};
/// `windlass_reconcile_throttled_total`: objects whose reconciles were throttled because they
/// repeated without end.
pub static RECONCILE_THROTTLED: Def = Def {
    name: "windlass_reconcile_throttled",
    help: "Objects that were slowed down for being reconciled without end",
    labels: &["controller"],
    shape: Shape::Counter,
};
/// `windlass_reconcile_given_up_total`: objects whose retries were used up.
pub static RECONCILE_GIVEN_UP: Def = Def {
    name: "windlass_reconcile_given_up",
    help: "Objects whose retries were used up",
    labels: &["controller"],
    shape: Shape::Counter,
};
/// `windlass_object_tasks`: running long-lived tasks of objects.
pub static OBJECT_TASKS: Def = Def {
    name: "windlass_object_tasks",
    help: "Long-lived tasks of objects that run",
    labels: &["controller"],
    shape: Shape::Gauge,
};
/// `windlass_object_task_restarts_total`: restarts of long-lived tasks of objects after an error or
/// a panic.
pub static OBJECT_TASK_RESTARTS: Def = Def {
    name: "windlass_object_task_restarts",
    help: "Restarts of long-lived tasks of objects after an error or a panic",
    labels: &["controller"],
    shape: Shape::Counter,
};

/// `windlass_paused_objects`: objects that a controller skips because of their pause annotation.
pub static PAUSED: Def = Def {
    name: "windlass_paused_objects",
    help: "Objects that a controller left alone because of their annotation",
    labels: &["controller"],
    shape: Shape::Gauge,
};
/// `windlass_memory_budget_bytes`: memory that the process may use, where that is known.
pub static MEMORY_BUDGET: Def = Def {
    name: "windlass_memory_budget_bytes",
    help: "Memory that the process may use",
    labels: &["name"],
    shape: Shape::Gauge,
};
/// `windlass_polls_total`: lists of polled sources, by result.
pub static POLLS: Def = Def {
    name: "windlass_polls",
    help: "Lists of polled sources, by result (success, error, timeout, panic)",
    labels: &["controller", "poll", "result"],
    shape: Shape::Counter,
};
/// `windlass_trigger_keys_total`: keys that were sent to triggers, by result.
pub static TRIGGER_KEYS: Def = Def {
    name: "windlass_trigger_keys",
    help: "Keys that triggers were sent, by result (added, absent)",
    labels: &["controller", "trigger", "result"],
    shape: Shape::Counter,
};

/// Every metric.
pub static ALL: &[&Def] = &[
    &RECONCILE,
    &RECONCILE_ERRORS,
    &RECONCILE_TERMINAL_ERRORS,
    &RECONCILE_PANICS,
    &RECONCILE_TIMEOUTS,
    &RECONCILE_SECONDS,
    &MAX_CONCURRENT_RECONCILES,
    &ACTIVE_WORKERS,
    &QUEUE_DEPTH,
    &QUEUE_ADDS,
    &QUEUE_RETRIES,
    &QUEUE_SECONDS,
    &QUEUE_WORK_SECONDS,
    &QUEUE_UNFINISHED_SECONDS,
    &QUEUE_LONGEST_SECONDS,
    &REST_REQUESTS,
    &REST_SECONDS,
    &REST_RATE_LIMITER_SECONDS,
    &REST_DNS_SECONDS,
    &REST_REQUEST_BYTES,
    &REST_RESPONSE_BYTES,
    &REST_RETRIES,
    &LEADER,
    &LEADER_SLOWPATH,
    &INFORMER_OBJECTS,
    &INFORMER_INVALID,
    &INFORMER_BYTES,
    &INFORMER_INDEX_ENTRIES,
    &INFORMER_DROPPED,
    &INFORMER_QUEUED,
    &INFORMER_PROCESSING_SECONDS,
    &INFORMER_VERSION,
    &INFORMER_AGE,
    &INFORMER_SILENCE,
    &INFORMER_WAITING,
    &INFORMER_RELISTS,
    &INFORMER_SET_BACK,
    &INFORMER_WATCHES,
    &INFORMER_VERY_SHORT,
    &INFORMER_LISTED,
    &INFORMER_LIST_SECONDS,
    &INFORMER_LIST_ITEMS,
    &INFORMER_LISTENER_PANICS,
    &RECONCILE_THROTTLED,
    &RECONCILE_GIVEN_UP,
    &OBJECT_TASKS,
    &OBJECT_TASK_RESTARTS,
    &PAUSED,
    &POLLS,
    &TRIGGER_KEYS,
    &MEMORY_BUDGET,
];

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
