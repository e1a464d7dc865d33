"""compare, check and the assertions; the doctests of the package; the program in it."""

import doctest
import itertools
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import xml.etree.ElementTree
from unittest import mock

import numpy as np

import lnorm
from lnorm import _library, _norms, _reports, testing

PROGRAM = os.environ["LNORM_PROGRAM"]
SEEDS = pathlib.Path(__file__).resolve().parents[2] / "data/seeds"
X = np.load(SEEDS / "eps_on_std/x.npy")
WRONG = np.load(SEEDS / "eps_on_std/eps_on_std.npy")
RIGHT = np.load(SEEDS / "eps_on_std/layer_norm.npy")


def program(*words):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True).stdout


# Of the planes of Unicode, and what a report must not confuse or cannot hold.
NAMES = ["\n", "\\n", "\\\\n", "\x85", "\\u0085", "\\x85", "\ufffe", "\uffff", "\\ufffe", "<&>\"'", "]]>", "\u2028", "\u202e",
         *map(chr, range(1, 0xA0)), *(chr(plane * 0x10000 + last) for plane in range(17) for last in (0x41, 0xFFFD, 0xFFFE, 0xFFFF))]  # fmt: skip


class Names(unittest.TestCase):
    def test_every_report_is_well_formed(self):
        names = sorted({"name " + name for name in NAMES})
        with tempfile.TemporaryDirectory() as folder:
            for number, file in enumerate(["a", "b"]):
                header = {
                    name: {"dtype": "F32", "shape": [1], "data_offsets": [4 * i, 4 * i + 4]} for i, name in enumerate(names)
                }
                text = json.dumps(header, ensure_ascii=False).encode()
                with open(f"{folder}/{file}.safetensors", "wb") as out:
                    out.write(struct.pack("<Q", len(text)) + text)
                    out.write(np.arange(number, number + len(names), dtype="<f4").tobytes())
            words = [f"{folder}/a.safetensors", f"{folder}/b.safetensors", "--save-junit", f"{folder}/x.xml"]
            document = json.loads(program("compare", *words, "--json"))
            self.assertEqual([pair["name"] for pair in document["tensors"]], names)
            cases = xml.etree.ElementTree.parse(f"{folder}/x.xml").iter("testcase")
            self.assertEqual(len({case.attrib["name"] for case in cases}), len(names))
            for command in ["stats", "check"]:
                given = words[: 1 if command == "stats" else 2]
                found = json.loads(program(command, *given, "--json"))
                self.assertEqual(len(found["tensors"]), len(names))


class Interruption(unittest.TestCase):
    def setUp(self):  # a job in the background of a shell begins with SIGINT ignored
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))

    def test_where_there_is_no_second_thread_the_first_works(self):
        _library._idle.clear()
        refused = mock.Mock(side_effect=RuntimeError("can't start new thread"))
        with mock.patch.object(_library._thread, "start_new_thread", refused):
            self.assertTrue(lnorm.inputs((2, 8)))
        refused.assert_called()

    def test_ctrl_c_ends_work_that_takes_a_minute(self):
        x = np.random.default_rng(1).standard_normal((20000, 1000))
        works = [lambda: lnorm.mutants(x, rtol=1e-3), lambda: lnorm.inputs((2000, 1000)),
                 lambda: lnorm.layer_norm(x, kernel="reference", threads=1)]
        to_whom = [lambda: os.kill(os.getpid(), signal.SIGINT),  # the system chooses a thread, which may be any
                   lambda: signal.pthread_kill(threading.get_ident(), signal.SIGINT)]
        for work, send in itertools.product(works, to_whom):
            timer = threading.Timer(0.1, send)
            timer.start()
            begin = time.monotonic()
            with self.assertRaises(KeyboardInterrupt):
                work()
            self.assertLess(time.monotonic() - begin, 5)


class Reports(unittest.TestCase):
    def test_a_verdict_is_the_program_s(self):
        verdict = lnorm.check(X, WRONG)
        folder = SEEDS / "eps_on_std"
        expected = program("check", folder / "x.npy", folder / "eps_on_std.npy")
        shown = expected.replace(str(folder / "x.npy"), "x").replace(str(folder / "eps_on_std.npy"), "y")
        self.assertEqual(str(verdict) + "\n", shown)
        document = json.loads(program("check", folder / "x.npy", folder / "eps_on_std.npy", "--json"))
        for key in document.keys() - {"input", "output"}:
            self.assertEqual(getattr(verdict, key), document[key])
        self.assertFalse(verdict)
        self.assertEqual(verdict.cause["ids"], ["eps-on-std"])
        self.assertTrue(lnorm.check(X, WRONG, eps_on="std"))
        self.assertIn("differs", repr(verdict))
        x = np.float32([[1, 2, 4]])
        of_rstd = lnorm.check(x, lnorm.layer_norm(x), actual_rstd=x.std(-1))
        self.assertTrue(repr(of_rstd).startswith("<Verdict: rstd: differs"))
        self.assertIn('crimson">rstd: differs', of_rstd._repr_html_())
        self.assertIn("cause", dir(verdict))
        self.assertTrue(verdict._repr_html_().startswith('<pre><b style="color: crimson">y: differs'))
        with self.assertRaises(AttributeError):
            verdict.no_such_key

    def test_a_comparison_is_the_program_s(self):
        folder = SEEDS / "eps_on_std"
        names = [folder / "eps_on_std.npy", folder / "layer_norm.npy"]
        found = lnorm.compare(WRONG, RIGHT, max_abs=1e-6, worst=2)
        expected = program("compare", *names, "--max-abs", "1e-6", "--worst", "2")
        shown = expected.replace(str(names[0]), "actual").replace(str(names[1]), "expected")
        self.assertEqual(str(found) + "\n", shown)
        self.assertEqual(found.mismatched, json.loads(program("compare", *names, "--max-abs", "1e-6", "--json"))["mismatched"])
        self.assertTrue(lnorm.compare(RIGHT, RIGHT[...], max_ulp=0))

    def test_what_is_not_finite_is_a_number(self):
        self.assertEqual(lnorm.compare(RIGHT, RIGHT).errors["sqnr_db"], float("inf"))

    def test_arrays_by_their_names(self):
        xs = {"h.0": X, "h.1": X[:, ::-1]}
        ys = {name: lnorm.layer_norm(x) for name, x in xs.items()}
        verdict = lnorm.check(xs, ys)
        self.assertTrue(verdict)
        self.assertEqual([tensor["name"] for tensor in verdict.tensors], ["h.0", "h.1"])
        weights = {"h.0": np.full(20, 2.0), "h.1": np.full(20, 3.0)}
        ys = {name: lnorm.layer_norm(x, weights[name]) for name, x in xs.items()}
        self.assertTrue(lnorm.check(xs, ys, weights))
        self.assertFalse(lnorm.compare(ys, xs))

    def test_keep_going_judges_the_others(self):
        x = np.arange(12, dtype=np.float32).reshape(3, 4) % 5
        y = lnorm.layer_norm(x)
        xs, ys = {"a": x, "b": x[:, :3], "c": x}, {"a": y, "b": y, "c": 2 * y}
        with self.assertRaisesRegex(ValueError, "b has shape"):
            lnorm.check(xs, ys)
        report = lnorm.check(xs, ys, keep_going=True)
        self.assertEqual((bool(report), report.exit_status), (False, 2))
        found = {tensor["name"]: tensor.get("verdict", tensor.get("error")) for tensor in report.json["tensors"]}
        self.assertEqual((found["a"], found["c"]), ("correctly rounded", "differs"))
        self.assertIn("has shape", found["b"])

    def test_keys_that_become_one_name_are_refused(self):
        with self.assertRaisesRegex(ValueError, "both 1 and '1' get the name '1'"):
            lnorm.check({1: [[1.0, 2.0]], "1": [[1.0, 2.0]]}, {1: [[-1.0, 1.0]], "1": [[-1.0, 1.0]]})

    def test_an_assertion_takes_any_name_of_a_dtype(self):
        y = lnorm.layer_norm(np.float32([[1, 2, 4]]))
        for dtype in "f4", "fp32", "FLOAT32", np.float32, "float32":
            testing.assert_layer_norm(y, np.float32([[1, 2, 4]]), dtype=dtype)
        with self.assertRaisesRegex(AssertionError, "y is float32, expected float16"):
            testing.assert_layer_norm(y, np.float32([[1, 2, 4]]), dtype="half")

    def test_what_could_not_be_judged_is_not_right(self):
        nothing = lnorm.check(X, X * 9, mask=np.zeros(X.shape))
        self.assertEqual((bool(nothing), nothing.exit_status, nothing.verdict), (False, 2, "not judged"))
        with self.assertRaisesRegex(AssertionError, "cannot be judged"):
            testing.assert_layer_norm(X * 9, X, mask=np.zeros(X.shape))
        testing.assert_layer_norm(X[:0], X[:0])  # there is nothing that could be wrong
        self.assertFalse(lnorm.compare({"a": X}, {"b": X}))

    def test_assertions_have_the_report(self):
        testing.assert_close(RIGHT, lnorm.layer_norm(X))
        testing.assert_layer_norm(RIGHT, X)
        with self.assertRaisesRegex(AssertionError, "mismatched: 57 / 80"):
            testing.assert_close(WRONG, lnorm.layer_norm(X))
        first = r"^y differs: eps is added to the standard deviation \(eps-on-std; --eps-on std\)\ny: differs"
        with self.assertRaisesRegex(AssertionError, first):
            testing.assert_layer_norm(WRONG, X)

    def test_every_difference_is_an_assertion_error(self):
        xs = {"h.0": X, "h.1": X[:, ::-1]}
        ys = {name: lnorm.layer_norm(x) for name, x in xs.items()}
        for words, call in [
            (r"y has shape \(2, 20\), but x has shape \(4, 20\)", lambda: testing.assert_layer_norm(RIGHT[:2], X)),
            ("^y is float32, expected float16\n", lambda: testing.assert_layer_norm(RIGHT, X, dtype=np.float16)),
            ("^y differs: input and output are exchanged", lambda: testing.assert_layer_norm(X, lnorm.layer_norm(X))),
            ("^only in x: h.1\n", lambda: testing.assert_layer_norm({"h.0": ys["h.0"]}, xs)),
            ("^only in y: h.1\n", lambda: testing.assert_layer_norm(ys, {"h.0": X})),
            ("have no name in common", lambda: testing.assert_layer_norm({"other": X}, xs)),
            ("^h.0 differs: eps is added to the standard deviation", lambda: testing.assert_layer_norm({**ys, "h.0": WRONG}, xs)),
            (r"actual and expected differ in shape: \(2, 20\), expected \(4, 20\)", lambda: testing.assert_close(RIGHT[:2], RIGHT)),
            ("only in expected: h.1", lambda: testing.assert_close({"h.0": X}, xs)),
        ]:
            with self.subTest(words=words), self.assertRaisesRegex(AssertionError, words):
                call()
        testing.assert_layer_norm(RIGHT, X, dtype="float32")
        with self.assertRaisesRegex(ValueError, "weight has shape"):
            testing.assert_layer_norm(RIGHT, X, [1.0, 2.0])
        with self.assertRaisesRegex(TypeError, "y is None"):
            testing.assert_layer_norm(None, X)
        testing.assert_layer_norm(None, X, dy=X, actual_dx=lnorm.layer_norm_backward(X, X)[0])
        with self.assertRaisesRegex(AssertionError, "dx differs"):
            testing.assert_layer_norm(None, X, dy=X, actual_dx=X)
        self.assertEqual(lnorm.check({"h.0": X}, ys).only_in_y, ["h.1"])
        self.assertFalse(lnorm.check({"h.0": X}, ys))
        testing.assert_close(X[:0], X[:0])
        testing.assert_layer_norm(X[:0], X[:0])

    def test_pytest_shows_no_line_of_the_package(self):
        code = "import numpy as np\nfrom lnorm.testing import assert_close\ndef test_it():\n    assert_close(np.ones(3), np.zeros(3))\n"
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "test_it.py")
            file.write_text(code)
            command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", file]
            shown = subprocess.run(command, capture_output=True, text=True).stdout
        self.assertIn("E       AssertionError: actual and expected differ", shown)
        self.assertNotIn("testing.py", shown)

    def test_a_bug_that_rounding_hides_is_a_warning(self):
        x = 2.3 * np.random.default_rng(3).normal(size=(64, 256)).astype(np.float32)
        y = lnorm.layer_norm(x, eps=1e-6)
        with self.assertWarnsRegex(UserWarning, "within rounding, but another formula is closer, .*\\(eps-1e-6\\)"):
            testing.assert_layer_norm(y, x)
        with self.assertRaisesRegex(AssertionError, "eps-1e-6"):
            testing.assert_layer_norm(y, x, strict=True)

    def test_what_criteria_let_pass_is_a_warning(self):
        y = lnorm.layer_norm(X, eps=3e-4)
        with self.assertWarnsRegex(UserWarning, "the criteria hold, but y differs: eps is 0.0003"):
            testing.assert_layer_norm(y, X, rtol=1e-2)
        with self.assertRaisesRegex(AssertionError, "eps is 0.0003"):
            testing.assert_layer_norm(y, X, rtol=1e-2, strict=True)

    def test_mutants_are_the_program_s(self):
        x = SEEDS / "eps_on_std/x.npy"
        words = ["--weight", "2", "--rtol", "1e-3", "--atol", "1e-3", "--kernels", "eps-*,ddof-1"]
        found = lnorm.mutants(X, 2, rtol=1e-3, atol=1e-3, kernels="eps-*,ddof-1")
        document = json.loads(program("mutants", x, *words, "--json"))
        self.assertEqual(found.survivors, document["survivors"])
        self.assertEqual([one["id"] for one in found.mutants], [one["id"] for one in document["mutants"]])
        self.assertFalse(found)
        self.assertIn("wrong kernels pass", str(found))
        self.assertTrue(lnorm.mutants(X, dy=X, kernels="no-mean-terms"))
        with self.assertRaisesRegex(ValueError, "no wrong kernel"):
            lnorm.mutants(X, kernels="no-such-*")

    def test_inputs_are_the_program_s(self):
        with tempfile.TemporaryDirectory() as folder:
            program("inputs", "--shape", "3,50", "--seed", "7", "--rms", "-o", folder + "/")
            manifest = json.loads(pathlib.Path(folder, "manifest.json").read_text())
            cases = lnorm.inputs((3, 50), seed=7, rms=True)
            self.assertEqual([case.name for case in cases], [case["name"] for case in manifest["cases"]])
            for case, entry in zip(cases, manifest["cases"]):
                self.assertEqual((case.purpose, case.kills), (entry["for"], entry["kills"]))
                for key in ("x", "weight", "bias", "dy"):
                    array = getattr(case, key)
                    self.assertEqual(array is None, entry.get(key) is None)
                    if array is not None:
                        np.testing.assert_array_equal(array, np.load(pathlib.Path(folder, entry[key])))
        self.assertEqual((len(cases), cases.alive), (12, []))
        self.assertTrue(lnorm.mutants(cases, rms=True, skip_kernels="truncated,away"))
        self.assertFalse(lnorm.mutants(cases[0].x, cases[0].weight, cases[0].bias, rms=True))
        with self.assertRaisesRegex(ValueError, "shape"):
            lnorm.inputs((0, 4))

    def test_check_takes_groups_and_statistics(self):
        x = np.random.default_rng(2).normal(size=(2, 6, 5)).astype("f4")
        self.assertTrue(lnorm.check(x, lnorm.group_norm(x, 3, [1, 2, 3, 4, 5, 6]), [1, 2, 3, 4, 5, 6], groups=3))
        known = {"axes": (0, 2), "mean": np.arange(6.0), "variance": np.ones(6)}
        self.assertTrue(lnorm.check(x, lnorm.layer_norm(x, **known), **known))
        wrong = lnorm.check(x, lnorm.layer_norm(x, axes=(0, 2)), **known)
        self.assertEqual(wrong.cause["ids"], ["own-statistics"])
        testing.assert_close({"a": x, "b": x}, {"a": x, "b": x + 1}, only=["a", "a*"])

    def test_options_are_what_python_has_for_them(self):
        nans = [np.nan, 1.0]
        self.assertTrue(lnorm.compare(nans, nans, equal_nan=True))
        self.assertFalse(lnorm.compare(nans, nans, equal_nan=False))
        self.assertFalse(lnorm.compare(nans, nans, no_equal_nan=True))
        x = np.random.default_rng(4).normal(size=(3, 4, 5)).astype("f4")
        for axes in ((1, 2), [1, 2], range(1, 3), np.array([1, 2])):
            self.assertTrue(lnorm.check(x, lnorm.layer_norm(x, axes=axes), axes=axes))
        eps = np.float32(1e-3)
        self.assertEqual(lnorm.check(x, lnorm.layer_norm(x, eps=eps), eps=eps).verdict, "correctly rounded")
        self.assertTrue(lnorm.check(x, lnorm.rms_norm(x), rms=np.True_))
        dx, dweight, dbias = lnorm.layer_norm_backward(x, x)
        self.assertTrue(lnorm.check(x, dy=x, actual_dx=dx, actual_dweight=dweight, actual_dbias=dbias))
        self.assertEqual(f"{lnorm.compare(x, x):.6}", "actual")
        with self.assertRaisesRegex(ValueError, "Inputs have their own"):
            lnorm.mutants(lnorm.inputs((2, 3)), 2.0)

    def test_doctests(self):
        for module in (lnorm, _norms, _reports, testing):
            failed, tried = doctest.testmod(module)
            self.assertEqual(failed, 0)
            self.assertGreater(tried, 0)

    def test_the_package_has_the_program(self):
        run = [sys.executable, "-m", "lnorm"]
        found = subprocess.run([*run, SEEDS / "eps_on_std/x.npy", "--to", "json"], capture_output=True, text=True)
        self.assertEqual(found.stdout, program(SEEDS / "eps_on_std/x.npy", "--to", "json"))
        found = subprocess.run([*run, "no.npy"], capture_output=True, text=True)
        self.assertEqual((found.returncode, found.stderr[:6]), (2, "lnorm:"))
        self.assertTrue(subprocess.run([*run, "--version"], capture_output=True, text=True).stdout.startswith(f"lnorm {lnorm.__version__}\n"))


if __name__ == "__main__":
    unittest.main()
