"""From results to tables: medians, ranges, ratios, and how each goal was met."""

from collections import defaultdict
from statistics import median

from .jobs import COLUMNS
from .rows import CACHE_ONLY, ROWS


def figure(value):
    """A number with as many digits as are significant."""
    if value >= 10_000:
        return f"{value / 1000:,.0f}k"
    if value >= 100:
        return f"{value:.0f}"
    if value >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}"


class Results:
    """Figures of all rounds, by row and column."""

    def __init__(self, rounds):
        self.found = defaultdict(list)
        # Jobs that failed, and how often each.
        self.errors = {}
        self.failures = defaultdict(int)
        self.sizes = {}
        self.noisy = set()
        for done in rounds:
            if done["error"]:
                self.errors[done["job"]] = done["error"]
                self.failures[done["job"]] += 1
                continue
            group = done["job"].split("/")[0]
            self.sizes[done["job"]] = done["n"]
            if done.get("noisy"):
                self.noisy.add(done["job"])
            for line in done["lines"]:
                for name, value in line.items():
                    if isinstance(value, (int, float)):
                        self.found[done["job"], line["phase"], line.get("rate"), name].append(value)

    def values(self, row, column):
        rate = row.where[1] if row.where else None
        values = self.of(row.source, column, rate)
        if not row.per:
            return values
        others = [self.of(source, column) or self.of(source, "compact") for source in row.per]
        if not all(others):
            return []
        whole = sum(median(other) for other in others)
        return [value / whole for value in values]

    def of(self, source, column, rate=None):
        group, phase, name = source
        return self.found.get((f"{group}/{column}", phase, rate, name), [])

    def title(self, row):
        group = row.source[0]
        updates = self.of((group, "churn", "updates"), "compact")
        objects = self.sizes.get(f"{group}/compact") or max(
            (size for job, size in self.sizes.items() if job.split("/")[0] == group), default=0)
        keys = self.of((group, "delays", "keys"), "compact") or [0]
        title = row.title.format(n=f"{objects:,}", updates=(updates or ["?"])[0], keys=f"{keys[0]:,}")
        title = f"{title}, {row.unit}" if row.unit else title
        notes = [row.note] if row.note else []
        if not title.startswith("…"):
            notes += self.other_sizes(row, objects)
        return f"{title} ({'; '.join(notes)})" if notes else title

    def other_sizes(self, row, objects):
        """Columns measured with another number of objects than our default."""
        by_size = defaultdict(list)
        for column in COLUMNS:
            size = self.sizes.get(f"{row.source[0]}/{column}", objects)
            if objects and size != objects and self.values(row, column):
                by_size[size].append(COLUMNS[column])
        return [f"{', '.join(names)}: {size:,} of {objects:,} objects"
                for size, names in by_size.items()]

    def rounds(self, row):
        """In how many rounds: of all columns, fewest and most."""
        counts = [len(values) for column in COLUMNS if (values := self.values(row, column))]
        fewest, most = min(counts), max(counts)
        return str(most) if fewest == most else f"{fewest}–{most}"

    def rounds_by_job(self):
        """Number of rounds of each job."""
        by_count = defaultdict(list)
        for job in self.sizes:
            count = max(len(values) for key, values in self.found.items() if key[0] == job)
            by_count[count].append(job)
        return "; ".join(f"{count}: {', '.join(sorted(jobs))}"
                         for count, jobs in sorted(by_count.items(), reverse=True))

    def columns(self, rows):
        return [column for column in COLUMNS if any(self.values(row, column) for row in rows)]

    def cell(self, row, column):
        values = self.values(row, column)
        if not values:
            return "void" if f"{row.source[0]}/{column}" in self.errors else "–"
        middle = figure(median(values))
        text = middle
        if len(values) > 1 and min(values) != max(values):
            text += f" ({figure(min(values))}–{figure(max(values))})"
        return text + self.verdict(row, column, median(values))

    @staticmethod
    def verdict(row, column, value):
        target = row.targets.get(column)
        if target is None:
            return ""
        share = target / value if row.more_is_better and value else value / target
        return " **ok**" if share <= 1 else f" short {share:.2f}x"

    def ratios(self, row):
        """Ratio of each rival's default to our default, above 1 where ours is better."""
        ours = self.of(row.beside, "compact") if row.beside else self.values(row, "compact")
        if not ours or not median(ours):
            return "–"
        texts = []
        for column, name in (("kube", "kube-rs"), ("go-json", "Go JSON"), ("go-pb", "Go pb")):
            theirs = self.values(row, column)
            if not theirs or not median(theirs):
                continue
            ratio = median(theirs) / median(ours)
            ratio = 1 / ratio if row.more_is_better else ratio
            texts.append(f"{name} {ratio:.1f}x" if ratio < 100 else f"{name} {ratio:.0f}x")
        if texts and row.source[0] in CACHE_ONLY:
            texts[-1] += "; ours decodes nothing here"
        return ", ".join(texts) or "–"

    def goals(self):
        """Number of goals that were met, and of those that were measured."""
        met = [self.verdict(row, column, median(self.values(row, column))).endswith("**ok**")
               for row in ROWS for column in row.targets if self.values(row, column)]
        return sum(met), len(met)


def goal_of(row):
    sign = "≥" if row.more_is_better else "≤"
    return ", ".join(
        f"{sign} {target:,g}" + ("" if column == "compact" else f" {column}")
        for column, target in row.targets.items()) or "–"


# Rows that show that the work is the same; more work is not better.
NO_RATIO = ("per event", "per add", "of them failed", "… reconciles a second")


def tables(results):
    """Markdown."""
    parts = []
    for table in dict.fromkeys(row.table for row in ROWS):
        rows = [row for row in ROWS if row.table == table]
        columns = results.columns(rows)
        if not columns:
            continue
        head = ["", "rounds", "goal", *(COLUMNS[column] for column in columns), "ours, default, beside"]
        lines = [f"### {table}", "", "| " + " | ".join(head) + " |",
                 "|---|---|---|" + "---:|" * len(columns) + "---|"]
        for row in rows:
            if not any(results.values(row, column) for column in columns):
                continue
            title = results.title(row)
            cells = [results.cell(row, column) for column in columns]
            is_count = any(words in row.title for words in NO_RATIO)
            ratio = "" if is_count else results.ratios(row)
            lines.append("| " + " | ".join([title, results.rounds(row), goal_of(row), *cells, ratio]) + " |")
        parts.append("\n".join(lines))
    if results.errors:
        lines = ["Void, and in no figure:", ""]
        lines += [f"- {job}, {results.failures[job]} times: {error}"
                  for job, error in sorted(results.errors.items())]
        parts.append("\n".join(lines))
    if results.sizes:
        parts.append(f"Rounds in which a job ran: {results.rounds_by_job()}.")
    if results.noisy:
        parts.append("While these ran, other programs used more than the limit: "
                     + ", ".join(sorted(results.noisy)) + ".")
    return "\n\n".join(parts)


def facts(data):
    """A paragraph about the machine and the versions."""
    about = data["about"]
    rounds = data["rounds"]
    words = [f"{about['date']}, {about['machine']}, {about['kernel']}.",
             f"{', '.join(f'{name} {version}' for name, version in about['versions'].items())}.",
             f"{rounds} rounds in which drivers take turns, context in fewer of them; medians, "
             "ranges in brackets."
             if rounds > 1 else "One round; no ranges."]
    if about["quick"]:
        words.append("**Small sizes (`--quick`): these figures show that it runs, nothing more.**")
    if about["loads"]:
        words.append("Load before each round, our own last job's included: "
                     + ", ".join(f"{load:.2f}" for load in about["loads"]) + "; cores used by others: "
                     + ", ".join(f"{others:.2f}" for others in about["others"]) + ".")
    if about.get("void"):
        words.append(f"{about['void']} rounds were void (others used the machine at their start).")
    if data["late"]:
        words.append(f"There was no time left for {len(data['late'])} jobs: "
                     + ", ".join(data["late"]) + ".")
    return " ".join(words)


def between(text, name, new):
    """`text` with the part between two markers replaced."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    if begin not in text or end not in text:
        raise ValueError(f"there is no place marked {name!r}")
    head, rest = text.split(begin, 1)
    return f"{head}{begin}\n\n{new}\n\n{end}{rest.split(end, 1)[1]}"
