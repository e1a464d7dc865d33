"""The Python of README and docs/python.md: it runs, and gives what stands below it."""

import doctest
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PROJECT = pathlib.Path(__file__).resolve().parents[2]


def blocks(document):
    text = (PROJECT / document).read_text()
    return re.findall(r"^```(\w+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


class Documents(unittest.TestCase):
    def setUp(self):
        folder = os.getcwd()
        os.chdir(PROJECT)
        self.addCleanup(os.chdir, folder)

    def result_of(self, code):
        """What pytest says of a file of tests."""
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, code.split()[1])
            file.write_text(code)
            command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", file]
            return subprocess.run(command, capture_output=True, text=True).stdout

    def assert_test_file(self, document, passed, failed):
        """The first block of Python is a file of tests, the text after it is of what pytest says."""
        found = blocks(document)
        code = next(text for language, text in found if language == "python" and text.startswith("# test_"))
        said = self.result_of(code)
        self.assertIn(next(text for language, text in found if language == "text"), said)
        self.assertRegex(said, f"{failed} failed" + (f", {passed} passed" if passed else ""))
        return code

    def test_a_test_on_the_gpu(self):
        first, second = (text for language, text in blocks("docs/python.md") if language == "python" and text.startswith("# test_"))
        self.assertRegex(self.result_of(second), "[13] passed|1 skipped")

    def test_every_block_of_python_is_a_test(self):
        for language, text in blocks("docs/python.md"):
            self.assertIn(language, ("sh", "text", "python"))
            self.assertTrue(language != "python" or text.startswith(("# test_", ">>> ")), text)

    def test_the_kernel_of_readme(self):
        self.assert_test_file("README.md", 0, 1)

    def test_the_kernel_of_the_seeds_is_caught_by_name_in_30_lines(self):
        code = self.assert_test_file("docs/python.md", 3, 1)
        self.assertLessEqual(len(code.splitlines()), 30)

    def test_examples(self):
        examples = "".join(text for _, text in blocks("docs/python.md") if text.startswith(">>>"))
        test = doctest.DocTestParser().get_doctest(examples, {}, "docs/python.md", None, 0)
        failed, tried = doctest.DocTestRunner().run(test)
        self.assertEqual(failed, 0)
        self.assertGreater(tried, 5)


if __name__ == "__main__":
    unittest.main()
