"""Pages that are generated from the package are fresh."""

import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class GeneratedTest(unittest.TestCase):
    def check(self, tool):
        path = os.path.join(HERE, "tools", tool)
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        found = subprocess.run([sys.executable, path, "--check"], capture_output=True, text=True, env=env, timeout=120)
        self.assertEqual(found.returncode, 0, f"python3 python/tools/{tool} writes it again\n{found.stdout}{found.stderr}")

    def test_the_page_of_public_names(self):
        self.check("names_page.py")


if __name__ == "__main__":
    unittest.main()
