"""Tensors that are not NumPy's: by DLPack, on devices, of PyTorch and pandas, masked; and the package without NumPy."""

import array
import ctypes
import ctypes.util
import fractions
import gc
import glob
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

import numpy as np

import lnorm
from lnorm import testing

X = np.random.default_rng(3).normal(size=(4, 5, 6)).astype("f4")


class StandIn:
    """What an array of a library that is not here would look like."""

    def __init__(self, array, device=(1, 0)):
        self.array = array
        self.device = device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **options):
        return self.array.__dlpack__()


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned of float32, which counts how often it is deleted."""

    _fields_ = [
        ("version", ctypes.c_uint32 * 2), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64),
        ("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32), ("dtype", ctypes.c_uint8 * 4),
        ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class StandInOfVersion1:
    def __init__(self, array, flags=0, version=1, dtype=(2, 32, 1, 0)):
        self.array, self.deleted = array, 0
        self.shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        self.delete = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(self.on_delete)
        self.managed = Versioned(
            (version, 0), None, ctypes.cast(self.delete, ctypes.c_void_p), flags, array.ctypes.data - 8, (1, 0), array.ndim, dtype,
            ctypes.addressof(self.shape), None, 8,
        )  # fmt: skip

    def on_delete(self, _):
        self.deleted += 1

    def __dlpack__(self, *, max_version):
        new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_New", ctypes.pythonapi))
        return new(ctypes.addressof(self.managed), b"dltensor_versioned", None)


class DLPack(unittest.TestCase):
    def test_tensors_where_they_lie(self):
        for view in (X, X.T, X[:, ::2], X[:, :, 1:], X[0, 0, :1].reshape(()), X[:0]):
            np.testing.assert_array_equal(lnorm.layer_norm(StandIn(view)), lnorm.layer_norm(view))
        out = np.empty_like(X)
        stand_in = StandIn(out)
        self.assertIs(lnorm.layer_norm(X, out=stand_in), stand_in)
        np.testing.assert_array_equal(out, lnorm.layer_norm(X))

    def test_both_versions_of_capsules(self):
        given = StandInOfVersion1(X)
        np.testing.assert_array_equal(lnorm.layer_norm(given), lnorm.layer_norm(X))
        self.assertEqual(given.deleted, 1)
        with self.assertRaisesRegex(ValueError, "out: is read-only"):
            lnorm.layer_norm(X, out=StandInOfVersion1(X.copy(), flags=1))
        for words, wrong in [
            ("has version 2", StandInOfVersion1(X, version=2)),
            ("is of dtype complex64", StandInOfVersion1(X, dtype=(5, 64, 1, 0))),
            ("is of dtype float32 in vectors of 4", StandInOfVersion1(X, dtype=(2, 32, 4, 0))),
        ]:
            with self.assertRaisesRegex(TypeError, "x: .*" + words):
                lnorm.layer_norm(wrong)
            gc.collect()
            self.assertEqual(wrong.deleted, 1)

    def test_what_goes_wrong_in_an_export_is_said(self):
        class Fails(StandIn):
            def __dlpack__(self, **options):
                raise BufferError("requires grad")

        with self.assertRaisesRegex(TypeError, r"x: its __dlpack__\(\) raised BufferError: requires grad"):
            lnorm.layer_norm(Fails(X))
        with self.assertRaisesRegex(TypeError, r"x: its __dlpack_device__\(\) is None, expected two integers"):
            lnorm.layer_norm(StandIn(X, None))

    def test_a_capsule_is_freed_once(self):
        count = sys.getrefcount(X)
        for _ in range(100):
            lnorm.layer_norm(StandIn(X))
        self.assertLessEqual(sys.getrefcount(X), count + 1)


class Device:
    """What has work to do: an array's new values are there when it was waited for."""

    def __init__(self, kind="cuda"):
        self.type, self.pending, self.waits = kind, [], 0

    def synchronize(self):
        self.waits += 1
        for work in self.pending:
            work()
        self.pending.clear()

    def __str__(self):
        return self.type + ":0"


class OnDevice:
    """An array that a kernel still writes to; its copies are what is there."""

    def __init__(self, array, device):
        self._array, self.device = np.zeros_like(array), device
        device.pending.append(lambda: np.copyto(self._array, array))

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, **options):
        return self._array.copy().__dlpack__()


def of_module(name, **methods):
    """A class of arrays on a device of a framework."""
    return type(name.title() + "Array", (OnDevice,), {"__module__": name, **methods})


def torch_stand_in(device, stands_for):
    """PyTorch, as far as the package looks at it."""

    def cpu(self):
        return Tensor(self._array.copy(), Device("cpu"), True)

    class Tensor(of_module("torch.stand_in")):
        layout, requires_grad = "torch.strided", True

        def __init__(self, array, where=device, is_there=False):
            super().__init__(array, where)
            if is_there:
                where.synchronize()

        def detach(self):
            return self

        def is_neg(self):
            return False

        def is_pinned(self):
            return False

        dtype = property(lambda self: type("dtype", (), {"__str__": lambda _: f"torch.{self._array.dtype}"})())
        shape = property(lambda self: self._array.shape)

        def stride(self):
            return [step // self._array.itemsize for step in self._array.strides]

        def element_size(self):
            return self._array.itemsize

        def numel(self):
            return self._array.size

        def data_ptr(self):
            return self._array.ctypes.data

    Tensor.cpu, Tensor.__module__ = cpu, "torch"
    torch = types.SimpleNamespace(cuda=types.SimpleNamespace(is_initialized=lambda: False, synchronize=lambda device: device.synchronize()))
    if stands_for == "accelerator":
        torch.accelerator = types.SimpleNamespace(synchronize=lambda device: device.synchronize())
    elif stands_for != "cuda":
        setattr(torch, stands_for, device)
    return torch, Tensor


class Devices(unittest.TestCase):
    def assert_is_waited_for(self, kind, device, modules):
        right = lnorm.layer_norm(X)
        with mock.patch.dict(sys.modules, modules):
            testing.assert_layer_norm(kind(right, device), kind(X, device))
            self.assertGreater(device.waits, 0)
            with self.assertRaisesRegex(AssertionError, "y differs: eps is added to the standard deviation"):
                testing.assert_layer_norm(kind(lnorm.layer_norm(X, eps_on="std"), device), kind(X, device))
            with self.assertRaisesRegex(TypeError, r"out: .* cannot be written to from here.*; in place of out=: out"):
                lnorm.layer_norm(X, out=kind(X, device))

    def test_cupy_and_numba_are_waited_for(self):
        device = Device()
        self.assert_is_waited_for(of_module("cupy", get=lambda self: self._array.copy()), device, {})
        device = Device()
        numba = of_module("numba.cuda.cudadrv", copy_to_host=lambda self: self._array.copy(), __dlpack__=None)
        self.assert_is_waited_for(numba, device, {"numba.cuda": device})

    def test_pytorch_is_waited_for(self):
        for kind, module in (("cuda", "cuda"), ("xpu", "accelerator"), ("mps", "mps")):
            device = Device(kind)
            torch, tensor = torch_stand_in(device, module)
            self.assert_is_waited_for(tensor, device, {"torch": torch})

    def test_jax_waits_itself(self):
        class ArrayImpl:
            __module__ = "jaxlib.stand_in"

            def __array__(self, *_, **__):
                return X.copy()

        class Tracer:
            __module__ = "jax.stand_in"

        np.testing.assert_array_equal(lnorm.layer_norm(ArrayImpl()), lnorm.layer_norm(X))
        with self.assertRaisesRegex(TypeError, "x: is a tracer of JAX, which has no values.* outside of jax.jit"):
            lnorm.layer_norm(Tracer())
        with self.assertRaisesRegex(TypeError, r"out = jax.numpy.asarray\(lnorm.layer_norm\(x\)\)"):
            lnorm.layer_norm(X, out=ArrayImpl())

    def test_any_other_device_is_one_error(self):
        with self.assertRaisesRegex(TypeError, "x: is on device cuda:1, expected the CPU: copy the StandIn to the host"):
            lnorm.layer_norm(StandIn(X, (2, 1)))
        with self.assertRaisesRegex(TypeError, "y: is on device type 99 of DLPack:0"):
            lnorm.check(X, StandIn(X, (99, 0)))
        of_cuda = type("Other", (), {"__cuda_array_interface__": {}})
        with self.assertRaisesRegex(TypeError, "x: is on device cuda, expected the CPU: copy the Other to the host"):
            lnorm.layer_norm(of_cuda())


class Torch(unittest.TestCase):
    def setUp(self):
        try:
            import torch
        except ImportError:
            raise unittest.SkipTest("there is no PyTorch here") from None
        self.torch = torch

    def test_the_l2_norm_is_that_of_functional_normalize(self):
        torch = self.torch
        torch.manual_seed(1)
        x = torch.randn(5, 7, dtype=torch.float64) * torch.tensor([[1.0], [1e-3], [2e-9], [0], [40]])
        dy = torch.randn(5, 7, dtype=torch.float64)
        for eps in (1e-12, 1e-8, 3.0):
            x.requires_grad_()
            y = torch.nn.functional.normalize(x, dim=-1, eps=eps)
            (dx,) = torch.autograd.grad(y, x, dy)
            x.requires_grad_(False)
            options = {"rms": True, "ddof": 6, "eps_on": "max", "eps": eps}
            np.testing.assert_allclose(lnorm.layer_norm(x, **options), y.detach(), rtol=1e-14)
            found, _, _ = lnorm.layer_norm_backward(dy, x, **options)
            sizes = dx.abs().amax(dim=-1, keepdim=True).numpy()
            np.testing.assert_allclose(found / sizes, dx / sizes, rtol=1e-12, atol=1e-13)

    def test_hints_save_what_a_file_of_objects_has(self):
        torch, program = self.torch, os.environ["LNORM_PROGRAM"]
        layer, array = torch.nn.LayerNorm(4), np.ones((2, 3), np.float32)
        files = {"layer.pt": (layer, "layer.pt", ["weight", "bias"]),
                 "array.pt": (array, "array.pt", []),  # is a tensor without a name then, which is not listed
                 "layers.pt": ({"ln": layer}, "layers.pt:ln", ["ln.weight", "ln.bias"]),
                 "arrays.pt": ({"a": array, "w": torch.ones(2)}, "arrays.pt:a", ["a", "w"]),
                 "options.pt": (types.SimpleNamespace(w=torch.ones(3), lr=1), "options.pt", ["w"])}
        with tempfile.TemporaryDirectory() as folder:
            for name, (value, word, names) in files.items():
                torch.save(value, os.path.join(folder, name))
                refused = subprocess.run([program, word], cwd=folder, capture_output=True, text=True)
                begin = "hint: in Python, if you trust the file: "
                hint = refused.stderr.splitlines()[1]
                self.assertTrue(hint.startswith(begin), refused.stderr)
                subprocess.run([sys.executable, "-c", f"import torch; {hint[len(begin):]}"], cwd=folder, check=True)
                shown = subprocess.run([program, "show", f"{name}.pt"], cwd=folder, check=True, capture_output=True, text=True).stdout
                self.assertEqual([line.split()[0] for line in shown.splitlines()[:len(names)]], names, shown)

    def test_tensors_of_pytorch(self):
        torch = self.torch
        x = torch.randn(4, 6, requires_grad=True)
        np.testing.assert_array_equal(lnorm.layer_norm(x), lnorm.layer_norm(x.detach().numpy()))
        np.testing.assert_array_equal(lnorm.layer_norm(x.T), lnorm.layer_norm(x.detach().numpy().T))
        b = torch.randn(4, 6).to(torch.bfloat16)
        y = torch.empty_like(b)
        lnorm.layer_norm(b, out=y)
        exact = torch.from_numpy(lnorm.layer_norm(b.double(), dtype=np.float64))
        self.assertTrue(torch.equal(y, exact.to(torch.bfloat16)))
        w = torch.randn(6).to(torch.bfloat16)
        of_b = tuple(torch.empty_like(one) for one in (b, w, w))
        lnorm.layer_norm_backward(y, b, w, out=of_b)
        for found, exact in zip(of_b, lnorm.layer_norm_backward(y, b, w, dtype=np.float64)):
            self.assertTrue(torch.equal(found, torch.from_numpy(exact).to(torch.bfloat16)))
        self.assertEqual(lnorm.layer_norm(b, dtype=torch.float32).dtype, np.float32)
        negated = torch._neg_view(x.detach())
        np.testing.assert_array_equal(lnorm.layer_norm(negated), lnorm.layer_norm(-x))
        with self.assertRaisesRegex(TypeError, r"out: is a negated view, expected its resolve_neg\(\)"):
            lnorm.layer_norm(x, out=negated)
        self.assertTrue(lnorm.check(x, torch.nn.functional.layer_norm(x, (6,))))
        self.assertEqual(lnorm.softmax(torch.ones(2, 2, dtype=torch.bool)).tolist(), [[0.5, 0.5]] * 2)
        with torch.inference_mode():
            testing.assert_layer_norm(torch.nn.functional.layer_norm(x, (6,)), x)

    def test_results_that_numpy_lacks_are_pytorchs(self):
        torch = self.torch
        with mock.patch.dict(sys.modules, {"ml_dtypes": None}):
            x = torch.randn(4, 6)
            y = lnorm.layer_norm(x.bfloat16())
            self.assertTrue(torch.equal(y, torch.from_numpy(lnorm.layer_norm(x.bfloat16(), dtype="float64")).bfloat16()))
            self.assertEqual(lnorm.layer_norm([x[0], x[1]], dtype=torch.bfloat16).dtype, torch.bfloat16)
            cases = lnorm.inputs((2, 8), "bfloat16")
            self.assertEqual({case.x.dtype for case in cases}, {torch.bfloat16})
            self.assertTrue(lnorm.mutants(cases, skip_kernels="truncated,away"))
            with self.assertRaisesRegex(TypeError, r"bfloat16, which NumPy has only with ml_dtypes, expected out=, or another dtype"):
                lnorm.layer_norm(X, dtype="bfloat16")

    def test_what_is_no_plain_tensor_is_one_error(self):
        torch = self.torch
        x = torch.from_numpy(X)
        for words, tensor in [
            (r"x: is of layout torch.sparse_coo, expected its to_dense\(\)", x.to_sparse()),
            ("x: is a TypedStorage, expected an array", torch.ones(3).storage()),
            (r"x: is quantized, expected its dequantize\(\)", torch.quantize_per_tensor(x, 0.1, 0, torch.quint8)),
            ("x: is on device meta, which holds no values", x.to("meta")),
            ("x: is of dtype torch.complex64", x.to(torch.complex64)),
        ]:
            with self.assertRaisesRegex(TypeError, words):
                lnorm.layer_norm(tensor)


class Kinds(unittest.TestCase):
    def test_buffers_numbers_and_lists(self):
        for found, right in [
            (array.array("d", [1, 2, 4]), [1.0, 2.0, 4.0]),
            ((ctypes.c_int16 * 3)(1, 2, 4), [1.0, 2.0, 4.0]),
            ([True, False, True], [1.0, 0.0, 1.0]),
            ([fractions.Fraction(1, 2), 1, np.float64(2)], [0.5, 1.0, 2.0]),
            ([1, 2**64 - 1], [1.0, 2.0**64]),
            ([np.arange(3), [4, 5, 6]], [[0.0, 1.0, 2.0], [4.0, 5.0, 6.0]]),
            ([X[0, 0, ::2].astype(">f4"), X[0, 1, ::2]], X[0, :2, ::2].astype("f8")),
        ]:
            np.testing.assert_array_equal(lnorm.layer_norm(found), lnorm.layer_norm(right))
        for like in ([X[0], X[1]], [[row for row in rows] for rows in X[:2]], list(X[:2].astype(">f4"))):
            found = lnorm.layer_norm(like)
            self.assertEqual(found.dtype, np.float32)
            np.testing.assert_array_equal(found, lnorm.layer_norm(X[:2]))
        with self.assertRaisesRegex(ValueError, r"x\[1\]: is a list of 3, expected a list of 2, as x\[0\] is: the list is ragged"):
            lnorm.layer_norm([np.ones(2), np.ones(3)])
        for nothing in ("abc", None, 3 + 4j, [None], ["a"], {}, np.array(["a"]), np.array([1], "M8[s]"), np.array([1], "g"), np.array([1], "O")):
            with self.assertRaisesRegex(TypeError, "^x"):
                lnorm.layer_norm(nothing)

    def test_pandas(self):
        try:
            import pandas
        except ImportError:
            raise unittest.SkipTest("there is no pandas here") from None
        frame = pandas.DataFrame({"a": [1, 2, 3], "b": [2.5, 3.0, 7.0]})
        np.testing.assert_array_equal(lnorm.layer_norm(frame), lnorm.layer_norm(frame.to_numpy()))
        self.assertTrue(lnorm.check(frame["b"], lnorm.layer_norm(frame["b"])))
        with self.assertRaisesRegex(TypeError, r'x: is a Series of objects, expected numbers: its astype\("float64"\)'):
            lnorm.layer_norm(pandas.Series(["a"]))
        with self.assertRaisesRegex(ValueError, "out: is read-only"):
            lnorm.layer_norm(frame["b"], out=frame["b"])

    def test_what_is_masked_is_not_judged(self):
        y = lnorm.layer_norm(X)
        wrong = np.ma.array(y.copy(), mask=np.zeros(y.shape, bool))
        wrong.data[0, 0, 0] += 1
        self.assertFalse(lnorm.check(X, wrong))
        self.assertFalse(lnorm.compare(wrong, y))
        wrong[0, 0, 0] = np.ma.masked
        self.assertTrue(lnorm.check(X, wrong))
        self.assertTrue(lnorm.compare(wrong, np.ma.masked_less(y, -1)))
        self.assertTrue(lnorm.check({"a": X, "b": X}, {"a": y, "b": wrong}))
        self.assertFalse(lnorm.check({"a": X, "b": X}, {"a": wrong.data, "b": wrong}))
        with self.assertRaisesRegex(TypeError, "mask: found beside a masked array"):
            lnorm.check(X, wrong, mask=y > 0)
        with self.assertRaisesRegex(TypeError, r"x: is a masked array, and there is no mask here; expected an array: its filled\(\)"):
            lnorm.layer_norm(wrong)


class WithoutNumPy(unittest.TestCase):
    def test_by_the_standard_library_alone(self):
        script = pathlib.Path(__file__).with_name("without_numpy.py")
        others = glob.glob(os.environ.get("LNORM_OTHER_PYTHONS", ""))  # more versions of CPython, as a pattern
        for python in [sys.executable, *others]:
            with self.subTest(python=python):
                subprocess.run([python, script], check=True)


class Library(unittest.TestCase):
    def test_one_error_if_there_is_no_library(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(pathlib.Path(lnorm.__file__).parent, folder + "/lnorm", ignore=shutil.ignore_patterns("*.so*"))
            for path in ("/no/liblnorm.so.0", ctypes.util.find_library("c")):
                given = {**os.environ, "LNORM_LIBRARY": path, "PYTHONPATH": folder}
                run = subprocess.run([sys.executable, "-c", "import lnorm"], capture_output=True, text=True, env=given)
                self.assertRegex(run.stderr.splitlines()[-1], "^ImportError: lnorm needs liblnorm.so.0: ")


if __name__ == "__main__":
    unittest.main()
