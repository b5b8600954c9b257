"""Columns, and the jobs of each round.

A job is a process of a driver over a fresh load generator. Sizes are those of the goals; `quick` has
small sizes that only show that everything works. Jobs that are context only run in fewer of the five rounds; slow
jobs have fewer objects or events, which changes no figure per object or event. A full run of five rounds takes
about half an hour on two quiet cores.
"""

import os
from dataclasses import dataclass

# Our columns first. Go is controller-runtime where there is a reconcile, client-go where there is none.
COLUMNS = {
    "compact": "ours, default",
    "projection": "ours, projection",
    "typed": "ours, typed",
    "metadata": "ours, metadata",
    "cold": "ours, cold",
    "template": "ours, as the template runs",
    "kube": "kube-rs",
    "kube-stripped": "kube-rs, stripped",
    "kube-streaming": "kube-rs, streaming list",
    "go-json": "Go, JSON",
    "go-pb": "Go, protobuf",
    "go-stripped": "Go, stripped",
    "drain": "reading alone",
}
OURS = ("compact", "projection", "typed", "metadata", "cold", "template")


@dataclass(frozen=True)
class Job:
    """A process: `group/column` names it."""

    group: str
    column: str
    # Of five.
    rounds: int
    kind: str
    n: int
    work: str
    phases: str
    # Reconciles at once; 0 is each framework's default.
    workers: int = 0

    @property
    def name(self):
        return f"{self.group}/{self.column}"

    def runs_in(self, at, rounds):
        """Does the job run in round `at` of this many? The first round has everything."""
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
            "go-stripped": "stripped",
        }.get(self.column, self.column)


# An object of ours that is reconciled more than 50 times a minute is slowed down on purpose (it may be
# waking itself), and objects share counters: no job of a controller comes near that.
MOST_CHANGES = 20


# Groups of jobs by how many reconciles run at once.
WORKERS = {"workers-1": 1, "workers-4": 4, "workers-cores": os.cpu_count() or 1}


def collect(column):
    """A last phase for drivers with a garbage collector."""
    return ",collect" if column.startswith("go-") else ""


class Plan:
    """Collects jobs of a scale."""

    def __init__(self, quick, scale, n):
        self.quick, self.scale, self.n = quick, scale, n
        self.found = []

    def size(self, number, quick):
        """Objects, in whole apps of 20."""
        number = self.n or (quick if self.quick else number)
        return max(200, int(number * self.scale) // 20 * 20)

    def events(self, number, objects):
        """Events: fewer of fewer objects."""
        number = int(number * self.scale / (10 if self.quick else 1))
        return max(200, min(number, MOST_CHANGES // 4 * objects))

    def add(self, group, column, rounds, kind, n, work, phases, workers=0):
        self.found.append(Job(group, column, rounds, kind, n, work, phases, workers))

    def pods_in_the_cache(self):
        """Many of them: sync, memory, relist, events."""
        big, small = self.size(100_000, 5_000), self.size(10_000, 2_000)
        for column, rounds, n, events in (
                ("compact", 5, big, 200_000), ("kube", 2, big, 30_000),
                ("projection", 5, big, 200_000), ("go-pb", 3, big, 60_000), ("cold", 4, big, 200_000),
                ("kube-stripped", 1, big, 30_000), ("metadata", 1, big, 200_000),
                ("kube-streaming", 1, big, 30_000), ("go-stripped", 1, big, 60_000),
                ("typed", 1, big, 60_000),
                ("go-json", 1, small, 20_000)):
            self.add("cache", column, rounds, "pod", n, "cache",
                     f"sync,relist:{max(1, n // 100)},events:{self.events(events, n)}")
        # Only Go has a collector; memory that the collector returns is missing in later phases.
        for column, n in (("go-pb", big), ("go-stripped", big), ("go-json", small)):
            self.add("collected", column, 1, "pod", n, "cache", "sync,collect")
        # No client at all: the cost of reading, and the throughput of the load generator.
        self.add("cache", "drain", 2, "pod", big, "cache", f"sync,events:{self.events(200_000, big)}")

    def churn(self):
        """Memory after changes: ours at a larger size than rivals, which end the same day."""
        updates = 2 if self.quick else 20
        half, small = self.size(50_000, 2_000), self.size(10_000, 2_000)
        for column, rounds, n in (
                ("compact", 3, half), ("kube", 1, small), ("projection", 3, half), ("go-pb", 1, small),
                ("cold", 3, half), ("kube-stripped", 1, small), ("typed", 1, small),
                ("go-stripped", 1, small), ("go-json", 1, self.size(2_000, 1_000))):
            self.add("churn", column, rounds, "pod", n, "cache",
                     f"sync,churn:{updates}{collect(column)}")

    def pods(self):
        """Through a controller."""
        n = self.size(10_000, 2_000)
        slow, fast = (1, 1) if self.quick else (5, 4)
        for column, rounds, events, is_timed in (
                ("compact", 5, 50_000, True), ("kube", 3, 30_000, True),
                ("projection", 5, 50_000, True), ("go-pb", 3, 50_000, True), ("cold", 2, 50_000, True),
                ("template", 2, 50_000, True), ("kube-stripped", 1, 30_000, False),
                ("go-stripped", 1, 50_000, False), ("typed", 1, 50_000, False),
                ("go-json", 1, 15_000, True)):
            events = self.events(events, n)
            rates = f",rate:100:{slow},rate:1000:{fast}" if is_timed else ""
            self.add("pods", column, rounds, "pod", n, "controller",
                     f"sync,events:{events},events:{events}:{n * 4 // 5}{rates}")

    def widgets(self):
        """Custom resources, through a controller and into the cache."""
        n, fewer = self.size(100_000, 5_000), self.size(25_000, 1_000)
        updates = 2 if self.quick else 5
        for column, rounds, events, is_timed in (
                ("compact", 5, 200_000, True), ("kube", 3, 100_000, True), ("cold", 2, 200_000, False),
                ("template", 2, 200_000, True), ("go-json", 2, 60_000, True),
                ("kube-stripped", 1, 100_000, False), ("go-stripped", 1, 60_000, False)):
            events = self.events(events, n)
            rate = f",rate:1000:{1 if self.quick else 4}" if is_timed else ""
            self.add("widgets", column, rounds, "widget", n, "controller",
                     f"sync,events:{events},events:{events}:{n * 4 // 5}{rate}")
        for column, rounds, size in (("compact", 5, n), ("kube", 2, n), ("cold", 2, n),
                                     ("go-json", 1, fewer), ("kube-stripped", 1, n),
                                     ("go-stripped", 1, fewer)):
            self.add("widget-cache", column, rounds, "widget", size, "cache",
                     f"sync,relist:{max(1, size // 100)},churn:{updates}")
        for column in ("go-json", "go-stripped"):
            self.add("widget-collected", column, 1, "widget", fewer, "cache", "sync,collect")
        self.add("widget-cache", "drain", 2, "widget", n, "cache", f"sync,churn:{updates}")

    def growth(self):
        """The middle is the job "widgets"."""
        for column, rounds in (("compact", 5), ("projection", 5), ("kube", 3), ("go-json", 2)):
            self.add("grow-10k", column, rounds, "widget", self.size(10_000, 1_000), "controller",
                     "sync")
        # Between them, of a projection: the others have a job of their own.
        self.add("widgets", "projection", 3, "widget", self.size(100_000, 5_000), "controller", "sync")
        for column in ("compact", "projection"):
            self.add("grow-1m", column, 2, "widget", self.size(1_000_000, 20_000), "controller", "sync")

    def workers(self):
        """First reconciles by equally many workers; frameworks have other numbers by default."""
        n = self.size(20_000, 2_000)
        for group, workers in WORKERS.items():
            for column in ("compact", "kube", "go-json"):
                self.add(group, column, 2, "widget", n, "controller", "sync", workers)

    def lookups(self):
        """By index."""
        n = self.size(20_000, 2_000)
        lookups = 2_000 if self.quick else 20_000
        for column, rounds, events in (("compact", 5, 200_000), ("kube", 1, 20_000),
                                       ("go-pb", 2, 60_000)):
            self.add("index", column, rounds, "pod", n, "cache",
                     f"sync,index:{lookups},index:0:{self.events(events, 2 * n)}")

    def control(self):
        """The work queue, reconciles in flight, reconciles that fail."""
        adds, keys, due, seconds = (
            (100_000, 50_000, 5_000, 1) if self.quick else (2_000_000, 1_000_000, 100_000, 4))
        for column, rounds in (("compact", 3), ("go-json", 2)):
            # Delays first: memory that the other phases free would be room for them.
            self.add("queue", column, rounds, "widget", 200, "cache",
                     f"sync,delays:{keys}:{due}:{seconds},queue:{adds},own:{adds}")
        n, nap = self.size(20_000, 2_000), 500 if self.quick else 1000
        for column, rounds in (("compact", 5), ("kube", 2), ("template", 1), ("go-json", 2)):
            self.add("flight", column, rounds, "widget", n, "controller",
                     f"sync,events:{n},flight:{nap}")
        self.add("flight-bare", "compact", 5, "widget", n, "cache", f"sync,bare:{nap},tasks:{nap}")
        n, seconds = self.size(10_000, 2_000), 1 if self.quick else 5
        for column, rounds in (("compact", 3), ("kube", 2), ("template", 2), ("go-json", 2)):
            self.add("failing", column, rounds, "widget", n, "controller",
                     f"sync,failing:2000:{seconds}")


def jobs(quick, scale=1.0, n=None):
    """All jobs, in the order in which they run: drivers alternate."""
    plan = Plan(quick, scale, n)
    plan.pods_in_the_cache()
    plan.churn()
    plan.pods()
    plan.widgets()
    plan.growth()
    plan.workers()
    plan.lookups()
    plan.control()
    return plan.found
