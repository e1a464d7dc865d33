"""The norms of the module beside the program: the same bytes."""

import array
import gc
import itertools
import os
import pathlib
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import numpy as np

import lnorm

PROGRAM = os.environ["LNORM_PROGRAM"]
DATA = pathlib.Path(__file__).resolve().parents[2] / "data"
DTYPES = ["?", "i1", "<i2", "<i4", "<i8", "u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8", ">f4", ">f8", ">i2"]


def program(*words):
    return subprocess.run([PROGRAM, *map(str, words)], check=True, capture_output=True)


def list_of_itself():
    result: list = []
    result.append(result)
    return result


class Folder:
    """Files for the program, in one that goes away."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def save(self, name, array):
        np.save(self.path(name), array)
        return self.path(name + ".npy")

    def load(self, name):
        return np.load(self.path(name))


def layouts(array, rng):
    """The elements of arrays of that shape, lying in other ways."""
    yield array
    yield np.asfortranarray(array)
    yield array[::-1]
    yield array[..., ::-1]
    wide = np.repeat(array, 2, axis=-1)
    yield wide[..., ::2]
    yield np.broadcast_to(array[:1], array.shape)
    yield np.broadcast_to(array[..., :1], array.shape)
    yield np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 0, -1)), -1, 0)
    unaligned = np.frombuffer(b"?" + array.tobytes(), dtype=np.uint8)[1:].view(array.dtype)
    yield unaligned.reshape(array.shape)


class SameBytes(unittest.TestCase):
    def setUp(self):
        self.rng = np.random.default_rng(38)
        self.files = Folder()
        self.addCleanup(self.files.folder.cleanup)

    def assert_same(self, found, expected):
        self.assertEqual(found.dtype, expected.dtype)
        self.assertEqual(found.shape, expected.shape)
        self.assertEqual(found.tobytes(), expected.tobytes())

    def random_array(self, dtype, shape):
        values = self.rng.normal(0.2, 20, size=shape)
        return (np.abs(values) if np.dtype(dtype).kind in "u?" else values).astype(dtype)

    def test_every_dtype_and_layout(self):
        # One run of the program for all of them: a file of many tensors.
        arrays = {}
        for dtype in DTYPES:
            array = self.random_array(dtype, (3, 4, 5))
            for number, lying in enumerate(layouts(array, self.rng)):
                arrays[f"{np.dtype(dtype).str[1:]}{dtype[0] == '>'}.{number}"] = lying
        np.savez(self.files.path("all.npz"), **arrays)
        for axes in ("-1", "1,2", "0", "0,2"):
            program(self.files.path("all.npz") + ":*", "--axes", axes, "-o", self.files.path("y.npz"))
            with np.load(self.files.path("y.npz")) as expected:
                for name, array in arrays.items():
                    with self.subTest(name=name, axes=axes):
                        found = lnorm.layer_norm(array, axes=tuple(map(int, axes.split(","))))
                        self.assert_same(found, expected[name])

    def test_every_option(self):
        x = self.files.save("x", self.random_array("f4", (4, 6, 8)))
        weight = self.files.save("w", self.random_array("f2", (8,)))
        bias = self.files.save("b", self.random_array("f8", (8,)))
        residual = self.files.save("r", self.random_array("f2", (4, 6, 8)))
        given = {"weight": np.load(weight), "bias": np.load(bias), "residual": np.load(residual)}
        names = {"weight": weight, "bias": bias, "residual": residual}
        for words, options in [
            ("", {}),
            ("--eps 0.5", {"eps": 0.5}),
            ("--eps-on std", {"eps_on": "std"}),
            ("--eps-on max --eps 1", {"eps_on": "max", "eps": 1}),
            ("--ddof 3", {"ddof": 3}),
            ("--rms", {"rms": True}),
            ("--zero-centered-weight", {"zero_centered_weight": True}),
            ("--round sum,xhat,product", {"round": ("sum", "xhat", "product")}),
            ("--dtype float16", {"dtype": np.float16}),
            ("--dtype float64", {"dtype": "double"}),
            ("--threads 1", {"threads": 1}),
        ]:
            with self.subTest(words=words):
                auxiliary = itertools.chain(*(("--" + name, path) for name, path in names.items()))
                program(x, *auxiliary, *words.split(), "-o", self.files.path("y.npy"),
                        *([] if "rms" in words else ["--save-mean", self.files.path("m.npy")]),
                        "--save-rstd", self.files.path("s.npy"))  # fmt: skip
                y, mean, rstd = lnorm.layer_norm_with_stats(np.load(x), **given, **options)
                self.assert_same(y, self.files.load("y.npy"))
                self.assert_same(rstd, self.files.load("s.npy"))
                if mean is not None:
                    self.assert_same(mean, self.files.load("m.npy"))
                self.assert_same(lnorm.layer_norm(np.load(x), **given, **options), y)

    def test_the_arrays_of_data(self):
        for path in sorted(DATA.rglob("*.npy")):
            if "corpus" in path.parts or "fuzz" in path.parts:
                continue
            x = np.load(path)
            if x.ndim == 0 or x.dtype.kind not in "fiu":
                continue
            with self.subTest(path=path):
                program(path, "-o", self.files.path("y.npy"))
                self.assert_same(lnorm.layer_norm(x), self.files.load("y.npy"))

    def test_softmax_and_backward(self):
        for dtype in ("f2", "f4", "f8"):
            x = self.random_array(dtype, (5, 6, 7))
            dy = self.random_array(dtype, (5, 6, 7))[::-1]
            weight = self.random_array("f4", (7,))
            program("softmax", self.files.save("x", x), "-o", self.files.path("y.npy"))
            self.assert_same(lnorm.softmax(x), self.files.load("y.npy"))
            program("softmax", self.files.save("x", x), "--axes", "0,2", "-o", self.files.path("y.npy"))
            self.assert_same(lnorm.softmax(x, axes=(0, 2)), self.files.load("y.npy"))
            for axes, affine in ((-1, weight), (1, None)):
                words = [] if affine is None else ["--weight", self.files.save("w", affine)]
                program("grad", self.files.save("x", x), "--dy", self.files.save("dy", dy), *words, "--axes", axes,
                        *(w for n in ("dx", "dweight", "dbias") for w in ("--" + n, self.files.path(n + ".npy"))))  # fmt: skip
                found = lnorm.layer_norm_backward(dy, np.asfortranarray(x), affine, axes=axes)
                for name, array in zip(("dx", "dweight", "dbias"), found):
                    with self.subTest(name=name, dtype=dtype, axes=axes):
                        self.assert_same(array, self.files.load(name + ".npy"))
                _, mean, rstd = lnorm.layer_norm_with_stats(x, axes=axes)
                saved = lnorm.layer_norm_backward(dy, x, affine, axes=axes, mean=mean, rstd=rstd)
                self.assert_same(saved[2], found[2])

    def test_norms_that_are_not_over_trailing_axes(self):
        x = self.random_array("f4", (3, 6, 4, 5))
        dy = self.random_array("f4", x.shape)
        w, b = self.random_array("f4", (6,)), self.random_array("f4", (6,))
        mean, variance = self.random_array("f8", (6,)), np.abs(self.random_array("f8", (6,)))
        files = {name: self.files.save(name, array)
                 for name, array in dict(x=x, dy=dy, w=w, b=b, m=mean, v=variance).items()}  # fmt: skip
        given = {"mean": mean, "variance": variance}
        for words, options, known in [
            ("--groups 3", {"groups": 3}, {}),
            ("--axes 2,3 --affine-axes 1", {"axes": (2, 3), "affine_axes": 1}, {}),
            ("--axes 0,2,3 --affine-axes 1", {"axes": (0, 2, 3), "affine_axes": 1}, {}),
            (f"--axes 0,2,3 --affine-axes 1 --mean {files['m']} --variance {files['v']}",
             {"axes": (0, 2, 3), "affine_axes": 1}, given),
            ("--axes 0,2,3 --affine-axes 1 --mean 0.5 --rstd 2", {"axes": (0, 2, 3), "affine_axes": 1},
             {"mean": 0.5, "rstd": 2.0}),
        ]:  # fmt: skip
            program(files["x"], "--weight", files["w"], "--bias", files["b"], *words.split(), "-o", self.files.path("y.npy"))
            program("grad", files["x"], "--dy", files["dy"], "--weight", files["w"], *words.split(),
                    *(word for n in ("dx", "dweight", "dbias") for word in ("--" + n, self.files.path(n + ".npy"))))  # fmt: skip
            for lying in (x, np.asfortranarray(x), np.repeat(x, 2, axis=3)[..., ::2]):
                with self.subTest(words=words, strides=lying.strides):
                    self.assert_same(lnorm.layer_norm(lying, w, b, **options, **known), self.files.load("y.npy"))
                    found = lnorm.layer_norm_backward(dy, lying, w, **options, **known)
                    for name, array in zip(("dx", "dweight", "dbias"), found):
                        self.assert_same(array, self.files.load(name + ".npy"))
        last = np.moveaxis(x, 1, -1)
        np.testing.assert_array_equal(np.moveaxis(lnorm.group_norm(last, 2, w, b, channel_axis=-1), -1, 1),
                                      lnorm.group_norm(x, 2, w, b))  # fmt: skip
        y, mean, rstd = lnorm.layer_norm_with_stats(x, groups=2)
        self.assertEqual((mean.shape, rstd.shape), ((3, 2), (3, 2)))
        np.testing.assert_array_equal(lnorm.layer_norm_backward(dy, x, groups=2, mean=mean, rstd=rstd)[2], dy.astype("f8").sum((0, 2, 3)).astype("f4"))
        np.testing.assert_array_equal(lnorm.layer_norm(x, rms=True, variance=3.0, eps=1.0), x / np.float32(2))

    def test_long_and_many_rows(self):
        for shape, axes in (((2, 1 << 20), -1), ((70000, 3), -1), ((1 << 19, 3), 0)):
            x = self.rng.normal(size=shape).astype("f4")
            program(self.files.save("x", x), "--axes", axes, "-o", self.files.path("y.npy"))
            self.assert_same(lnorm.layer_norm(x, axes=axes), self.files.load("y.npy"))


class Arrays(unittest.TestCase):
    def test_out_is_written_in_place_whatever_its_strides_are(self):
        x = np.random.default_rng(1).normal(size=(6, 8)).astype("f4")
        expected = lnorm.layer_norm(x)
        for out in (np.empty_like(x), np.empty((8, 6), "f4").T, np.empty((6, 16), "f4")[:, ::2],
                    np.empty((6, 8), "f4")[::-1]):  # fmt: skip
            self.assertIs(lnorm.layer_norm(x, out=out), out)
            np.testing.assert_array_equal(out, expected)
        for view in (lambda a: a, lambda a: a[::-1], lambda a: a[:, ::-1]):
            same = x.copy()
            lnorm.layer_norm(same, out=view(same))
            np.testing.assert_array_equal(view(same), expected)
        half = np.empty((6, 8), "f2")
        np.testing.assert_array_equal(lnorm.layer_norm(x, out=half), lnorm.layer_norm(x, dtype="f2"))

    def test_gradients_go_to_arrays_that_are_given(self):
        rng = np.random.default_rng(2)
        x, dy = rng.normal(size=(2, 6, 8)).astype("f4")
        weight = rng.normal(size=8).astype("f4")
        expected = lnorm.layer_norm_backward(dy, x, weight)
        for out in ((np.empty((8, 6), "f4").T, np.empty(16, "f4")[::2], np.empty(8, "f4")[::-1]),
                    (None, np.empty(8, "f4"), None), (x.copy(), None, None)):  # fmt: skip
            for found, given, right in zip(lnorm.layer_norm_backward(dy, x, weight, out=out), out, expected):
                np.testing.assert_array_equal(found, right)
                self.assertTrue(given is None or found is given)
        for over in ("x", "dy"):
            given = {"x": x.copy(), "dy": dy.copy()}
            backwards = given[over][::-1]
            lnorm.layer_norm_backward(**given, weight=weight, out=(backwards, None, None))
            np.testing.assert_array_equal(backwards, expected[0])
        wide = lnorm.layer_norm_backward(dy, x, weight, dtype="f8")
        half = lnorm.layer_norm_backward(dy, x, weight, dtype="f2")
        found = lnorm.layer_norm_backward(dy, x, weight, out=(np.empty((6, 8), "f2"), None, np.empty(8)))
        for array, right in zip(found, (half[0], wide[1], wide[2])):
            self.assertEqual(array.dtype, right.dtype)
            np.testing.assert_array_equal(array, right)

    def test_arrays_at_any_address(self):
        x = np.random.default_rng(3).normal(size=(6, 40)).astype("f4")
        memory = np.zeros((2, x.nbytes + 4), "u1")
        for first in range(4):
            from_, to = (row[first : first + x.nbytes].view("f4").reshape(x.shape) for row in memory)
            from_[:] = x
            np.testing.assert_array_equal(lnorm.layer_norm(from_, out=to), lnorm.layer_norm(x))
            for found, right in zip(lnorm.layer_norm_backward(from_, from_, out=(to, None, None)), lnorm.layer_norm_backward(x, x)):
                np.testing.assert_array_equal(found, right)

    def test_read_only_arrays_and_buffers(self):
        x = np.arange(12, dtype="f4").reshape(3, 4)
        expected = lnorm.layer_norm(x)
        x.flags.writeable = False
        np.testing.assert_array_equal(lnorm.layer_norm(x), expected)
        np.testing.assert_array_equal(lnorm.layer_norm(memoryview(x)), expected)
        np.testing.assert_array_equal(lnorm.layer_norm(x.tolist(), dtype="float32"), expected)
        with self.assertRaisesRegex(ValueError, "out: is read-only"):
            lnorm.layer_norm(x, out=x)

    def test_empty_and_small_arrays(self):
        self.assertEqual(lnorm.layer_norm(np.zeros((0, 4), "f4")).shape, (0, 4))
        y, mean, rstd = lnorm.layer_norm_with_stats(np.zeros((4, 0), "f4"))
        self.assertEqual((y.shape, mean.shape), ((4, 0), (4, 1)))
        self.assertTrue(np.isnan(mean).all())
        for shape, options in (((2, 3, 0), {"groups": 3}), ((0, 3, 4), {"axes": 2, "affine_axes": 1}), ((0, 3), {})):
            empty = np.zeros(shape, "f4")
            for gradient in lnorm.layer_norm_backward(empty, empty, **options)[1:]:
                np.testing.assert_array_equal(gradient, np.zeros(3, "f4"))

    def test_dtypes_of_other_libraries_by_their_names(self):
        bits = np.array([[0x3F80, 0x4000, 0x4040]], dtype="u2")  # 1, 2, 3 in bfloat16
        bfloat16 = np.dtype((type("bfloat16", (np.void,), {}), 2))
        y = lnorm.layer_norm(bits.view(bfloat16), eps=0)
        self.assertIs(y.dtype, bfloat16)
        self.assertEqual(y.view("u2").tolist(), [[0xBF9D, 0, 0x3F9D]])
        float8 = np.dtype((type("float8_e4m3fn", (np.void,), {}), 1))
        np.testing.assert_array_equal(
            lnorm.layer_norm(np.array([[0x38, 0x40]], "u1").view(float8), dtype="float32", eps=0), [[-1, 1]])  # fmt: skip

    def test_errors_in_the_words_of_the_program(self):
        x = np.zeros((2, 3), "f4")
        for error, words, call in [
            (ValueError, r"weight has shape \(2\), but the normalized shape is \(3\)", lambda: lnorm.layer_norm(x, [1, 2])),
            (ValueError, "found both .*axes.*, expected one of", lambda: lnorm.layer_norm(x, axes=0, normalized_shape=3)),
            (TypeError, "a shape is normalized_shape=\\(2, 3\\)", lambda: lnorm.layer_norm(x, (2, 3))),
            (TypeError, "a shape is normalized_shape=\\(3,\\)", lambda: lnorm.check(x, x, (np.int64(3),))),
            (ValueError, "groups", lambda: lnorm.layer_norm(x, axes=0, groups=1)),
            (TypeError, "'float' is float64 in NumPy and float32 in PyTorch", lambda: lnorm.layer_norm(x, dtype="float")),
            (TypeError, "eps: expected a value, found True", lambda: lnorm.layer_norm(x, eps=True)),
            (ValueError, "standard input is not read here", lambda: lnorm.layer_norm(x, weight="-")),
            (ValueError, r"here it is axes=\(0, 1\)", lambda: lnorm.layer_norm(x, axis=(0, 1))),
            (TypeError, "found a tuple of 2", lambda: lnorm.layer_norm_backward(x, x, out=(None, None))),
            (ValueError, r"out\[\d\] and out\[\d\] lie", lambda: lnorm.layer_norm_backward(x, x, out=(None, x[0], x[0]))),
            (ValueError, "dy is missing: actual_dx is judged by it", lambda: lnorm.check(x, None, actual_dx=x)),
            (TypeError, "output has no meaning here", lambda: lnorm.inputs((2, 8), output="cases/")),
            (TypeError, "page: expected a value", lambda: lnorm.check(x, x, page=True)),
            (ValueError, "affine_axes", lambda: lnorm.group_norm(x, 1, affine_axes=1)),
            (ValueError, "3 channels", lambda: lnorm.group_norm(x, 2)),
            (ValueError, "mean has no effect without rstd or variance", lambda: lnorm.layer_norm(x, mean=0)),
            (ValueError, "variance needs mean, unless rms is given", lambda: lnorm.layer_norm(x, variance=1)),
            (ValueError, "found both rstd and variance", lambda: lnorm.layer_norm(x, mean=0, rstd=1, variance=1)),
            (ValueError, r"variance: element \(1\) is -2, expected a variance", lambda: lnorm.layer_norm(x, mean=0, variance=[1.0, -2.0])),
            (ValueError, r"mean has shape \(3\), expected a number for each row", lambda: lnorm.layer_norm(x, mean=[1.0, 2.0, 3.0], variance=1)),
            (ValueError, "eps.* -1 ", lambda: lnorm.layer_norm(x, eps=-1)),
            (ValueError, "axis 2", lambda: lnorm.layer_norm(x, axes=2)),
            (ValueError, "round xhat has no effect without weight or bias", lambda: lnorm.layer_norm(x, round="xhat")),
            (ValueError, "axes: '1.5' is not an integer$", lambda: lnorm.layer_norm(x, axes=[1.5])),
            (ValueError, "keepdim=False has no effect", lambda: lnorm.layer_norm(x, keepdim=False)),
            (ValueError, "hint: dtype='int8'", lambda: lnorm.layer_norm(x, quantize="row")),
            (ValueError, "y is missing", lambda: lnorm.check(x)),
            (ValueError, "int8 takes a scale", lambda: lnorm.layer_norm(x, dtype=np.int8)),
            (ValueError, "out: is float32 of shape", lambda: lnorm.layer_norm(x, out=np.empty(3, "f4"))),
            (ValueError, "out: is int32 .*expected", lambda: lnorm.layer_norm(x, out=np.empty(x.shape, "i4"))),
            (ValueError, "out: is read-only", lambda: lnorm.layer_norm(x, dtype="f8", out=[[0.0] * 3] * 2)),
            (TypeError, "out: expected a tuple of three", lambda: lnorm.layer_norm_backward(x, x, out=np.empty_like(x))),
            (ValueError, r"out\[0\]: is float32 of shape", lambda: lnorm.layer_norm_backward(x, x, out=(np.empty(3, "f4"), None, None))),
            (ValueError, r"out\[1\]: is int64 .*expected", lambda: lnorm.layer_norm_backward(x, x, out=(None, np.empty(4, int), None))),
            (ValueError, "lie among each other", lambda: lnorm.layer_norm_backward(x, x, out=(None, *[np.empty(x.shape[-1:], x.dtype)] * 2))),
            (TypeError, "x: is of dtype complex64", lambda: lnorm.layer_norm(x.astype("c8"))),
            (TypeError, "x: is an object, expected an array", lambda: lnorm.layer_norm(object())),
            (TypeError, "x: is a dict, expected an array", lambda: lnorm.layer_norm({})),
            (TypeError, "x: is a masked array", lambda: lnorm.layer_norm(np.ma.masked_greater(x, 1))),
            (TypeError, r"x\[0\]: is a masked array", lambda: lnorm.layer_norm([np.ma.masked_greater(x[0], 1)] * 2)),
            (TypeError, "x: is a list that contains itself", lambda: lnorm.layer_norm(list_of_itself())),
            (ValueError, r"x\[0\]\[1\]: is beyond the range of 64-bit integers", lambda: lnorm.layer_norm([[1, 10**30]])),
            (ValueError, "weight: is beyond the range of 64-bit integers", lambda: lnorm.layer_norm(x, 10**30)),
            (ValueError, r"x\[1\]: is a list of 1, expected a list of 2, as x\[0\] is", lambda: lnorm.layer_norm([[1, 2], [3]])),
            (ValueError, r"x\[1\]: is a list of 1, expected a number, as x\[0\] is", lambda: lnorm.layer_norm([1, [2]])),
            (TypeError, r"x\[0\]: is a NoneType, expected a number", lambda: lnorm.layer_norm([None, 1])),
            (ValueError, "out: has elements that share memory", lambda: lnorm.layer_norm(x, out=np.lib.stride_tricks.as_strided(np.empty(8, x.dtype), x.shape, (0,) * x.ndim))),
            (ValueError, "range of float64", lambda: lnorm.layer_norm(x, eps=10**400)),
            (TypeError, "bfloat16, which NumPy has only with ml_dtypes", lambda: lnorm.layer_norm(x, dtype="bf16")),
            (TypeError, "there is no option .*no.such", lambda: lnorm.check(x, x, no_such=1)),
            (TypeError, "json has no meaning here", lambda: lnorm.layer_norm(x, json=True)),
            (TypeError, "rms: is given", lambda: lnorm.rms_norm(x, rms=False)),
            (TypeError, "did you mean eps.?on", lambda: lnorm.layer_norm(x, eps_onn="std")),
            (TypeError, "there is no option .*nonsense", lambda: lnorm.compare(x, x, nonsense=False)),
            (TypeError, "there is no option .*nonsense", lambda: lnorm.mutants(x, nonsense=None)),
            (TypeError, "quiet", lambda: lnorm.check(x, x, quiet=True)),
            (TypeError, "help", lambda: lnorm.check(x, x, help=True)),
            (ValueError, "axes: .* is not within 64 bits", lambda: lnorm.layer_norm(x, axes=2**70)),
            (ValueError, "axes: '1.0' is not an integer", lambda: lnorm.layer_norm(x, axes=1.0)),
            (ValueError, "ddof: '1.5' is not an integer", lambda: lnorm.layer_norm(x, ddof=1.5)),
            (TypeError, "rms: expected True or False, found 'no'", lambda: lnorm.layer_norm(x, rms="no")),
            (TypeError, "groups: expected an integer, found None", lambda: lnorm.group_norm(x, None)),
            (TypeError, "x: is a dict", lambda: lnorm.layer_norm({"x": x})),
            (ValueError, "threads: -1 is out of range", lambda: lnorm.layer_norm(x, threads=-1)),
            (ValueError, "eps has no effect beside rstd", lambda: lnorm.layer_norm(x, mean=0, rstd=1, eps=1e-3)),
            (ValueError, "ddof has no effect beside variance", lambda: lnorm.layer_norm(x, mean=0, variance=1, ddof=1)),
            (ValueError, "zero_centered_weight has no effect without weight", lambda: lnorm.layer_norm(x, zero_centered_weight=True)),
            (ValueError, "max_ulp: 'x' is not", lambda: lnorm.compare(x, x, max_ulp="x")),
        ]:
            with self.subTest(words=words), self.assertRaisesRegex(error, words):
                call()

    def test_every_keyword_is_an_option_of_the_program(self):
        x = np.random.default_rng(6).normal(size=(3, 4, 5)).astype("f4")
        for options, same in [
            ({"axis": 1}, {"axes": (1, 2)}),
            ({"axes": "1,2"}, {"axes": [1, 2]}),
            ({"unbiased": True}, {"ddof": 1}),
            ({"gamma": 2.0, "beta": [1] * 5}, {"weight": 2, "bias": np.ones(5)}),
            ({"weight": "[1, 2, 3, 4, 5]"}, {"weight": range(1, 6)}),
            ({"eps": None, "round": None, "axes": None, "threads": None, "mean": None, "rms": False}, {"threads": 0}),
        ]:
            np.testing.assert_array_equal(lnorm.layer_norm(x, **options), lnorm.layer_norm(x, **same))
        np.testing.assert_array_equal(lnorm.softmax(x, axis=1), lnorm.softmax(x, axes=1))
        self.assertEqual(lnorm.layer_norm_with_stats(x, keepdim=False)[1].shape, (3, 4))
        self.assertTrue(lnorm.check(x, lnorm.layer_norm(x, unbiased=True), unbiased=True))


class Threads(unittest.TestCase):
    def test_calls_with_different_threads_at_once_say_nothing(self):
        code = """
import numpy, threading, lnorm
x = numpy.ones((2000, 1000))
calls = [threading.Thread(target=lambda n=n: [lnorm.layer_norm(x, threads=n) for _ in range(20)]) for n in (2, 16, 3, 8)]
for call in calls: call.start()
for call in calls: call.join()
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class Manners(unittest.TestCase):
    def test_an_error_keeps_no_tensor(self):
        memory = array.array("f", [1, 2, 4])
        for call in [lambda: lnorm.layer_norm(memory, eps=-1), lambda: lnorm.layer_norm(memory, [1, 2]), lambda: lnorm.layer_norm(memory, no_such=1)]:
            gc.disable()
            try:
                with self.assertRaises((ValueError, TypeError)):
                    call()
                memory.append(5)  # which an array does not let while somebody holds it
            finally:
                gc.enable()

    def test_a_role_is_given_once(self):
        for call in [lambda: lnorm.layer_norm([1, 2], 2, gamma=3), lambda: lnorm.layer_norm([1, 2], input=[3, 4])]:
            with self.assertRaisesRegex((ValueError, TypeError), "given twice"):
                call()

    def test_threads_run_at_once(self):
        x = np.random.default_rng(5).normal(size=(64, 256)).astype("f4")
        expected = lnorm.layer_norm(x)
        verdicts = []

        def work():
            for _ in range(20):
                np.testing.assert_array_equal(lnorm.layer_norm(x), expected)
                verdicts.append(lnorm.check(x, expected).verdict)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(verdicts, ["correctly rounded"] * 160)

    def test_a_small_array_takes_microseconds(self):  # tests/bench/python_call.py says how many
        x = np.ones((4, 64), "f4")
        out = np.empty_like(x)
        best = min(self.seconds_of(lambda: lnorm.layer_norm(x, out=out)) for _ in range(20))
        self.assertLess(best, 200e-6)

    def test_calls_leave_no_memory_behind(self):
        x = np.ones((64, 1000), "f4")
        stand_ins = [x, x[:, ::-1], x.tolist(), memoryview(x)]

        def work():
            for given in stand_ins:
                lnorm.layer_norm_with_stats(given, [1.0] * 1000)
                with self.assertRaises(ValueError):
                    lnorm.layer_norm(given, [1.0])
                with self.assertRaises(TypeError):
                    lnorm.layer_norm(given, no_such=1)
            lnorm.check(x[:2, :8], x[:2, :8], kernels="zeros")

        for _ in range(50):
            work()
        gc.collect()
        count, before = sys.getrefcount(x), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(250):
            work()
        self.assertEqual(sys.getrefcount(x), count)
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, 4 << 10)  # KiB: one call that is kept has 250

    def seconds_of(self, call, times=200):
        start = time.perf_counter()
        for _ in range(times):
            call()
        return (time.perf_counter() - start) / times

    def test_no_copy_of_the_input(self):
        # In a process of its own: its peak is 128 MiB of input, as much of output, and little else.
        code = """
import lnorm, numpy as np, resource
x = np.ones((1 << 15, 1 << 10), "f4")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
lnorm.layer_norm(x)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""
        found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        self.assertLess(int(found.stdout), 128 + 48)

    def test_random_calls_do_no_harm(self):
        chance = random.Random(38)
        rng = np.random.default_rng(38)
        for _ in range(int(os.environ.get("LNORM_RANDOM_CALLS", "1000"))):
            shape = tuple(chance.randrange(0, 6) for _ in range(chance.randrange(0, 4)))
            x = rng.normal(size=shape).astype(chance.choice(DTYPES))
            if x.ndim:
                x = chance.choice([lambda a: a, np.asfortranarray, lambda a: a[::-1], lambda a: a[..., ::2], np.transpose])(x)
            options = {
                "axes": chance.choice([None, -1, 0, (0, 1), 5, (0, 0)]),
                "groups": chance.choice([None, None, None, 1, 2, 7]),
                "affine_axes": chance.choice([None, None, 0, (0, 1), 9]),
                "mean": chance.choice([None, None, 0.5, x, [1, 2]]),
                "variance": chance.choice([None, None, 2, x[..., :1] if x.ndim else x, -1]),
                "eps": chance.choice([1e-5, 0, -1, 1e300]),
                "ddof": chance.choice([0, 1, 7]),
                "rms": chance.random() < 0.3,
                "dtype": chance.choice([None, "float16", "float32", np.float64, "int8", "float8_e5m2"]),
                "weight": chance.choice([None, 2.0, np.ones(x.shape[-1:], "f2"), [1, 2]]),
                "bias": chance.choice([None, 1, x]),
                "residual": chance.choice([None, None, x]),
                "round": chance.choice([(), ("xhat",), "sum"]),
                "out": chance.choice([None, None, x, np.empty(x.shape, "f4")]),
            }
            try:
                chance.choice([lnorm.layer_norm, lnorm.layer_norm_with_stats])(x, **options)
                lnorm.softmax(x)
                backward = {name: options[name] for name in ("axes", "groups", "affine_axes", "mean", "variance", "rms")}
                out = (options["out"], None, chance.choice([None, np.empty(x.shape[-1:])]))
                lnorm.layer_norm_backward(x, x, options["weight"], out=out, **backward)
            except (ValueError, TypeError) as error:
                self.assertNotEqual(str(error), "")


if __name__ == "__main__":
    unittest.main()
