"""Mistakes with sessions raise the exceptions that TensorFlow raises."""

import gzip
import json
import os
import unittest

import ferroflow.compat.v1 as tf
import wrong_calls

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fixtures", "wrong_calls.json.gz")

# Parts of calls whose outcome differs, with the reason.
DIFFERENT = {
    "options=3)": "TensorFlow fails inside with an AttributeError",
    "InteractiveSession(config='a')": "TensorFlow fails inside with an AttributeError",
    "partial_run_setup([y], ['nope:0'])": "TensorFlow fails inside with an AttributeError",
    "sess.close() or sess.make_callable(y)": "a closed session is a RuntimeError here too",
    "sess.make_callable(y, [x])()": "a wrong number of arguments is a TypeError here",
    "sess.make_callable(y, ['nope:0'])": "a missing name is refused before the first call",
    "decode_json_example": "the function is missing",
    "2**70": "an OverflowError of Python in TensorFlow",
    "{z: 2**40}) if z.append_(tf.placeholder(tf.bool": "type and shape of the feed are both wrong",
    "tf.placeholder(tf.string": "type and shape of the feed are both wrong; the other one is named first",
}


class WrongCallTest(unittest.TestCase):
    def test_wrong_calls_raise_what_tensorflow_raises(self):
        """Random calls, most of them wrong: four of five at least have TensorFlow's class of exception, or its static shape."""
        with gzip.open(PATH) as f:
            recorded = json.load(f)["calls"][::10]
        verbosity = tf.logging.get_verbosity()
        tf.logging.set_verbosity(tf.logging.FATAL)
        self.addCleanup(tf.logging.set_verbosity, verbosity)
        different = [call for call, *want in recorded if list(wrong_calls.outcome(tf, call)[:2]) != want]
        self.assertLess(len(different), len(recorded) * 0.2, different)


class SessionMistakeTest(unittest.TestCase):
    def test_mistakes_with_sessions(self):
        with gzip.open(PATH) as f:
            recorded = json.load(f)["steps"]
        self.assertGreater(len(recorded), 500)
        verbosity = tf.logging.get_verbosity()
        tf.logging.set_verbosity(tf.logging.FATAL)
        self.addCleanup(tf.logging.set_verbosity, verbosity)
        for step, *want in recorded:
            if any(part in step for part in DIFFERENT):
                continue
            with self.subTest(step):
                self.assertEqual(list(wrong_calls.step_outcome(tf, step)[:2]), want)


if __name__ == "__main__":
    unittest.main()
