"""Bar charts as SVG: a separate light card, so that a chart reads the same on any page."""

from html import escape
from statistics import median

from .jobs import COLUMNS, OURS
from .report import figure
from .rows import ROWS

WIDTH, LABEL, BAR, GAP, TOP = 720, 190, 20, 8, 62
CHARTS = {
    "sync": "CPU until the cache is complete, µs per Pod",
    "first": "CPU until every Pod was reconciled once, µs per Pod",
    "memory": "Resident memory after sync, KB per Pod",
    "churn": "Resident memory after 20 updates of each, KB per Pod",
    "relist": "Memory at the peak of a relist, beside before",
    "events": "Watch events into the cache, per second (more is better)",
    "paced": "CPU per watch event and reconcile that reads, µs per Pod",
    "p50": "Event written to reconcile begun at 1000 a second, median, µs",
    "p99": "Event written to reconcile begun at 1000 a second, 99th percentile, µs",
    "widget-first": "Custom resources of 1 KB: CPU until each was reconciled once, µs",
    "widget-memory": "Custom resources of 1 KB: resident memory after sync, KB",
    "widget-paced": "Custom resources of 1 KB: CPU per event and reconcile, µs",
    "index": "Lookup of 20 among 20k Pods, median, µs",
    "queue": "Keyed work queue: CPU per add, get and done, ns",
    "own": "A controller's own way into its queue: CPU per add, get and done, ns",
    "flight": "20k reconciles in flight: CPU each, µs",
    "failing": "2,000 reconciles a second of which 1 in 10 fails: CPU, ms a second",
}


def draw(title, bars, goal, about):
    """`bars`: label, value, ours or not."""
    height = TOP + len(bars) * (BAR + GAP) + 28
    most = max(value for _, value, _ in bars) or 1
    room = WIDTH - LABEL - 96
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="13">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#fbfaf7" stroke="#d8d5cc"/>',
        f'<text x="20" y="30" font-size="15" font-weight="600" fill="#1c1c1a">{escape(title)}</text>',
    ]
    if goal:
        out.append(f'<text x="20" y="49" fill="#5d5b55">goal: {escape(goal)}</text>')
    for at, (label, value, is_ours) in enumerate(bars):
        y = TOP + at * (BAR + GAP)
        length = max(2, round(room * value / most))
        fill = "#1f7a5c" if is_ours else "#9a978e"
        weight = ' font-weight="600"' if is_ours else ""
        out.append(f'<text x="{LABEL - 10}" y="{y + 15}" text-anchor="end" fill="#1c1c1a"{weight}>'
                   f"{escape(label)}</text>")
        out.append(f'<rect x="{LABEL}" y="{y}" width="{length}" height="{BAR}" rx="3" fill="{fill}"/>')
        out.append(f'<text x="{LABEL + length + 8}" y="{y + 15}" fill="#1c1c1a">{figure(value)}</text>')
    out.append(f'<text x="20" y="{height - 10}" font-size="11" fill="#77746c">{escape(about)}</text>')
    out.append("</svg>")
    return "\n".join(out) + "\n"


def write(results, folder, about):
    """Writes a chart for each row with a chart; the names written."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for row in ROWS:
        if not row.chart:
            continue
        bars = [(COLUMNS[column], median(values), column in OURS)
                for column in COLUMNS if (values := results.values(row, column))]
        if len(bars) < 2:
            continue
        bars.sort(key=lambda bar: bar[1], reverse=row.more_is_better)
        sign = "≥" if row.more_is_better else "≤"
        goal = "; ".join(f"{COLUMNS[column]} {sign} {target:,g}"
                         for column, target in row.targets.items())
        (folder / f"{row.chart}.svg").write_text(draw(CHARTS[row.chart], bars, goal, about))
        written.append(row.chart)
    return written


def gallery(names):
    """Markdown that shows them."""
    return "\n\n".join(f"![{CHARTS[name]}](performance/{name}.svg)" for name in names)
