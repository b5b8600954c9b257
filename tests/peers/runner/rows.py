"""What is run, and what is read off it: jobs, rows, targets.

A job is one process of one driver over a fresh load generator. A row is one line of the table: a
figure of a job per column, and the targets of our columns. Sizes are those of the goals; `quick` has
small ones that only show that everything works.
"""

from dataclasses import dataclass, field

# Our columns first. Go is controller-runtime where there is a reconcile, client-go where there is none.
COLUMNS = {
    "compact": "ours, default",
    "projection": "ours, projection",
    "typed": "ours, typed",
    "metadata": "ours, metadata",
    "cold": "ours, cold",
    "kube": "kube-rs",
    "kube-stripped": "kube-rs, stripped",
    "kube-streaming": "kube-rs, streaming list",
    "go-json": "Go, JSON",
    "go-pb": "Go, protobuf",
    "drain": "reading alone",
}
OURS = ("compact", "projection", "typed", "metadata", "cold")


@dataclass(frozen=True)
class Job:
    """One process: `group/column` names it."""

    group: str
    column: str
    # Of five.
    rounds: int
    kind: str
    n: int
    work: str
    phases: str

    @property
    def name(self):
        return f"{self.group}/{self.column}"

    def runs_in(self, at, rounds):
        """Does it run in round `at` of so many? The first of them has everything."""
        times = max(1, round(self.rounds * rounds / 5))
        return at * times % rounds < times

    @property
    def driver(self):
        if self.column in OURS:
            return "ours"
        if self.column == "drain":
            return "drain"
        return "peer-kube" if self.column.startswith("kube") else "peers-go"

    @property
    def mode(self):
        return {
            "kube": "default",
            "kube-stripped": "stripped",
            "kube-streaming": "streaming",
            "go-json": "json",
            "go-pb": "protobuf",
        }.get(self.column, self.column)


@dataclass(frozen=True)
class Row:
    """One line of a table. `source` is group, phase, field; `where` picks among phases of one name;
    `per` are sources by whose sum it is divided, of the same column or else of our default. `{n}` in
    a title is the number of objects, `{updates}` of updates, of our default."""

    table: str
    title: str
    unit: str
    source: tuple
    targets: dict = field(default_factory=dict)
    more_is_better: bool = False
    where: tuple = ()
    note: str = ""
    per: tuple = ()
    chart: str = ""


# An object of ours that is reconciled more than 50 times a minute is slowed down on purpose (it may be
# waking itself), and objects share counters: no job of a controller comes near that.
MOST_CHANGES = 20


def jobs(quick, scale=1.0, n=None):
    """All jobs of one round, in the order in which they run: drivers alternate. What is only context
    runs in fewer rounds; what is slow has fewer objects or events, which changes no figure per one of
    them. A full run of five rounds takes about three quarters of an hour on two cores."""
    small, half, big = (2_000, 2_000, 5_000) if quick else (10_000, 50_000, 100_000)
    updates = 2 if quick else 20
    slow, fast = (1, 1) if quick else (8, 4)
    found = []

    def size(number):
        return max(200, int((n or number) * scale) // 20 * 20)

    def amount(number, objects):
        """Events: fewer of fewer objects."""
        number = int(number * scale / (10 if quick else 1))
        return max(200, min(number, MOST_CHANGES // 4 * objects))

    def add(group, column, rounds, kind, n, work, phases):
        found.append(Job(group, column, rounds, kind, n, work, phases))

    # Pods into the cache, many of them: sync, memory, relist, events.
    for column, rounds, objects, events in (
            ("compact", 5, big, 200_000), ("kube", 5, big, 30_000), ("projection", 5, big, 200_000),
            ("go-pb", 5, big, 60_000), ("cold", 5, big, 200_000), ("kube-stripped", 2, big, 30_000),
            ("metadata", 2, big, 200_000), ("kube-streaming", 1, big, 30_000),
            ("typed", 2, big, 60_000), ("go-json", 2, small, 20_000)):
        objects = size(objects)
        add("cache", column, rounds, "pod", objects, "cache",
            f"sync,relist:{max(1, objects // 100)},events:{amount(events, objects)}")
    # No client at all: what reading costs, and how much the load generator can send.
    add("cache", "drain", 3, "pod", size(big), "cache", f"sync,events:{amount(200_000, size(big))}")
    add("widget-cache", "drain", 3, "widget", size(big), "cache",
        f"sync,churn:{min(updates, 5)}")
    # Memory after changes: ours at a larger size than rivals, which end the same day.
    for column, rounds, objects in (
            ("compact", 3, half), ("kube", 2, small), ("projection", 3, half), ("go-pb", 2, small),
            ("cold", 3, half), ("kube-stripped", 1, small), ("typed", 1, small),
            ("go-json", 1, small // 2)):
        add("churn", column, rounds, "pod", size(objects), "cache", f"sync,churn:{updates}")
    # Pods through a controller.
    objects = size(small)
    for column, rounds, events, is_timed in (
            ("compact", 5, 50_000, True), ("kube", 5, 30_000, True), ("projection", 5, 50_000, True),
            ("go-pb", 5, 50_000, True), ("cold", 3, 50_000, True),
            ("kube-stripped", 2, 30_000, False), ("typed", 2, 50_000, False),
            ("go-json", 2, 15_000, True)):
        events = amount(events, objects)
        rates = f",rate:100:{slow},rate:1000:{fast}" if is_timed else ""
        add("pods", column, rounds, "pod", objects, "controller",
            f"sync,events:{events},events:{events}:{objects * 4 // 5}{rates}")
    # Custom resources, through a controller and into the cache.
    objects = size(big)
    for column, rounds, events, is_timed in (
            ("compact", 5, 200_000, True), ("kube", 5, 100_000, True), ("cold", 2, 200_000, False),
            ("go-json", 3, 60_000, True), ("kube-stripped", 2, 100_000, False)):
        events = amount(events, objects)
        rate = f",rate:1000:{fast}" if is_timed else ""
        add("widgets", column, rounds, "widget", objects, "controller",
            f"sync,events:{events},events:{events}:{objects * 4 // 5}{rate}")
    for column, rounds, objects in (
            ("compact", 5, big), ("kube", 3, big), ("cold", 2, big), ("go-json", 2, half // 2),
            ("kube-stripped", 1, big)):
        objects = size(objects)
        add("widget-cache", column, rounds, "widget", objects, "cache",
            f"sync,relist:{objects // 100},churn:{min(updates, 5)}")
    # Growth; the middle of it is the job "widgets".
    for column, rounds in (("compact", 5), ("kube", 3), ("go-json", 2)):
        add("grow-10k", column, rounds, "widget", size(1_000 if quick else small), "controller", "sync")
    add("grow-1m", "compact", 2, "widget", size(20_000 if quick else 1_000_000), "controller", "sync")
    # Lookups, the queue, reconciles in flight.
    nap = 500 if quick else 1000
    twenty = size(2_000 if quick else 20_000)
    for column, rounds, events in (("compact", 5, 200_000), ("kube", 2, 20_000), ("go-pb", 3, 60_000)):
        add("index", column, rounds, "pod", twenty, "cache",
            f"sync,index:{2_000 if quick else 20_000},index:0:{amount(events, 2 * twenty)}")
    for column in ("compact", "go-json"):
        add("queue", column, 3, "widget", 200, "cache",
            f"sync,queue:{100_000 if quick else 1_000_000}")
    for column, rounds in (("compact", 3), ("kube", 2), ("go-json", 2)):
        add("flight", column, rounds, "widget", twenty, "controller",
            f"sync,events:{twenty},flight:{nap},tasks:{nap}")
    return found


POD = "Pods of 8.4 KB with managed fields"
WIDGET = "Custom resources of 1 KB (JSON for everybody)"
REST = "Lookups, queue, growth"

ROWS = [
    Row(POD, "sync, cache only, two indexes: CPU", "µs/object", ("cache", "sync", "cpu_us"),
        {"compact": 16}, chart="sync"),
    Row(POD, "sync and first reconcile that reads: CPU", "µs/object", ("pods", "sync", "cpu_us"),
        {"compact": 36, "projection": 18}, chart="first"),
    Row(POD, "first reconciles a second", "/s", ("pods", "sync", "first_per_s"),
        {"compact": 70_000, "projection": 500_000}, more_is_better=True),
    Row(POD, "resident, 1 s after sync", "KB/object", ("cache", "sync", "rss_kb_each"),
        {"compact": 6.5, "projection": 2.6, "cold": 1}, chart="memory"),
    Row(POD, "resident after {updates} updates each", "KB/object", ("churn", "churn", "rss_kb_each"),
        {"compact": 7.8, "projection": 3.12, "cold": 1.2}, chart="churn"),
    Row(POD, "… beside before", "×", ("churn", "churn", "growth"),
        {"compact": 1.2, "projection": 1.2, "cold": 1.2}),
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
    Row(REST, "keyed queue, 1 producer, 1 worker: CPU", "ns/add", ("queue", "queue", "cpu_ns_per_add"),
        {"compact": 800}),
    Row(REST, "… runs per add", "", ("queue", "queue", "runs_per_add"), {"compact": 0.9},
        more_is_better=True),
    Row(REST, "{n} reconciles that sleep: CPU", "µs/each", ("flight", "flight", "cpu_us")),
    Row(REST, "… as many tasks of tokio alone", "µs/each", ("flight", "tasks", "cpu_us")),
    Row(REST, "… that do not: CPU", "µs/each", ("flight", "events", "cpu_us")),
    Row(REST, "sleeping ones beside tasks and those", "×", ("flight", "flight", "cpu_us"),
        {"compact": 2}, per=(("flight", "tasks", "cpu_us"), ("flight", "events", "cpu_us"))),
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
]
