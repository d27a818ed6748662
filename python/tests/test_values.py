"""Values of small programs, compared with those that TensorFlow computed."""

import os
import unittest

import numpy as np

import ferroflow.compat.v1 as tf
import value_programs

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fixtures", "values.npz")


class ValueTest(unittest.TestCase):
    """One test for each program."""


def _test(name):
    def test(self):
        with np.load(PATH) as recorded:
            wanted = {k: recorded[k] for k in recorded.files if k.split("/")[0] == name}
        found = value_programs.run(tf, name)
        self.assertEqual(len(found), len(wanted))
        for key, value in zip(sorted(wanted), found):
            want = wanted[key]
            if key.endswith("/text"):
                value = np.vectorize(lambda b: b.hex())(value).astype("U")
            self.assertEqual((value.shape, value.dtype.kind), (want.shape, want.dtype.kind), key)
            if want.dtype.kind in "fc":
                np.testing.assert_allclose(value, want, rtol=2e-4, atol=1e-5, err_msg=key)
            else:
                np.testing.assert_array_equal(value, want, err_msg=key)
    return test


for _name in value_programs.PROGRAMS:
    setattr(ValueTest, "test_" + _name, _test(_name))

if __name__ == "__main__":
    unittest.main()
