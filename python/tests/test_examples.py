"""Runs the programs of python/examples/ on two ranks."""

import os
import unittest

import ranks

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "examples")


def _example():
    import runpy
    runpy.run_path(os.path.join(FOLDER, os.environ["EXAMPLE"]), run_name="__main__")


class Examples(unittest.TestCase):
    def _run(self, name, env=None):
        out = ranks.run(self, 2, __file__, "_example", {"EXAMPLE": name, **(env or {})})
        self.assertIn("2", out[0])

    def test_numpy(self):
        self._run("numpy_average.py")

    def test_graph(self):
        self._run("graph_mlp.py")

    @ranks.requires("torch")
    def test_torch(self):
        self._run("torch_mlp.py")
        self._run("torch_ddp.py")

    @ranks.requires("tensorflow")
    def test_tensorflow(self):
        self._run("tensorflow_mlp.py")

    @ranks.requires("jax")
    def test_jax(self):
        self._run("jax_mlp.py")

    @ranks.requires("keras")
    def test_keras(self):
        import importlib.util
        found = [f for f in ("tensorflow", "torch", "jax") if importlib.util.find_spec(f)]
        self._run("keras_mlp.py", {"KERAS_BACKEND": found[0]})


if __name__ == "__main__":
    unittest.main()
