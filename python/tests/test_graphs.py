"""Graphs equal TensorFlow's, node by node; the table of names is current."""

import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import compare_graphs  # noqa: E402
import graph_programs  # noqa: E402
from known_differences import KNOWN  # noqa: E402

import ferroflow.compat.v1 as tf  # noqa: E402


class Graphs(unittest.TestCase):
    def test_programs_build_the_graphs_that_tensorflow_builds(self):
        graph_programs.load()
        for name, want in compare_graphs.recorded().items():
            with self.subTest(name):
                try:
                    lines = graph_programs.differences(graph_programs.build(tf, name), want)
                except (AttributeError, NotImplementedError, ValueError, ImportError) as e:
                    lines = [str(e)]
                if name in KNOWN:
                    self.assertTrue(lines, "%s is equal now: remove it from KNOWN" % name)
                else:
                    self.assertEqual(lines, [])

    def test_the_table_of_names_is_current(self):
        tool = os.path.join(os.path.dirname(HERE), "tools", "api_names.py")
        subprocess.run([sys.executable, tool, "--check"], check=True)


if __name__ == "__main__":
    unittest.main()
