"""Sessions and servers with GPUs, which are simulated: each program runs in a process of its own."""

import os
import shutil
import subprocess
import sys
import textwrap
import unittest


@unittest.skipIf(shutil.which("g++") is None, "simulated GPUs need g++")
class GpuTest(unittest.TestCase):
    def run_program(self, text, **environment):
        text = "import ferroflow.compat.v1 as tf\n" + textwrap.dedent(text)
        path = os.pathsep.join(sys.path)
        environment = {**os.environ, "PYTHONPATH": path, "FERROFLOW_SIMULATE_GPUS": "2", **environment}
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.split()

    GPUS = """
        with tf.Session(config=config) as sess:
            print(*[d.name[-5:] for d in sess.list_devices() if d.device_type == "GPU"])
    """

    def gpus(self, config, **environment):
        return self.run_program("config = " + config + textwrap.dedent(self.GPUS), **environment)

    def test_sessions_have_the_gpus_that_their_configuration_chooses(self):
        self.assertEqual(self.gpus("None"), ["GPU:0", "GPU:1"])
        self.assertEqual(self.gpus("tf.ConfigProto(device_count={'GPU': 0})"), [])
        one = "tf.ConfigProto(gpu_options=tf.GPUOptions(visible_device_list='1', allow_growth=True))"
        self.assertEqual(self.gpus(one), ["GPU:0"])
        self.assertEqual(self.gpus("None", CUDA_VISIBLE_DEVICES="-1"), [])

    def test_a_part_of_the_memory_is_the_limit(self):
        limits = self.run_program(
            """
            options = tf.GPUOptions(per_process_gpu_memory_fraction=0.25)
            with tf.Session(config=tf.ConfigProto(gpu_options=options)) as sess:
                print(*[d.memory_limit_bytes for d in sess.list_devices() if d.device_type == "GPU"])
            """
        )
        self.assertEqual(limits, [str(2**29)] * 2)

    def test_ops_run_on_the_gpu_of_a_session_and_of_a_server(self):
        found = self.run_program(
            """
            server = tf.train.Server.create_local_server()
            for target in "", server.target:
                with tf.Session(target) as sess:
                    x = tf.placeholder(tf.float32, [2])
                    y = tf.square(x, name="y" + target[:1])
                    metadata = tf.RunMetadata()
                    full = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
                    got = sess.run(y, {x: [2, 3]}, full, metadata)
                    rows = [d.device[-5:] for d in metadata.step_stats.dev_stats for n in d.node_stats if n.node_name == y.op.name]
                    print(*got, *rows)
            print(tf.test.gpu_device_name(), tf.test.is_gpu_available())
            """
        )
        self.assertEqual(found, ["4.0", "9.0", "GPU:0"] * 2 + ["/device:GPU:0", "True"])

    def test_a_wrong_list_is_an_invalid_argument(self):
        found = self.run_program(
            """
            try:
                tf.Session(config=tf.ConfigProto(gpu_options=tf.GPUOptions(visible_device_list="7")))
            except tf.errors.InvalidArgumentError as e:
                print("invalid GPU id '7'" in str(e))
            """
        )
        self.assertEqual(found, ["True"])


if __name__ == "__main__":
    unittest.main()
