"""Makes Markdown tables from the lines of a run: the goals, then every point.

    python report.py lines.jsonl
"""

import json
import statistics
import sys
from collections import defaultdict

from goals import GOALS, OverFloor, Ratio, Share, Value

TF_MODES = {"tensorflow": "oneDNN off", "tensorflow+onednn": "oneDNN on", "torch": "PyTorch"}
FLOOR = "floor"


class Figures:
    """The values of each point, by implementation."""

    def __init__(self, lines):
        self.run = next((d for d in lines if d["name"] == "run"), {})
        self.ours = self.run.get("ours", "ferroflow")
        self.points = defaultdict(lambda: defaultdict(list))
        self.about = {}  # point -> (unit, better)
        for d in lines:
            if d["name"] != "run" and d["value"] is not None:
                key = point(d["name"], d["metric"], d["params"])
                self.points[key][d["impl"]].append(d["value"])
                self.about[key] = d["unit"], d["better"]

    def of(self, key, impl):
        return self.points[key].get(impl) if key in self.points else None

    def tensorflow(self, key):
        """The values of the better mode, and its name.  PyTorch counts as a mode."""
        found = [(statistics.median(xs), mode) for mode in TF_MODES
                 for xs in [self.of(key, mode)] if xs]
        if not found:
            return None, None
        pick = min if self.about[key][1] == "lower" else max
        _, mode = pick(found, key=lambda f: f[0])
        return self.of(key, mode), TF_MODES[mode]


def point(name, metric, params):
    return name, metric, tuple(sorted(params.items()))


def number(x):
    if abs(x) >= 1e6:
        return "%.3g M" % (x / 1e6)
    return "%.0f" % x if abs(x) >= 100 or x == int(x) else "%.3g" % x


def spread(xs, unit=""):
    if not xs:
        return "–"
    text = number(statistics.median(xs)) + (" " + unit if unit else "")
    if min(xs) != max(xs):
        text += " (%s..%s)" % (number(min(xs)), number(max(xs)))
    return text


def table(head, rows):
    lines = [head, ["---"] * len(head)] + rows
    return ["| " + " | ".join(line) + " |" for line in lines]


# ------------------------------------------------------------------------------- goals


def goal_row(goal, figures):
    """The row of a goal: its text, both sides, how they compare, and the outcome."""
    key = point(goal.name, goal.metric, goal.params)
    ours, (tf, _) = figures.of(key, figures.ours), figures.tensorflow(key)
    floor = figures.of(key, FLOOR)
    unit = figures.about.get(key, ("", ""))[0]
    compared = ratio_text(ours, tf)
    value = None
    if isinstance(goal.rule, Ratio):
        value = ratio(ours, tf)
    elif isinstance(goal.rule, OverFloor):
        compared = "–"
        if ours and floor:
            base = statistics.median(floor)
            value = statistics.median(ours) - base
            compared = "floor %s %+.0f" % (number(base), value)
    elif isinstance(goal.rule, Share):
        whole = figures.of(point(goal.name, goal.rule.of, goal.rule.params), figures.ours)
        value = ratio(ours, whole)
        compared = "%s of %s" % (ratio_text(ours, whole), spread(whole, unit))
    elif isinstance(goal.rule, Value) and ours:
        # An error in any round is an error.
        value = max(ours) if goal.metric == "errors" else statistics.median(ours)
    if value is None:
        outcome = "not measured"
    else:
        outcome = "met" if holds(value, goal.rule) else "**not met**"
    return [goal.text, spread(tf, unit), spread(ours, unit), compared, outcome]


def ratio(ours, tf):
    if ours and tf and statistics.median(tf):
        return statistics.median(ours) / statistics.median(tf)
    return None


def ratio_text(ours, tf):
    found = ratio(ours, tf)
    if found is None:
        return "–"
    return ("%.2fx" if found >= 0.05 else "%.2gx") % found


def holds(value, rule):
    return value <= rule.limit if rule.op == "<=" else value >= rule.limit


# -------------------------------------------------------------------------- the report


def machine_text(run):
    m = run.get("machine", {})
    return "%s, %s cores, %s GB, Linux %s; %s" % (
        m.get("cpu", "?"), m.get("cores", "?"), m.get("memory_gb", "?"), m.get("kernel", "?"),
        run.get("date", "?"))


def render(lines):
    f = Figures(lines)
    ours = f.ours[0].upper() + f.ours[1:]
    others = [d["other_cores"] for d in lines if "other_cores" in d]
    out = ["# %s beside TensorFlow 2.15.1" % ours, "", "Machine: %s." % machine_text(f.run), ""]
    out += ["Median over %s round%s (lowest..highest), the implementations taking turns, one Python "
            "client for all. TensorFlow is the better of its two CPU modes, point by point; ratios "
            "are %s / TensorFlow." % (f.run.get("rounds", "?"),
                                      "s"[:f.run.get("rounds") != 1], ours)]
    if others:
        out += ["Meanwhile other processes used %.2f cores at the median, %.2f at most%s."
                % (statistics.median(others), max(others),
                   ": rough figures" if statistics.median(others) > 0.15 else "")]
    if f.run.get("quick"):
        out += ["A quick run: short, rough."]
    for what in (d["failed"] for d in lines if "failed" in d):
        out += ["", "**Failed: %s**" % what]
    rows = [goal_row(g, f) for g in GOALS]
    out += ["", "## Goals", ""]
    out += table(["goal", "TensorFlow", ours, "ratio", ""], rows)
    met = sum(r[-1] == "met" for r in rows)
    measured = sum(r[-1] != "not measured" for r in rows)
    out += ["", "%d of %d measured goals met, %d not measured." % (met, measured, len(rows) - measured)]
    for name in dict.fromkeys(key[0] for key in f.points):
        out += ["", "## " + name, ""]
        out += table(["point", "metric", "unit", "TensorFlow", "mode", ours, "ratio", "floor"],
                     [row(key, f) for key in f.points if key[0] == name])
    return "\n".join(out).rstrip() + "\n"


def row(key, f):
    ours, (tf, mode) = f.of(key, f.ours), f.tensorflow(key)
    where = ", ".join("%s %s" % (k, size(v) if k == "bytes" else v) for k, v in key[2])
    return [where or "–", key[1], f.about[key][0], spread(tf), mode or "–", spread(ours), ratio_text(ours, tf),
            spread(f.of(key, FLOOR))]


def size(n):
    for unit, shift in (("MB", 20), ("KB", 10)):
        if n >= 1 << shift:
            return "%g %s" % (n / (1 << shift), unit)
    return "%d B" % n


def load(path):
    with open(path) as f:
        return [json.loads(line) for line in f if line.strip()]


if __name__ == "__main__":
    print(render(load(sys.argv[1])), end="")
