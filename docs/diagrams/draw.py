"""Draws the diagrams of the book into docs/src/diagrams.

    python3 docs/diagrams/draw.py            # write them
    python3 docs/diagrams/draw.py --check    # fail if one is stale
"""

import sys
from pathlib import Path

from svg import Picture

DIAGRAMS = {}


def diagram(function):
    DIAGRAMS[function.__name__.replace("_", "-")] = function
    return function


@diagram
def overview():
    p = Picture(760, 300, "A client opens a session on a worker; variables live on a parameter server")
    p.frame(220, 20, 520, 260, "cluster")
    p.box(24, 70, 150, 62, "client", "client", ["Python or Rust"])
    p.box(24, 170, 150, 62, "client", "client", ["Python or Rust"])
    p.box(290, 64, 180, 74, "worker", "worker 0", ["master + worker service"])
    p.box(290, 164, 180, 74, "worker", "worker 1", ["master + worker service"])
    p.box(570, 108, 150, 86, "ps", "ps 0", ["variables", "optimizer"])
    p.arrow(174, 101, 287, 101, "gRPC", dx=-6)
    p.arrow(174, 201, 287, 201, "gRPC", dx=-6)
    p.arrow(473, 101, 567, 135, kind="data", both=True)
    p.arrow(473, 201, 567, 167, kind="data", both=True)
    p.text(520, 262, "values: shared memory, TCP or gRPC", 12, ink="data")
    return p


@diagram
def ps_and_worker():
    p = Picture(760, 330, "What a parameter server and two workers exchange in a step")
    p.box(290, 24, 180, 96, "ps", "ps 0", ["variables w, b", "optimizer applies", "the gradients"])
    p.box(40, 210, 210, 96, "worker", "worker 0", ["own examples", "forward pass", "backward pass"])
    p.box(510, 210, 210, 96, "worker", "worker 1", ["own examples", "forward pass", "backward pass"])
    p.line([(290, 60), (110, 60), (110, 207)], "control")
    p.text(100, 50, "1  values of w, b", 12, ink="soft")
    p.line([(190, 210), (190, 96), (287, 96)], "data")
    p.text(200, 160, "2  gradients", 12, anchor="start", ink="data")
    p.line([(470, 60), (650, 60), (650, 207)], "control")
    p.text(660, 50, "1  values of w, b", 12, ink="soft")
    p.line([(570, 210), (570, 96), (473, 96)], "data")
    p.text(560, 160, "2  gradients", 12, anchor="end", ink="data")
    p.text(380, 250, "workers never talk", 12, ink="soft")
    p.text(380, 268, "to each other", 12, ink="soft")
    return p


def _lifeline(p, x, y, end, fill, head, lines=()):
    p.box(x - 72, y, 144, 50, fill, head, lines)
    p.add('<path class="edge line" d="M%g %g L%g %g" stroke-dasharray="3 4"/>' % (x, y + 50, x, end))


@diagram
def step():
    p = Picture(760, 560, "The messages of a step: the first run compiles it, later runs only execute it")
    client, master, worker, ps = 100, 290, 480, 660
    for x, fill, head, lines in ((client, "client", "client", []), (master, "worker", "worker 0", ["its master"]),
                                 (worker, "worker", "worker 1", []), (ps, "ps", "ps 0", [])):
        _lifeline(p, x, 18, 545, fill, head, lines)
    p.arrow(client, 100, master - 3, 100, "CreateSession: the graph")
    p.text(master + 8, 104, "gives each node a device", 12, anchor="start", ink="soft")
    p.arrow(client, 140, master - 3, 140, "RunStep: feeds, fetches")
    p.box(master - 80, 160, 160, 80, "good", "first run only", ["prune to what is needed", "cut into one part a task"], size=13)
    p.arrow(master, 268, worker - 3, 268, "RegisterGraph: its part")
    p.arrow(master, 296, ps - 3, 296, "RegisterGraph", dx=100)
    p.box(worker - 66, 308, 132, 44, "good", None, ["optimize its part,", "make its plan"], size=13)
    p.box(ps - 66, 308, 132, 44, "good", None, ["optimize its part,", "make its plan"], size=13)
    p.add('<path class="edge line" d="M20 370 L740 370" stroke-dasharray="6 5"/>')
    p.text(30, 388, "every run", 12, anchor="start", ink="soft")
    p.arrow(master, 402, worker - 3, 402, "RunGraph: step 7")
    p.arrow(master, 426, ps - 3, 426, "RunGraph: step 7", dx=95)
    p.arrow(ps, 456, worker + 3, 456, "value of w, pushed", kind="data")
    p.arrow(worker, 482, ps - 3, 482, "gradient, pushed", kind="data")
    p.arrow(worker, 508, master + 3, 508, "part is done")
    p.arrow(master, 532, client + 3, 532, "fetched values")
    return p


@diagram
def compile_step():
    p = Picture(760, 190, "From a graph to a plan")
    stages = [("GraphDef", ["from the client"], "client"), ("place", ["device for", "each node"], "worker"),
              ("prune", ["what fetches", "need"], "worker"), ("partition", ["one part", "a task"], "worker"),
              ("optimize", ["fold, merge,", "fuse"], "worker"), ("plan", ["kernels,", "last uses"], "good")]
    w, gap = 102, 22
    for i, (head, lines, fill) in enumerate(stages):
        x = 18 + i * (w + gap)
        p.box(x, 40, w, 78, fill, head, lines)
        if i:
            p.arrow(x - gap, 79, x - 3, 79)
    p.text(204, 150, "on the master, once for each set of", 12, ink="soft")
    p.text(204, 167, "feeds, fetches and targets", 12, ink="soft")
    p.text(625, 150, "on each task, once for its part", 12, ink="soft")
    return p


@diagram
def replication():
    p = Picture(760, 400, "In-graph replication has one client; between-graph replication has one client a worker")
    p.text(190, 30, "in-graph", 16, bold=True)
    p.text(570, 30, "between-graph", 16, bold=True)
    p.add('<path class="edge line" d="M380 18 L380 380" stroke-dasharray="6 5"/>')
    p.box(100, 50, 180, 66, "client", "one client", ["one graph, cut in parts,", "one session"])
    p.box(30, 176, 140, 66, "worker", "worker 0", ["tower 0"])
    p.box(210, 176, 140, 66, "worker", "worker 1", ["tower 1"])
    p.box(110, 302, 160, 66, "ps", "ps 0", ["variables"])
    p.arrow(165, 116, 110, 173, kind="control")
    p.arrow(215, 116, 270, 173, kind="control")
    p.arrow(110, 245, 165, 299, kind="data", both=True)
    p.arrow(270, 245, 215, 299, kind="data", both=True)
    p.box(410, 50, 140, 66, "client", "client 0", ["own graph", "and session"])
    p.box(590, 50, 140, 66, "client", "client 1", ["own graph", "and session"])
    p.box(410, 176, 140, 66, "worker", "worker 0", ["replica 0"])
    p.box(590, 176, 140, 66, "worker", "worker 1", ["replica 1"])
    p.box(490, 302, 160, 66, "ps", "ps 0", ["variables, shared", "by name"])
    p.arrow(480, 116, 480, 173, kind="control")
    p.arrow(660, 116, 660, 173, kind="control")
    p.arrow(490, 245, 545, 299, kind="data", both=True)
    p.arrow(650, 245, 595, 299, kind="data", both=True)
    return p


@diagram
def tokens():
    p = Picture(760, 470, "Synchronous training: gradients wait in accumulators, tokens release the workers")
    p.box(36, 62, 150, 64, "worker", "worker 0", ["computes gradients"])
    p.box(36, 206, 150, 64, "worker", "worker 1", ["computes gradients"])
    p.frame(266, 24, 300, 426, "ps 0")
    p.box(296, 58, 240, 82, "ps", "accumulators", ["one for each variable;", "drop gradients of an older step"])
    p.box(296, 206, 240, 72, "ps", "variables", ["w, b, global step"])
    p.box(296, 346, 240, 84, "ps", "token queue", ["each token holds", "the new global step"])
    p.box(614, 200, 128, 84, "chief", "chief", ["worker 0, in a", "thread of its own"])
    p.line([(186, 88), (293, 88)], "data")
    p.line([(186, 222), (228, 222), (228, 114), (293, 114)], "data")
    p.text(226, 76, "1 gradients", 12, ink="data")
    p.line([(416, 140), (416, 203)], "data")
    p.text(428, 178, "2 mean of all workers", 12, anchor="start", ink="data")
    p.line([(416, 278), (416, 343)], "mark")
    p.text(428, 316, "3 N tokens", 12, anchor="start", ink="mark")
    p.line([(614, 242), (539, 242)], "control", dashed=True)
    p.text(678, 306, "runs 2 and 3, again", 12, ink="soft")
    p.text(678, 322, "and again", 12, ink="soft")
    p.line([(296, 370), (111, 370), (111, 273)], "mark")
    p.line([(296, 406), (16, 406), (16, 94), (33, 94)], "mark")
    p.text(140, 426, "4 each worker takes one token", 12, ink="mark")
    p.text(111, 162, "without a token", 12, ink="soft")
    p.text(111, 179, "a worker waits", 12, ink="soft")
    return p


@diagram
def ring_overview():
    p = Picture(560, 330, "Four ranks in a ring: each sends to the next and receives from the one before")
    places = [(280, 62), (452, 165), (280, 268), (108, 165)]
    for rank, (x, y) in enumerate(places):
        p.box(x - 66, y - 34, 132, 68, "worker", "rank %d" % rank, ["variables, gradients"], size=13)
    p.curve("M349 62 Q440 66 450 128")
    p.curve("M452 202 Q444 262 349 268")
    p.curve("M211 268 Q118 262 108 202")
    p.curve("M108 128 Q118 66 211 62")
    p.text(280, 160, "each move carries", 12, ink="soft")
    p.text(280, 177, "K/N bytes on every link", 12, ink="soft")
    return p


def _ring_states(n):
    """Which ranks' values each part of each rank holds, after every move; and the part each has just received."""
    state = [[{rank} for _ in range(n)] for rank in range(n)]
    yield "start", [[set(s) for s in row] for row in state], [None] * n
    for phase in ("reduce-scatter", "all-gather"):
        for move in range(n - 1):
            old = [[set(s) for s in row] for row in state]
            got = [None] * n
            for rank in range(n):
                shift = move if phase == "reduce-scatter" else move - 1
                part = (rank - shift) % n
                to = (rank + 1) % n
                state[to][part] = old[to][part] | old[rank][part] if phase == "reduce-scatter" else old[rank][part]
                got[to] = part
            yield phase, [[set(s) for s in row] for row in state], got


@diagram
def ring():
    n = 4
    panels = list(_ring_states(n))
    final = panels[-1][1]
    assert all(len(s) == n for row in final for s in row), "the ring does not end with complete sums"
    cell, gap, top = 34, 3, 66
    width, height = 4 * (cell + gap), 4 * (cell + gap)
    p = Picture(760, 478, "Ring all-reduce among four ranks: three moves add up, three moves spread the sums")
    p.text(18, 26, "Each row is a rank, each column a part of the gradients. The number says how many ranks are summed.", 13,
           anchor="start")
    for i, (phase, state, got) in enumerate(panels):
        row, column = (0, i) if i < 4 else (1, i - 4)
        x, y = 66 + column * 174, top + row * 212
        if i == 0:
            label = "start"
        elif i < n:
            label = "move %d: add" % i
        else:
            label = "move %d: copy" % i
        p.text(x + width / 2, y - 8, label, 13, bold=True)
        for rank in range(n):
            if column == 0:
                p.text(x - 10, y + rank * (cell + gap) + 22, "rank %d" % rank, 11, anchor="end", ink="soft")
            for part in range(n):
                count = len(state[rank][part])
                p.cell(x + part * (cell + gap), y + rank * (cell + gap), cell, cell, "s%d" % count, str(count),
                       marked=got[rank] == part)
    p.text(570, 310, "Orange: the part that a", 12, anchor="start", ink="soft")
    p.text(570, 327, "rank has just received", 12, anchor="start", ink="soft")
    p.text(570, 344, "from the rank above it.", 12, anchor="start", ink="soft")
    p.text(570, 376, "After 2(N-1) = 6 moves", 12, anchor="start", ink="soft")
    p.text(570, 393, "every rank has all sums.", 12, anchor="start", ink="soft")
    p.text(18, 460, "Moves 1 to 3 are the reduce-scatter, moves 4 to 6 the all-gather. Rank 0 receives from rank 3.", 12,
           anchor="start", ink="soft")
    return p


@diagram
def failure():
    p = Picture(760, 330, "How a job recovers when a parameter server dies")
    y = 70
    stages = [("ps 0 is killed", ["connections break"], "bad"), ("step fails", ["Unavailable,", "names ps 0"], "bad"),
              ("launcher", ["starts ps 0", "again"], "chief"), ("chief", ["opens a session,", "restores checkpoint"], "worker"),
              ("training", ["continues from", "that step"], "good")]
    w, gap = 124, 24
    for i, (head, lines, fill) in enumerate(stages):
        x = 18 + i * (w + gap)
        p.box(x, y, w, 84, fill, head, lines)
        if i:
            p.arrow(x - gap, y + 42, x - 3, y + 42)
    p.text(18, 40, "killed: seen at once", 13, anchor="start", bold=True)
    p.text(18, 206, "hangs or is cut off: seen within 3 s", 13, anchor="start", bold=True)
    p.box(18, 224, 124, 74, "bad", "ps 0", ["is silent"])
    p.box(314, 224, 150, 74, "worker", "master", ["waits for a step"])
    p.arrow(314, 248, 145, 248, "GetStatus: alive?", dy=-8)
    p.arrow(464, 261, 560, 261, "no answer", dy=-8)
    p.box(563, 224, 170, 74, "bad", "step fails", ["Unavailable, names ps 0"], size=14)
    return p


@diagram
def elastic():
    p = Picture(760, 250, "An elastic job: after a loss the ranks return to the last commit and meet again")
    y, w, gap = 92, 128, 20
    stages = [("4 ranks train", ["commit every", "few steps"], "worker"), ("rank 2 dies", ["the step fails", "on all others"], "bad"),
              ("3 ranks meet", ["new epoch at", "the driver"], "chief"), ("restore", ["rank 0's last", "commit, for all"], "worker"),
              ("3 ranks train", ["a new process", "may join later"], "good")]
    for i, (head, lines, fill) in enumerate(stages):
        x = 18 + i * (w + gap)
        p.box(x, y, w, 84, fill, head, lines)
        if i:
            p.arrow(x - gap, y + 42, x - 3, y + 42)
    p.text(18, 50, "epoch 1", 13, anchor="start", bold=True)
    p.text(314, 50, "epoch 2", 13, anchor="start", bold=True)
    p.add('<path class="edge line" d="M18 62 L294 62 M314 62 L738 62"/>')
    p.text(18, 222, "The driver runs in the launcher and gives each process its rank for the epoch.", 12, anchor="start", ink="soft")
    return p


def main():
    folder = Path(__file__).resolve().parent.parent / "src" / "diagrams"
    folder.mkdir(parents=True, exist_ok=True)
    stale = []
    for name, draw in DIAGRAMS.items():
        path, text = folder / (name + ".svg"), draw().svg()
        if "--check" in sys.argv[1:]:
            stale += [] if path.exists() and path.read_text() == text else [str(path)]
        else:
            path.write_text(text)
    if stale:
        sys.exit("stale, run python3 docs/diagrams/draw.py: " + ", ".join(stale))


if __name__ == "__main__":
    main()
