#!/usr/bin/env python3
"""The Python package with tensors on a GPU, as they are: a line for each thing tried, and exit status 1 if one fails.

  pip install build/lnorm-*.whl          or PYTHONPATH and LNORM_LIBRARY
  python tests/gpu/python_on_gpu.py      needs PyTorch and a GPU

CuPy, JAX, numba and Triton are tried where they are. For a machine without a GPU there are the stand-ins of python/tests/test_tensors.py.
"""

import importlib
import os
import sys
import traceback

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import torch  # noqa: E402

import lnorm  # noqa: E402
from lnorm import testing  # noqa: E402

DEVICE = torch.device("cuda")
failed = []


def tries(work):
    name = work.__name__.replace("_", " ").strip()
    try:
        said = work() or "as expected"
        print(f"ok      {name}: {said}", flush=True)
    except Exception as error:
        failed.append(name)
        print(f"FAILED  {name}: {type(error).__name__}: {str(error)[:500]}", flush=True)
        traceback.print_exc()
    return work


def raises(kind, words, call):
    try:
        call()
    except kind as error:
        found = str(error)
        if all(word in found for word in words):
            return found.splitlines()[0]
        raise RuntimeError(f"expected {words} in: {found}") from error
    raise RuntimeError(f"expected {kind.__name__} with {words}, nothing was raised")


def imported(name):
    try:
        return importlib.import_module(name)
    except Exception as error:
        print(f"skipped {name}: {type(error).__name__}: {str(error)[:100]}", flush=True)
        return None


def kernel(x, w, b=None, eps=1e-5):
    return torch.nn.functional.layer_norm(x, w.shape, w, b, eps)


def made(dtype=torch.float32, shape=(64, 512)):
    torch.manual_seed(7)
    x, w, b = (torch.randn(*sizes, device=DEVICE).to(dtype) for sizes in (shape, shape[-1:], shape[-1:]))
    return x, w, b


def same(found, expected):
    found = found if isinstance(found, torch.Tensor) else torch.as_tensor(found)
    if not torch.equal(found, expected):
        raise RuntimeError(f"found {found.flatten()[:4]}, expected {expected.flatten()[:4]}")


@tries
def right_kernels_pass_in_every_dtype():
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
        x, w, b = made(dtype)
        testing.assert_layer_norm(kernel(x, w, b), x, w, b)
        testing.assert_layer_norm(kernel(x, w), x, w, dtype=dtype)
        out = torch.empty_like(x, device="cpu")
        lnorm.layer_norm(x, w, b, out=out)
        testing.assert_layer_norm(out, x, w, b)
    return "float32, float16, bfloat16, float64"


@tries
def results_are_those_of_the_host():
    x, w, b = made()
    same(lnorm.layer_norm(x, w, b), torch.as_tensor(lnorm.layer_norm(x.cpu(), w.cpu(), b.cpu())))
    x = x.bfloat16()
    found = lnorm.layer_norm(x, dtype="float32")
    same(found, torch.as_tensor(lnorm.layer_norm(x.cpu(), dtype="float32")))
    return f"a result in bfloat16 is a {type(lnorm.layer_norm(x)).__module__}.{type(lnorm.layer_norm(x)).__name__}"


@tries
def float8_is_read_and_judged():
    x, w, _ = made()
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz):
        name = str(dtype)[6:]
        narrow = x.to(dtype)
        same(lnorm.layer_norm(narrow, dtype="float32"), torch.as_tensor(lnorm.layer_norm(narrow.float())))
        exact = torch.empty(x.shape, dtype=dtype)
        lnorm.layer_norm(x, w, out=exact)
        testing.assert_layer_norm(exact.to(DEVICE), x, w, dtype=name)
    return raises(TypeError, ["x: is of dtype torch.float8_e5m2fnuz"], lambda: lnorm.layer_norm(x.to(torch.float8_e5m2fnuz)))


@tries
def strided_expanded_and_offset_views():
    x, w, _ = made(shape=(64, 512))
    for view in (x.T, x[::2, ::2], x[3:, 7:], x[:1].expand(32, 512), x.view(8, 8, 512).transpose(0, 1), x[0, 0], x[:0], x.flip(0)):
        same(lnorm.layer_norm(view), torch.as_tensor(lnorm.layer_norm(view.cpu().contiguous())))
    testing.assert_layer_norm(kernel(x[:, ::2], w[::2]), x[:, ::2], w[::2])
    same(lnorm.layer_norm(torch._neg_view(x)), torch.as_tensor(lnorm.layer_norm(-x)))


@tries
def gradients_are_not_asked_for():
    x, w, b = (one.requires_grad_() for one in made())
    y = kernel(x, w, b)
    testing.assert_layer_norm(y, x, w, b)
    dy = torch.randn_like(y)
    y.backward(dy)
    verdict = lnorm.check(x, None, w, dy=dy, actual_dx=x.grad, actual_dweight=w.grad, actual_dbias=b.grad)
    if not verdict:
        raise RuntimeError(str(verdict))
    testing.assert_layer_norm(kernel(torch.nn.Parameter(x.detach()), w), x, w)
    return str(verdict).splitlines()[0]


@tries
def inference_mode():
    with torch.inference_mode():
        x, w, b = made()
        testing.assert_layer_norm(kernel(x, w, b), x, w, b)
    testing.assert_layer_norm(kernel(x, w, b), x, w, b)


@tries
def subclasses():
    class Own(torch.Tensor):
        pass

    x, w, b = made()
    testing.assert_layer_norm(kernel(x, w, b).as_subclass(Own), x.as_subclass(Own), w, b)


@tries
def a_kernel_that_still_runs_on_another_stream_is_waited_for():
    x, w, b = made()
    right, y = kernel(x, w, b), torch.zeros_like(x)
    stream = torch.cuda.Stream()
    for _ in range(3):
        y.zero_()
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(1_000_000_000)  # half a second
            y.copy_(right)
        if stream.query():
            raise RuntimeError("the stream has ended before it was asked")
        testing.assert_layer_norm(y, x, w, b)
    return "three times"


@tries
def a_copy_to_pinned_memory_that_still_runs_is_waited_for():
    x, w, b = made()
    right, host = kernel(x, w, b), torch.zeros(x.shape, pin_memory=True)
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(1_000_000_000)
        host.copy_(right, non_blocking=True)
    testing.assert_layer_norm(host, x, w, b)


@tries
def wrong_kernels_are_named():
    x, w, b = made()
    mean = x.mean(-1, keepdim=True)
    wrong = {
        "eps-on-std": (x - mean) / (x.std(-1, unbiased=False, keepdim=True) + 1e-5) * w + b,
        "ddof-1": (x - mean) / torch.sqrt(x.var(-1, unbiased=True, keepdim=True) + 1e-5) * w + b,
        "rms": x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-5) * w + b,
    }
    return "; ".join(raises(AssertionError, [f"({name}"], lambda y=y: testing.assert_layer_norm(y, x, w, b)) for name, y in wrong.items())


@tries
def what_else_differs_is_an_assertion_error():
    x, w, b = made()
    y = kernel(x, w, b)
    raises(AssertionError, ["shape"], lambda: testing.assert_layer_norm(y[:3], x, w, b))
    raises(AssertionError, ["y is float16, expected float32"], lambda: testing.assert_layer_norm(y.half(), x, w, b, dtype=torch.float32))
    return raises(AssertionError, ["exchanged"], lambda: testing.assert_layer_norm(x, kernel(x, torch.ones_like(w))))


@tries
def a_place_for_a_result_is_on_the_host():
    x, _, _ = made()
    said = raises(TypeError, ["out: ", "out.copy_(torch.as_tensor(lnorm.layer_norm(x)))"], lambda: lnorm.layer_norm(x, out=x))
    out = torch.empty_like(x)
    out.copy_(torch.as_tensor(lnorm.layer_norm(x)))
    testing.assert_layer_norm(out, x)
    return said


@tries
def what_has_no_plain_values_is_one_error():
    x, _, _ = made(shape=(4, 8))
    for words, tensor in [
        (["on device meta"], x.to("meta")),
        (["to_dense()"], x.to_sparse()),
        (["to_dense()"], x.to_sparse_csr()),
        (["nested", "to_padded_tensor"], torch.nested.nested_tensor([x[0], x[1, :3]])),
        (["nested", "to_padded_tensor"], torch.nested.nested_tensor([x[0], x[1, :3]], layout=torch.jagged)),
        (["dequantize()"], torch.quantize_per_tensor(x.cpu(), 0.1, 0, torch.qint8)),
        (["complex64"], x.to(torch.complex64)),
    ]:
        print("       ", raises(TypeError, words, lambda tensor=tensor: lnorm.layer_norm(tensor)), flush=True)
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode() as mode:
        fake = mode.from_tensor(x)
    return raises(TypeError, ["x: "], lambda: lnorm.layer_norm(fake))


@tries
def Triton():
    if imported("triton") is None:
        return "not here"
    module = torch.compile(lambda x, w: torch.nn.functional.layer_norm(x, w.shape, w))
    x, w, _ = made()
    testing.assert_layer_norm(module(x, w), x, w)
    return "inductor's kernel passes"


@tries
def CuPy():
    cupy = imported("cupy")
    if cupy is None:
        return "not here"
    x, w, b = made()
    x, y = cupy.from_dlpack(x), cupy.from_dlpack(kernel(x, w, b))
    testing.assert_layer_norm(y, x, cupy.from_dlpack(w), cupy.from_dlpack(b))
    late = cupy.zeros_like(y)
    cupy.cuda.Device().synchronize()
    spin = cupy.RawKernel(
        'extern "C" __global__ void spin() { long long t = clock64(); while (clock64() - t < 1000000000LL); }', "spin"
    )
    with cupy.cuda.Stream(non_blocking=True):
        spin((1,), (1,), ())
        cupy.copyto(late, y)
    testing.assert_layer_norm(late, x, w, b)
    return raises(TypeError, ["out.set(lnorm.layer_norm(x))"], lambda: lnorm.layer_norm(x, out=late))


@tries
def JAX():
    jax = imported("jax")
    if jax is None:
        return "not here"
    x = jax.random.normal(jax.random.PRNGKey(0), (64, 512))
    for dtype in ("float32", "bfloat16", "float16", "float8_e4m3fn"):
        narrow = x.astype(dtype)
        lnorm.layer_norm(narrow, dtype="float32")
        if dtype == "float32":
            y = jax.jit(jax.nn.standardize)(narrow)
            testing.assert_layer_norm(y, narrow, rtol=1e-4, atol=1e-4)
    raises(TypeError, ["out = jax.numpy.asarray"], lambda: lnorm.layer_norm(x, out=x))
    return raises(TypeError, ["tracer"], lambda: jax.jit(lambda a: lnorm.layer_norm(a))(x)) + f" ({jax.devices()[0]})"


@tries
def numba():
    cuda = imported("numba.cuda")
    if cuda is None or not cuda.is_available():
        return "not here"
    x, w, b = made()
    y = cuda.to_device(kernel(x, w, b).cpu().numpy())
    testing.assert_layer_norm(y, cuda.to_device(x.cpu().numpy()), w, b)
    return raises(TypeError, ["out.copy_to_device"], lambda: lnorm.layer_norm(x, out=y))


numpy = imported("numpy")
print(f"lnorm {lnorm.__version__}, Python {sys.version.split()[0]}, PyTorch {torch.__version__}, NumPy {numpy and numpy.__version__}, "
      f"{torch.cuda.get_device_name()}: {len(failed)} failed{': ' + ', '.join(failed) if failed else ''}")  # fmt: skip
sys.exit(1 if failed else 0)
