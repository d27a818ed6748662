"""`tf.contrib.image`."""

import unittest

import numpy as np

import ferroflow.compat.v1 as tf

image = tf.contrib.image


class ContribImage(unittest.TestCase):
    def setUp(self):
        tf.reset_default_graph()
        self.picture = np.arange(25, dtype=np.float32).reshape(5, 5)

    def value(self, tensor):
        with tf.Session() as sess:
            return sess.run(tensor)

    def test_rotate(self):
        found = self.value([image.rotate(self.picture, np.pi / 2), image.rotate(self.picture[None, :, :, None], [np.pi]),
                            image.rotate(np.stack([self.picture, self.picture], -1).astype(np.uint8), 0.0),
                            image.rotate(np.ones([1, 5, 5, 1], np.float32), np.pi / 4, interpolation="BILINEAR")])
        np.testing.assert_array_equal(found[0], np.rot90(self.picture))
        np.testing.assert_array_equal(found[1][0, :, :, 0], self.picture[::-1, ::-1])
        np.testing.assert_array_equal(found[2][:, :, 1], self.picture)
        self.assertEqual(found[3][0, 2, 2, 0], 1)
        self.assertAlmostEqual(found[3][0, 0, 0, 0], 0.17157, places=4)

    def test_translate(self):
        found = self.value([image.translate(self.picture, [1.0, 0.0]),
                            image.translate(np.stack([self.picture] * 2)[..., None], [[0, -2], [0, 0]])])
        np.testing.assert_array_equal(found[0][:, 1:], self.picture[:, :-1])
        np.testing.assert_array_equal(found[0][:, 0], 0)
        np.testing.assert_array_equal(found[1][0, :3, :, 0], self.picture[2:])
        np.testing.assert_array_equal(found[1][1, :, :, 0], self.picture)

    def test_transform(self):
        twice = image.transform(self.picture, [1, 0, 0, 0, 1, 0, 0, 0], output_shape=[2, 3])
        both = image.compose_transforms([1.0, 0, 2, 0, 1, 0, 0, 0], [1.0, 0, 0, 0, 1, 3, 0, 0])
        there = image.matrices_to_flat_transforms(2.0 * image.flat_transforms_to_matrices([[1.0, 2, 3, 4, 5, 6, 7, 8]]))
        found = self.value([twice, both, there])
        np.testing.assert_array_equal(found[0], self.picture[:2, :3])
        np.testing.assert_allclose(found[1], [[1, 0, 2, 0, 1, 3, 0, 0]])
        np.testing.assert_allclose(found[2], [[1, 2, 3, 4, 5, 6, 7, 8]])

    def test_gradients(self):
        x = tf.constant(self.picture[None, :, :, None])
        weights = tf.constant(np.random.RandomState(0).rand(1, 5, 5, 1).astype(np.float32))
        moved = image.translate(x, [1.0, 2.0])
        grad = self.value(tf.gradients(moved * weights, x)[0])
        np.testing.assert_allclose(grad[0, :3, :4, 0], self.value(weights)[0, 2:, 1:, 0], rtol=1e-6)
        np.testing.assert_array_equal(grad[0, 3:, :, 0], 0)

    def test_mistakes(self):
        with self.assertRaisesRegex(TypeError, "Images should have rank between 2 and 4"):
            image.rotate([1.0], 0.5)
        with self.assertRaisesRegex(TypeError, "Transforms should have rank 1 or 2"):
            image.transform(self.picture, 1.0)
        with self.assertRaisesRegex(TypeError, "Invalid dtype"):
            image.transform([["a"]], [1.0] * 8)


if __name__ == "__main__":
    unittest.main()
