"""Rows of the tables and their goals. A row is a line of a table: a figure of a job per
column, and the goals of our columns.
"""

from dataclasses import dataclass, field

from .jobs import WORKERS


@dataclass(frozen=True)
class Row:
    """A line of a table. `source` is group, phase, field; `where` picks among phases of the same name;
    `per` are sources whose sum is the divisor, of the same column or else of our default; `beside` is
    the figure to compare rivals with where our default has no figure in the row. `{n}` in a title is the number of objects, `{updates}` of updates, `{keys}` of delayed keys, of our default."""

    table: str
    title: str
    unit: str
    source: tuple
    targets: dict = field(default_factory=dict)
    more_is_better: bool = False
    where: tuple = ()
    note: str = ""
    per: tuple = ()
    beside: tuple = ()
    chart: str = ""


# Groups without a reconcile. Ours decodes no object there, rivals decode all: ratios say so.
CACHE_ONLY = ("cache", "collected", "churn", "widget-cache", "widget-collected", "index")


def named(group, workers):
    """Of a group of `WORKERS`."""
    if group == "workers-cores":
        return f"a worker for each of {workers} cores"
    return "1 worker" if workers == 1 else f"{workers} workers"


POD = "Pods of 8.4 KB with managed fields"
WIDGET = "Custom resources of 1 KB (JSON for everybody)"
REST = "Lookups and growth"
CONTROL = "Work queue and controller"

ROWS = [
    Row(POD, "sync, cache only, two indexes: CPU", "µs/object", ("cache", "sync", "cpu_us"),
        {"compact": 16}, chart="sync"),
    Row(POD, "sync and first reconcile that reads: CPU", "µs/object", ("pods", "sync", "cpu_us"),
        {"compact": 36, "projection": 18}, chart="first"),
    Row(POD, "first reconciles a second", "/s", ("pods", "sync", "first_per_s"),
        {"compact": 70_000, "projection": 500_000}, more_is_better=True),
    Row(POD, "resident, 1 s after sync", "KB/object", ("cache", "sync", "rss_kb_each"),
        {"compact": 6.5, "projection": 2.6, "cold": 1}, chart="memory"),
    Row(POD, "… after a collection that Go is asked for", "KB/object",
        ("collected", "collect", "rss_kb_each"), beside=("cache", "sync", "rss_kb_each")),
    Row(POD, "resident after {updates} updates each", "KB/object", ("churn", "churn", "rss_kb_each"),
        {"compact": 7.8, "projection": 3.12, "cold": 1.2}, chart="churn"),
    Row(POD, "… beside before", "×", ("churn", "churn", "growth"),
        {"compact": 1.2, "projection": 1.2, "cold": 1.2}),
    Row(POD, "… after a collection that Go is asked for", "KB/object", ("churn", "collect", "rss_kb_each"),
        beside=("churn", "churn", "rss_kb_each")),
    Row(POD, "relist after 410: peak beside before", "×", ("cache", "relist", "peak_over_steady"),
        {"compact": 1.15, "projection": 1.15, "cold": 1.15}, chart="relist"),
    Row(POD, "relist: CPU", "µs/object", ("cache", "relist", "cpu_us")),
    Row(POD, "events into the cache", "/s", ("cache", "events", "per_s"),
        {"compact": 80_000}, more_is_better=True, chart="events"),
    Row(POD, "event into the cache: CPU", "µs/event", ("cache", "events", "cpu_us"),
        {"compact": 12}),
    Row(POD, "event and reconcile that reads, 1:1: CPU", "µs/event", ("pods", "paced", "cpu_us"),
        {"compact": 30, "projection": 16}, chart="paced"),
    Row(POD, "… reconciles per event", "", ("pods", "paced", "reconciles_per_event")),
    Row(POD, "controller at full speed: events", "/s", ("pods", "events", "per_s"),
        {"compact": 60_000, "projection": 60_000}, more_is_better=True),
    Row(POD, "… reconciles", "/s", ("pods", "events", "reconciles_per_s"),
        {"compact": 30_000, "projection": 50_000}, more_is_better=True),
    Row(POD, "… reconciles per event", "", ("pods", "events", "reconciles_per_event")),
    Row(POD, "event → reconcile at 1000/s, p50", "µs", ("pods", "rate", "p50_us"),
        {"compact": 90, "projection": 65}, where=("rate", 1000), chart="p50"),
    Row(POD, "… p99", "µs", ("pods", "rate", "p99_us"),
        {"compact": 350, "projection": 200}, where=("rate", 1000), chart="p99"),
    Row(POD, "event → reconcile at 100/s, p50", "µs", ("pods", "rate", "p50_us"),
        {"compact": 300, "projection": 150}, where=("rate", 100)),
    Row(POD, "… p99", "µs", ("pods", "rate", "p99_us"),
        {"compact": 600, "projection": 400}, where=("rate", 100)),
    Row(WIDGET, "sync, cache only, two indexes: CPU", "µs/object",
        ("widget-cache", "sync", "cpu_us")),
    Row(WIDGET, "sync and first reconcile that reads: CPU", "µs/object",
        ("widgets", "sync", "cpu_us"), {"compact": 6}, chart="widget-first"),
    Row(WIDGET, "first reconciles a second", "/s", ("widgets", "sync", "first_per_s"),
        more_is_better=True),
    Row(WIDGET, "resident, 1 s after sync", "KB/object", ("widget-cache", "sync", "rss_kb_each"),
        {"compact": 1.2}, chart="widget-memory"),
    Row(WIDGET, "… after a collection that Go is asked for", "KB/object",
        ("widget-collected", "collect", "rss_kb_each"),
        beside=("widget-cache", "sync", "rss_kb_each")),
    Row(WIDGET, "resident after {updates} updates each, beside before", "×",
        ("widget-cache", "churn", "growth"), {"compact": 1.2}),
    Row(WIDGET, "relist after 410: peak beside before", "×",
        ("widget-cache", "relist", "peak_over_steady"), {"compact": 1.15}),
    Row(WIDGET, "relist: CPU", "µs/object", ("widget-cache", "relist", "cpu_us")),
    Row(WIDGET, "events into the cache", "/s", ("widget-cache", "churn", "per_s"),
        more_is_better=True),
    Row(WIDGET, "event into the cache: CPU", "µs/event", ("widget-cache", "churn", "cpu_us")),
    Row(WIDGET, "event and reconcile that reads, 1:1: CPU", "µs/event",
        ("widgets", "paced", "cpu_us"), {"compact": 5}, chart="widget-paced"),
    Row(WIDGET, "… reconciles per event", "", ("widgets", "paced", "reconciles_per_event")),
    Row(WIDGET, "controller at full speed: events", "/s", ("widgets", "events", "per_s"),
        more_is_better=True),
    Row(WIDGET, "… reconciles", "/s", ("widgets", "events", "reconciles_per_s"),
        more_is_better=True),
    Row(WIDGET, "… reconciles per event", "", ("widgets", "events", "reconciles_per_event")),
    Row(WIDGET, "event → reconcile at 1000/s, p50", "µs", ("widgets", "rate", "p50_us"),
        where=("rate", 1000)),
    Row(WIDGET, "… p99", "µs", ("widgets", "rate", "p99_us"), where=("rate", 1000)),
    Row(REST, "lookup of 20 among {n} Pods, p50", "µs", ("index", "index", "p50_us"),
        {"compact": 2}, note="kube-rs looks at every object", chart="index"),
    Row(REST, "… p99 under events at full speed", "µs", ("index", "index_loaded", "p99_us"),
        {"compact": 5}),
    Row(REST, "… events a second meanwhile", "/s", ("index", "index_loaded", "events_per_s"),
        more_is_better=True),
    Row(REST, "{n} Widgets: CPU until reconciled", "µs/object", ("grow-10k", "sync", "cpu_us")),
    Row(REST, "{n} Widgets", "µs/object", ("widgets", "sync", "cpu_us")),
    Row(REST, "{n} Widgets", "µs/object", ("grow-1m", "sync", "cpu_us")),
    Row(REST, "… beside the row above", "×", ("grow-1m", "sync", "cpu_us"), {"compact": 1.2},
        per=(("widgets", "sync", "cpu_us"),)),
    Row(REST, "{n} Widgets: resident with a controller", "KB/object",
        ("grow-10k", "sync", "rss_kb_each")),
    Row(REST, "{n} Widgets", "KB/object", ("widgets", "sync", "rss_kb_each")),
    Row(REST, "{n} Widgets", "KB/object", ("grow-1m", "sync", "rss_kb_each"), {"compact": 2.0},
        note="2 KB each is 2 GB"),
    Row(REST, "… beside the row above", "×", ("grow-1m", "sync", "rss_kb_each"), {"compact": 1.2},
        per=(("widgets", "sync", "rss_kb_each"),)),
    Row(CONTROL, "{n} Widgets: first reconciles (a projection decodes its fields)", "/s",
        ("grow-10k", "sync", "first_per_s"), {"compact": 70_000, "projection": 500_000},
        more_is_better=True),
    Row(CONTROL, "{n} Widgets", "/s", ("widgets", "sync", "first_per_s"), {"projection": 500_000},
        more_is_better=True),
    Row(CONTROL, "{n} Widgets", "/s", ("grow-1m", "sync", "first_per_s"), {"projection": 500_000},
        more_is_better=True),
    Row(CONTROL, "… beside the row above", "×", ("grow-1m", "sync", "first_per_s"),
        {"compact": 0.8, "projection": 0.8}, more_is_better=True,
        per=(("widgets", "sync", "first_per_s"),)),
    *(row for group, workers in WORKERS.items() for row in (
        Row(CONTROL, f"{{n}} Widgets, {named(group, workers)}: first reconciles", "/s",
            (group, "sync", "first_per_s"), more_is_better=True),
        Row(CONTROL, "… CPU until reconciled", "µs/object", (group, "sync", "cpu_us")))),
    Row(CONTROL, "keyed queue, 1 producer, 1 worker: CPU", "ns/add", ("queue", "queue", "cpu_ns_per_add"),
        {"compact": 800}, chart="queue"),
    Row(CONTROL, "… runs per add", "", ("queue", "queue", "runs_per_add"), {"compact": 0.9},
        more_is_better=True),
    Row(CONTROL, "… without its metrics", "ns/add", ("queue", "unmeasured", "cpu_ns_per_add"),
        note="ours always has them"),
    Row(CONTROL, "a controller's own path, in batches of 64: CPU", "ns/add",
        ("queue", "own", "cpu_ns_per_add"), {"compact": 150}, note="Go: controller-runtime's priority queue",
        chart="own"),
    Row(CONTROL, "… runs per add", "", ("queue", "own", "runs_per_add"), {"compact": 0.9},
        more_is_better=True),
    Row(CONTROL, "{keys} delayed keys: handed out beside their time by at most", "ms",
        ("queue", "delays", "late_max_ms"), {"compact": 10}),
    Row(CONTROL, "… p99", "ms", ("queue", "delays", "late_p99_ms")),
    Row(CONTROL, "… resident, without their names", "bytes/key", ("queue", "delays", "bytes_per_key")),
    Row(CONTROL, "… CPU", "ns/add", ("queue", "delays", "cpu_ns_per_add")),
    Row(CONTROL, "{n} reconciles that sleep: CPU", "µs/each", ("flight", "flight", "cpu_us"),
        chart="flight"),
    Row(CONTROL, "… as many changes to a listener and a bare `JoinSet`", "µs/each",
        ("flight-bare", "bare", "cpu_us")),
    Row(CONTROL, "sleeping ones beside that", "×", ("flight", "flight", "cpu_us"), {"compact": 2},
        per=(("flight-bare", "bare", "cpu_us"),)),
    Row(CONTROL, "… as many tasks of tokio alone", "µs/each", ("flight-bare", "tasks", "cpu_us")),
    Row(CONTROL, "… reconciles that do not sleep: CPU", "µs/each", ("flight", "events", "cpu_us")),
    Row(CONTROL, "sleeping ones beside tasks and those", "×", ("flight", "flight", "cpu_us"),
        {"compact": 2}, per=(("flight-bare", "tasks", "cpu_us"), ("flight", "events", "cpu_us"))),
    Row(CONTROL, "2,000 reconciles a second, 1 in 10 fails: CPU", "ms/s",
        ("failing", "failing", "cpu_ms_per_s"), chart="failing"),
    Row(CONTROL, "… reconciles a second", "/s", ("failing", "failing", "reconciles_per_s"), more_is_better=True),
    Row(CONTROL, "… of them failed", "", ("failing", "failing", "failed_share")),
]
