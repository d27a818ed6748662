"""Draws the charts of the book from bench/results into docs/src/charts.

    python3 bench/charts.py            # write them
    python3 bench/charts.py --check    # fail if one is stale

Needs the standard library only.
"""

import csv
import math
import sys
from collections import defaultdict
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
OUT = ROOT / "docs" / "src" / "charts"

# (light, dark)
INK, SOFT, GRID, PAGE = ("#1c2430", "#e7ebf2"), ("#5b6675", "#a4afc0"), ("#dfe4ea", "#353c49"), ("#ffffff", "#1b1f27")
SERIES = [("#1f6fd0", "#6fb1ff"), ("#d1600a", "#ffa14d"), ("#2e8b57", "#6fd397"), ("#8a4fc4", "#c79bf2"),
          ("#b8325e", "#ff8fb1"), ("#6f7a88", "#aab4c3")]


class Chart:
    def __init__(self, width, height, title):
        self.width, self.height, self.title, self.parts = width, height, title, []
        self.text(20, 30, title, 16, anchor="start", bold=True)

    def text(self, x, y, text, size=12, anchor="middle", kind="ink", bold=False, turn=None):
        extra = ' font-weight="600"' if bold else ""
        extra += ' transform="rotate(%g %g %g)"' % (turn, x, y) if turn is not None else ""
        self.parts.append('<text class="%s" x="%.1f" y="%.1f" font-size="%g" text-anchor="%s"%s>%s</text>'
                          % (kind, x, y, size, anchor, extra, escape(text)))

    def line(self, x1, y1, x2, y2, kind="grid"):
        self.parts.append('<path class="%s" d="M%.1f %.1f L%.1f %.1f"/>' % (kind, x1, y1, x2, y2))

    def rect(self, x, y, w, h, series):
        self.parts.append('<rect class="f%d" x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="2"/>' % (series, x, y, w, h))

    def curve(self, points, series, dashed=False):
        path = "M" + " L".join("%.1f %.1f" % p for p in points)
        dash = ' stroke-dasharray="6 4"' if dashed else ""
        self.parts.append('<path class="l%d" d="%s"%s/>' % (series, path, dash))
        for x, y in points:
            self.parts.append('<circle class="f%d" cx="%.1f" cy="%.1f" r="3"/>' % (series, x, y))

    def svg(self):
        def rules(i):
            out = [".page{fill:%s;stroke:%s}" % (PAGE[i], GRID[i]), ".ink{fill:%s}.soft{fill:%s}" % (INK[i], SOFT[i]),
                   ".grid{stroke:%s}.axis{stroke:%s}" % (GRID[i], SOFT[i])]
            for n, colour in enumerate(SERIES):
                out.append(".f%d{fill:%s}.l%d{stroke:%s}" % (n, colour[i], n, colour[i]))
            return "".join(out)

        lines = ",".join(".l%d" % n for n in range(len(SERIES)))
        style = ("text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans',sans-serif}"
                 ".grid,.axis{stroke-width:1;fill:none}%s{fill:none;stroke-width:2}" % lines
                 + rules(0) + "@media(prefers-color-scheme:dark){" + rules(1) + "}")
        return ('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">'
                '\n<title>%s</title>\n<style>%s</style>\n<rect class="page" x="0.5" y="0.5" width="%d" height="%d" rx="10"/>\n%s\n</svg>\n'
                % (self.width, self.height, self.width, self.height, escape(self.title, True), escape(self.title), style,
                   self.width - 1, self.height - 1, "\n".join(self.parts)))


def rows(name):
    with open(RESULTS / (name + ".csv"), newline="") as file:
        return list(csv.DictReader(file))


def scale(low, high, start, end):
    """A logarithmic scale."""
    a, b = math.log(low), math.log(high)
    return lambda v: start + (end - start) * (math.log(v) - a) / (b - a)


def legend(chart, x, y, names, gap=24):
    for n, name in enumerate(names):
        chart.rect(x, y - 9, 12, 12, n)
        chart.text(x + 18, y + 1, name, 12, anchor="start")
        x += 18 + len(name) * 6.6 + gap


def bars(title, axis, items, series, low, high, ticks, note=None):
    """Horizontal bars on a logarithmic axis; `items` are (label, [value of each series])."""
    step = 14 * len(series) + 12
    top = 76 if len(series) > 1 else 50
    height = top + step * len(items) + (94 if note else 70)
    chart = Chart(760, height, title)
    left, right, bottom = 270, 700, top + 8 + step * len(items)
    at = scale(low, high, left, right)
    if len(series) > 1:
        legend(chart, left, 56, series)
    for tick in ticks:
        chart.line(at(tick), top, at(tick), bottom, "axis" if tick == 1 else "grid")
        chart.text(at(tick), bottom + 18, "%g" % tick, 12, kind="soft")
    chart.text((left + right) / 2, bottom + 40, axis, 12, kind="soft")
    for i, (label, values) in enumerate(items):
        y = top + 10 + i * step
        chart.text(left - 10, y + 7 * len(series) + 2, label, 12, anchor="end")
        for n, value in enumerate(values):
            start = at(1) if low < 1 else left
            a, b = sorted((start, at(value)))
            chart.rect(a, y + 14 * n, max(b - a, 1), 11, n)
            text = "%.2f" % value if value < 2 else "%.1f" % value if value < 100 else "%.0f" % value
            chart.text(b + 6 if value >= 1 else a - 6, y + 14 * n + 9.5, text, 11,
                       anchor="start" if value >= 1 else "end", kind="soft")
    if note:
        chart.text(20, height - 14, note, 11, anchor="start", kind="soft")
    return chart


def against_tensorflow():
    """How many times as fast as TensorFlow, for the main points."""
    found = {}
    for row in rows("single-task") + rows("cluster"):
        if row["tensorflow"] and row["ferroflow"]:
            tf, ours = float(row["tensorflow"]), float(row["ferroflow"])
            lower = row["metric"] in ("latency", "first_run", "steady_step", "server_cpu", "ready")
            found[row["benchmark"], row["point"], row["metric"]] = tf / ours if lower and ours else ours / tf if tf else None
    for row in rows("checkpoint"):
        if row["unit"] == "MB/s":
            found["checkpoint", row["what"], "speed"] = float(row["ferroflow"]) / float(row["tensorflow"])
    wanted = [
        ("null step, one task", ("null_step", "via run", "latency")),
        ("null step, callable", ("null_step", "via callable", "latency")),
        ("64 clients, steps/s", ("concurrency", "clients 64", "steps")),
        ("feed of 1 MB", ("feed_fetch", "bytes 1 MB, op feed", "throughput")),
        ("fetch of 16 MB", ("feed_fetch", "bytes 16 MB, op fetch", "throughput")),
        ("first run of 20,000 nodes (chain)", ("large_graph", "nodes 20000, shape chain", "first_run")),
        ("steady step of 20,000 nodes (chain)", ("large_graph", "nodes 20000, shape chain", "steady_step")),
        ("steady step of 20,000 nodes (wide)", ("large_graph", "nodes 20000, shape wide", "steady_step")),
        ("start of a server", ("startup", "", "ready")),
        ("null step, ps and 2 workers", ("cluster_step", "mode data, via run", "latency")),
        ("read of 16 MB from a ps", ("cluster_traffic", "bytes 16 MB, op read, path default", "throughput")),
        ("linear, sync, Python client", ("cluster_train", "mode sync, model linear", "steps")),
        ("linear, sync, from Rust", ("train_job", "mode sync, model linear", "steps")),
        ("MLP, sync, Python client", ("cluster_train", "mode sync, model mlp", "steps")),
        ("checkpoint write, 1 GB", ("checkpoint", "write", "speed")),
        ("checkpoint read, 1 GB", ("checkpoint", "read", "speed")),
    ]
    items = [(label, [found[key]]) for label, key in wanted]
    return bars("Speed beside TensorFlow 2.15.1", "times TensorFlow's speed (logarithmic)", items, ["Ferroflow"], 0.3, 200,
                [0.5, 1, 2, 5, 10, 20, 50, 100, 200])


def kernels():
    """The geometric mean over the shapes of each op, beside the best of TensorFlow and PyTorch."""
    ratios = defaultdict(lambda: defaultdict(list))
    for row in rows("kernels"):
        peers = [float(row[p]) for p in ("tensorflow", "pytorch") if row[p]]
        if row["op"] != "train_memory":
            ratios[row["op"]][row["threads"]].append(float(row["ferroflow"]) / max(peers))
    mean = lambda xs: math.exp(sum(map(math.log, xs)) / len(xs))
    items = [(op.replace("_", " "), [mean(by["1"]), mean(by["2"])]) for op, by in ratios.items()]
    return bars("Kernels beside the best of TensorFlow and PyTorch", "times the best peer's speed (logarithmic)", items,
                ["one thread", "two threads"], 0.4, 4, [0.5, 1, 2, 4],
                "Geometric mean over the shapes of each op; through a server, PyTorch in process.")


def size(n):
    for unit, factor in (("MB", 1 << 20), ("KB", 1 << 10)):
        if n >= factor:
            return "%d %s" % (n // factor, unit)
    return "%d B" % n


def duration(us):
    for unit, factor in (("s", 1e6), ("ms", 1e3)):
        if us >= factor:
            return "%g %s" % (us / factor, unit)
    return "%g µs" % us


def all_reduce(ranks):
    data = defaultdict(list)
    for row in rows("allreduce"):
        if int(row["ranks"]) == ranks and "cycle" not in row["implementation"]:
            data[row["implementation"], row["link"]].append((int(row["bytes"]), float(row["median_us"])))
    order = [("Ferroflow, shared memory", "ferroflow", "shared memory"), ("Ferroflow, TCP", "ferroflow", "tcp"),
             ("Open MPI, shared memory", "openmpi", "shared memory"), ("Open MPI, TCP", "openmpi", "tcp"),
             ("gloo, TCP", "gloo", "tcp"), ("Horovod, TCP", "horovod", "tcp")]
    chart = Chart(760, 470, "All-reduce among %s ranks on one host" % {2: "two", 4: "four"}[ranks])
    left, right, top, bottom = 84, 730, 94, 404
    x, y = scale(4, 256 << 20, left, right), scale(0.1, 1e6, bottom, top)
    for tick in (4, 64, 1 << 10, 16 << 10, 256 << 10, 4 << 20, 64 << 20):
        chart.line(x(tick), top, x(tick), bottom)
        chart.text(x(tick), bottom + 18, size(tick), 12, kind="soft")
    for tick in (0.1, 1, 10, 100, 1e3, 1e4, 1e5, 1e6):
        chart.line(left, y(tick), right, y(tick))
        chart.text(left - 8, y(tick) + 4, duration(tick), 12, anchor="end", kind="soft")
    chart.line(left, bottom, right, bottom, "axis")
    chart.line(left, top, left, bottom, "axis")
    chart.text((left + right) / 2, bottom + 44, "bytes in each rank's buffer", 12, kind="soft")
    chart.text(22, (top + bottom) / 2, "median time", 12, kind="soft", turn=-90)
    for n, (name, implementation, link) in enumerate(order):
        chart.curve([(x(b), y(t)) for b, t in data[implementation, link]], n, dashed=implementation != "ferroflow")
        column, row = n % 3, n // 3
        chart.rect(84 + column * 220, 47 + row * 18, 12, 12, n)
        chart.text(102 + column * 220, 57 + row * 18, name, 12, anchor="start")
    return chart


def main():
    charts = {"against-tensorflow": against_tensorflow(), "kernels": kernels(), "all-reduce-2": all_reduce(2),
              "all-reduce-4": all_reduce(4)}
    OUT.mkdir(parents=True, exist_ok=True)
    stale = []
    for name, chart in charts.items():
        path, text = OUT / (name + ".svg"), chart.svg()
        if "--check" in sys.argv[1:]:
            stale += [] if path.exists() and path.read_text() == text else [str(path)]
        else:
            path.write_text(text)
    if stale:
        sys.exit("stale, run python3 bench/charts.py: " + ", ".join(stale))


if __name__ == "__main__":
    main()
