"""Compares the graphs that Ferroflow builds with those that TensorFlow built.

    PYTHONPATH=python python3 python/tests/compare_graphs.py [PROGRAM...]
"""

import gzip
import json
import os
import sys
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)


def recorded():
    with gzip.open(os.path.join(HERE, "fixtures", "graphs.json.gz"), "rt") as f:
        return json.load(f)


def main():
    import graph_programs
    import ferroflow.compat.v1 as tf
    graph_programs.load()
    want = recorded()
    names = sys.argv[1:] or sorted(want)
    equal = 0
    for name in names:
        try:
            lines = graph_programs.differences(graph_programs.build(tf, name), want[name])
        except Exception as e:
            traceback.print_exc(limit=-5)
            lines = ["%s: %s" % (type(e).__name__, e)]
        equal += not lines
        if lines:
            print("%s: %d differences" % (name, len(lines)))
            for line in lines[:8]:
                print("    " + line[:240])
    print("%d of %d graphs are equal" % (equal, len(names)))


if __name__ == "__main__":
    main()
