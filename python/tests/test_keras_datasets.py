"""`tf.keras.datasets` from local files."""

import gzip
import os
import pickle
import tempfile
import unittest

import numpy as np

import ferroflow.compat.v1 as tf

datasets = tf.keras.datasets


class KerasDatasets(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def test_a_missing_file_says_where_it_comes_from(self):
        with self.assertRaisesRegex(FileNotFoundError, "downloads no data. Get it from https://.*mnist.npz .*load_data.path="):
            datasets.mnist.load_data(self.path("mnist.npz"))

    def test_arrays(self):
        x, y = np.arange(2 * 28 * 28, dtype=np.uint8).reshape(2, 28, 28), np.array([3, 4], np.uint8)
        np.savez(self.path("m.npz"), x_train=x, y_train=y, x_test=x[:1], y_test=y[:1])
        (a, b), (c, d) = datasets.mnist.load_data(self.path("m.npz"))
        np.testing.assert_array_equal(a, x)
        self.assertEqual((b.tolist(), c.shape, d.tolist()), ([3, 4], (1, 28, 28), [3]))
        np.savez(self.path("b.npz"), x=np.arange(10)[:, None] * np.ones(13), y=np.arange(10.0))
        (a, b), (c, d) = datasets.boston_housing.load_data(self.path("b.npz"))
        self.assertEqual((a.shape, c.shape), ((8, 13), (2, 13)))
        np.testing.assert_array_equal(a[:, 0], b)

    def test_images_in_other_files(self):
        for prefix, count in (("train", 3), ("t10k", 2)):
            for kind, data in (("labels-idx1", b"\0" * 8 + bytes(range(count))), ("images-idx3", b"\0" * 16 + bytes([7]) * 784 * count)):
                with gzip.open(self.path("%s-%s-ubyte.gz" % (prefix, kind)), "wb") as f:
                    f.write(data)
        (a, b), (c, _) = datasets.fashion_mnist.load_data(self.folder)
        self.assertEqual((a.shape, b.tolist(), c.shape), ((3, 28, 28), [0, 1, 2], (2, 28, 28)))
        for i, name in enumerate(["data_batch_%d" % (i + 1) for i in range(5)] + ["test_batch"]):
            with open(self.path(name), "wb") as f:
                pickle.dump({b"data": np.full((2, 3072), i, np.uint8), b"labels": [i, i + 1]}, f)
        (a, b), (c, d) = datasets.cifar10.load_data(self.folder)
        self.assertEqual((a.shape, b.shape, b.dtype, c.shape, d.tolist()), ((10, 32, 32, 3), (10, 1), np.uint8, (2, 32, 32, 3), [[5], [6]]))

    def test_a_pickle_cannot_run_code(self):
        class Evil:
            def __reduce__(self):
                return os.system, ("true",)

        with open(self.path("train"), "wb") as f:
            pickle.dump({b"data": Evil()}, f)
        with self.assertRaisesRegex(pickle.UnpicklingError, "which no data set has"):
            datasets.cifar100.load_data(path=self.folder)

    def test_reviews(self):
        rows = np.empty(3, object)
        rows[:] = [[1, 2, 9], [4], [5, 6, 7, 8]]
        np.savez(self.path("i.npz"), x_train=rows, y_train=np.array([0, 1, 1]), x_test=rows[:1], y_test=np.array([1]))
        (a, b), (c, d) = datasets.imdb.load_data(self.path("i.npz"), num_words=9)
        self.assertEqual(sorted(map(tuple, a)), [(1, 4, 5, 2), (1, 7), (1, 8, 2, 2, 2)])
        self.assertEqual((len(b), list(c[0]), d.tolist()), (3, [1, 4, 5, 2], [1]))
        (a, _), _ = datasets.imdb.load_data(self.path("i.npz"), maxlen=4)
        self.assertEqual([list(row) for row in a], [[1, 7]])


if __name__ == "__main__":
    unittest.main()
