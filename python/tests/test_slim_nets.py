"""The networks of `tf.contrib.slim.nets`: their graphs, variables and end points, and a step."""

import hashlib
import unittest

import numpy as np

import ferroflow.compat.v1 as tf
from ferroflow.contrib.slim.nets import alexnet, inception, overfeat, resnet_utils, resnet_v1, resnet_v2, vgg

slim = tf.contrib.slim

# Network: (arguments, size of images, nodes, digest of the nodes, variables, end points), recorded
# from the networks of the package tf_slim with TensorFlow 2.15.1, which are those of contrib.
NETWORKS = [
    (resnet_v1.resnet_arg_scope, resnet_v1.resnet_v1_50, dict(num_classes=10), 224, (2364, "493cad71639f3ec4", 267, 75)),
    (resnet_v2.resnet_arg_scope, resnet_v2.resnet_v2_50, dict(num_classes=10, output_stride=8, global_pool=False), 224, (2463, "0866c5204e7b275e", 272, 75)),
    (vgg.vgg_arg_scope, vgg.vgg_16, dict(num_classes=10), 224, (346, "708474e15417f0d0", 32, 21)),
    (vgg.vgg_arg_scope, vgg.vgg_a, dict(spatial_squeeze=False), 224, (247, "0071dea778b0530a", 22, 16)),
    (alexnet.alexnet_v2_arg_scope, alexnet.alexnet_v2, {}, 224, (179, "6ad0863c11dffd96", 16, 11)),
    (overfeat.overfeat_arg_scope, overfeat.overfeat, {}, 231, (183, "d4958ac7c3be9828", 16, 11)),
    (inception.inception_v1_arg_scope, inception.inception_v1, {}, 224, (2290, "b1473436a209b060", 230, 18)),
    (inception.inception_v2_arg_scope, inception.inception_v2, dict(depth_multiplier=0.5, is_training=False), 224, (1993, "961efc2853494a6d", 277, 17)),
    (inception.inception_v3_arg_scope, inception.inception_v3, {}, 299, (3845, "82fa34f96bf393fc", 388, 22)),
]


class SlimNetsTest(unittest.TestCase):
    def test_graphs_are_those_of_contrib(self):
        for scope, network, arguments, size, expected in NETWORKS:
            with self.subTest(network=network.__name__), tf.Graph().as_default() as graph:
                x = tf.placeholder(tf.float32, [2, size, size, 3], name="x")
                with slim.arg_scope(scope()):
                    _, end_points = network(x, **arguments)
                nodes = sorted([n.name, n.op, list(n.input)] for n in graph.as_graph_def().node)
                text = "\n".join(" ".join([name, op, *inputs]) for name, op, inputs in nodes)
                digest = hashlib.sha256(text.encode()).hexdigest()[:16]
                self.assertEqual((len(nodes), digest, len(tf.global_variables()), len(end_points)), expected)

    def test_names_and_numbers_of_parameters(self):
        with tf.Graph().as_default():
            x = tf.placeholder(tf.float32, [None, 224, 224, 3])
            with slim.arg_scope(resnet_v1.resnet_arg_scope()):
                net, end_points = resnet_v1.resnet_v1_50(x, 1000, is_training=False)
            self.assertEqual(net.get_shape().as_list(), [None, 1, 1, 1000])
            self.assertEqual(resnet_v1.resnet_v1_50.default_image_size, 224)
            names = [v.op.name for v in slim.get_model_variables()]
            self.assertIn("resnet_v1_50/block4/unit_3/bottleneck_v1/conv2/BatchNorm/moving_variance", names)
            self.assertIn("resnet_v1_50/block1/unit_1/bottleneck_v1/shortcut/weights", names)
            self.assertIn("resnet_v1_50/block2", end_points)
            self.assertIn("predictions", end_points)
            self.assertEqual(sum(v.get_shape().num_elements() for v in tf.trainable_variables()), 25557032)
        with tf.Graph().as_default():
            with slim.arg_scope(vgg.vgg_arg_scope()):
                vgg.vgg_16(tf.placeholder(tf.float32, [1, 224, 224, 3]))
            self.assertEqual(sum(v.get_shape().num_elements() for v in tf.trainable_variables()), 138357544)

    def test_a_small_network_of_blocks_learns(self):
        with tf.Graph().as_default(), tf.Session() as sess:
            tf.set_random_seed(1)
            blocks = [resnet_v2.resnet_v2_block("block1", base_depth=2, num_units=2, stride=2)]
            x, y = tf.placeholder(tf.float32, [None, 16, 16, 3]), tf.placeholder(tf.int32, [None])
            with slim.arg_scope(resnet_utils.resnet_arg_scope(batch_norm_decay=0.9)):
                net, _ = resnet_v2.resnet_v2(x, blocks, num_classes=2, scope="small")
            logits = tf.squeeze(net, [1, 2])
            tf.losses.sparse_softmax_cross_entropy(y, logits)
            total = tf.losses.get_total_loss()
            train = slim.learning.create_train_op(total, tf.train.AdamOptimizer(0.01))
            sess.run(tf.global_variables_initializer())
            rng = np.random.RandomState(0)
            labels = rng.randint(0, 2, 32)
            images = (rng.rand(32, 16, 16, 3) + labels[:, None, None, None]).astype(np.float32)
            losses = [sess.run(train, {x: images, y: labels}) for _ in range(30)]
            self.assertLess(losses[-1], 0.5 * losses[0])

    def test_end_points_stop_a_network(self):
        with tf.Graph().as_default():
            x = tf.placeholder(tf.float32, [1, 299, 299, 3])
            net, end_points = inception.inception_v3_base(x, final_endpoint="MaxPool_5a_3x3")
            self.assertEqual(list(end_points)[-1], "MaxPool_5a_3x3")
            self.assertEqual(net.get_shape().as_list(), [1, 35, 35, 192])
            with self.assertRaisesRegex(ValueError, "Unknown final endpoint nothing"):
                inception.inception_v1_base(x, final_endpoint="nothing", scope="other")
            with self.assertRaisesRegex(ValueError, "depth_multiplier is not greater than zero"):
                inception.inception_v2_base(x, depth_multiplier=0)
            with self.assertRaisesRegex(ValueError, "The output_stride needs to be a multiple of 4"):
                resnet_v1.resnet_v1_50(x, output_stride=6)

    def test_old_paths_find_the_networks(self):
        from ferroflow.contrib.slim.python.slim.nets import resnet_v1 as old
        from ferroflow.contrib.slim.python.slim.nets.vgg import vgg_19

        self.assertIs(old.resnet_v1_101, slim.nets.resnet_v1.resnet_v1_101)
        self.assertIs(vgg_19, slim.nets.vgg.vgg_e)


if __name__ == "__main__":
    unittest.main()
