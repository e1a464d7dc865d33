"""Tensors of Python as the library takes them, where they lie; those on a device are waited for and copied to the host."""

from __future__ import annotations

import array
import contextlib
import ctypes
import decimal
import functools
import importlib
import itertools
import math
import numbers
import operator
import struct
import sys
from typing import Any, Callable, NoReturn, Sequence

__tracebackhide__ = True

SWAPPED, READ_ONLY = 1, 2

# The bytes of an element, and the code of the module struct where it has one.
DTYPES = {
    "bool": (1, "?"), "int8": (1, "b"), "int16": (2, "h"), "int32": (4, "i"), "int64": (8, "q"),
    "uint8": (1, "B"), "uint16": (2, "H"), "uint32": (4, "I"), "uint64": (8, "Q"),
    "float16": (2, "e"), "float32": (4, "f"), "float64": (8, "d"),
    "bfloat16": (2, ""), "float8_e4m3fn": (1, ""), "float8_e5m2": (1, ""),
    "float8_e4m3fnuz": (1, ""), "float8_e8m0fnu": (1, ""),
}  # fmt: skip
# What DLPack and the buffer protocol call kinds of dtypes; the bits follow.
_DLPACK = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool", 10: "float8_e4m3fn", 11: "float8_e4m3fnuz",
           12: "float8_e5m2", 14: "float8_e8m0fnu"}
_BUFFER = {"?": "bool", **dict.fromkeys("bhilqn", "int"), **dict.fromkeys("BHILQN", "uint"), **dict.fromkeys("efd", "float")}
_DEVICES = {2: "cuda", 4: "opencl", 7: "vulkan", 8: "metal", 10: "rocm", 14: "oneapi"}
_HOST = (1, 3, 11, 13)  # the CPU, and memory of CUDA and ROCm that it sees
_AXES = 64  # more than any array has

_P, _I32, _I64 = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64


def _fields(names: str, *types: Any) -> Any:
    return list(zip(names.split(), types))


class Tensor(ctypes.Structure):
    """lnorm_tensor. owner: what keeps the elements; dtype_of: NumPy's or PyTorch's dtype, where its name does not say it all."""

    _fields_ = _fields("data dtype ndim flags shape strides", _P, ctypes.c_char_p, _I32, ctypes.c_uint32, _P, _P)
    owner: Any = None
    dtype_of: Any = None
    nbytes = 0

    def extents(self) -> tuple[int, ...]:
        return tuple((_I64 * self.ndim).from_address(self.shape)) if self.ndim else ()


def _function(name: str, result: Any, *arguments: Any) -> Any:
    """A function of Python's own interface. That of ctypes.pythonapi is everyone's: others may say other types of it."""
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


class _Buffer(ctypes.Structure):
    """Py_buffer, which is given back when this goes."""

    _fields_ = _fields(
        "buf obj len itemsize readonly ndim format shape strides suboffsets internal",
        _P, _P, ctypes.c_ssize_t, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_int, ctypes.c_char_p, _P, _P, _P, _P,
    )  # fmt: skip

    def __del__(self, release: Any = _function("PyBuffer_Release", None, _P), byref: Any = ctypes.byref) -> None:
        release(byref(self))


_get_buffer = _function("PyObject_GetBuffer", ctypes.c_int, ctypes.py_object, _P, ctypes.c_int)
_STRIDES_AND_FORMAT = 0x1C  # PyBUF_RECORDS_RO


@functools.lru_cache(maxsize=256)
def _format(code: bytes, size: int) -> tuple[bytes, int]:
    """The dtype and flags of a buffer's format; no dtype if we read none of the kind."""
    text = code.decode()
    order, letter = (text[0], text[1:]) if text[0] in "@=<>!" else ("@", text)
    kind = _BUFFER.get(letter, "")
    size = size or struct.calcsize(text if kind else "B")  # CPython 3.9 says 0 of arrays of ctypes without elements
    name = kind if kind == "bool" else f"{kind}{8 * size}"
    is_swapped = order in ("<" if sys.byteorder == "big" else ">!") and size > 1
    return name.encode() if DTYPES.get(name, (0,))[0] == size else b"", SWAPPED if is_swapped else 0


def _kind_of(value: Any) -> str:
    kind = type(value).__name__
    return f"is {'an' if kind[:1] in 'aeiouAEIOU' else 'a'} {kind}"


def _fail_dtype(name: str, found: Any) -> NoReturn:
    raise TypeError(f"{name}: is of dtype {found}, expected bool, integers or floats, of 8 to 64 bits")


def _fail_device(value: Any, name: str, device: str) -> NoReturn:
    raise TypeError(f"{name}: is on device {device}, expected the CPU: copy the {type(value).__name__} to the host")


def _fail_out(name: str, device: Any, line: str) -> NoReturn:
    raise TypeError(f"{name}: an array on device {device} cannot be written to from here; in place of {name}=: {line.format(name)}")


def dtype_name(dtype: Any) -> str:
    """The name of a dtype of NumPy, PyTorch, JAX or ml_dtypes, of a type of Python, or of one that is named."""
    if isinstance(dtype, str):
        if dtype == "float":
            raise TypeError("dtype: 'float' is float64 in NumPy and float32 in PyTorch, expected 'float32' or 'float64'")
        return dtype
    kind = dtype if isinstance(dtype, type) else getattr(dtype, "type", None)  # a dtype of NumPy has a type
    name = kind.__name__ if isinstance(kind, type) else str(dtype)
    return {"float": "float64", "int": "int64", "bool_": "bool"}.get(name, name.rpartition("torch.")[2])


def _made(data: int | None, dtype: str, flags: int, shape: Any, strides: Any, owner: Any) -> Tensor:
    """strides: in bytes, or None."""
    extents, steps = (_I64 * len(shape))(*shape), strides and (_I64 * len(shape))(*strides)
    tensor = Tensor(
        data, dtype.encode(), len(shape), flags, ctypes.addressof(extents), ctypes.addressof(steps) if steps else None
    )
    tensor.owner = owner, extents, steps
    tensor.nbytes = math.prod(shape) * DTYPES[dtype][0]
    return tensor


def _of_buffer(value: Any) -> Tensor | None:
    """What has the buffer protocol; None if its format is not one that we read. Raises what the exporter raises."""
    view = _Buffer()
    _get_buffer(value, ctypes.byref(view), _STRIDES_AND_FORMAT)
    dtype, flags = _format(view.format or b"B", view.itemsize)
    if not dtype:
        return None
    tensor = Tensor(view.buf, dtype, view.ndim, flags | READ_ONLY if view.readonly else flags, view.shape, view.strides)
    tensor.owner = view
    tensor.nbytes = view.len
    return tensor


def _read_any(value: Any, name: str, is_out: bool) -> Tensor:
    try:
        tensor = _of_buffer(value)
        if tensor is not None:
            return tensor
    except (TypeError, ValueError, BufferError):
        pass
    if hasattr(value, "__array_interface__") and hasattr(value, "view"):
        dtype = value.dtype
        of = dtype.type.__name__  # ml_dtypes has no buffers: its elements are seen as integers
        if DTYPES.get(of) != (dtype.itemsize, ""):
            _fail_dtype(name, dtype)
        tensor = _read_any(value.view(f"u{dtype.itemsize}"), name, is_out)
        tensor.dtype, tensor.dtype_of = of.encode(), dtype
        return tensor
    if hasattr(value, "__dlpack__"):
        return _of_dlpack(value, name)
    if hasattr(value, "__cuda_array_interface__"):
        _fail_device(value, name, "cuda")
    if hasattr(value, "__array__"):  # pandas and others
        made = value.__array__()
        if str(made.dtype) == "object":
            raise TypeError(f'{name}: {_kind_of(value)} of objects, expected numbers: its astype("float64"), if they are')
        tensor = _read_any(made, name, is_out)
        tensor.flags |= READ_ONLY  # the value might not see what is written to it
        return tensor
    if isinstance(value, (numbers.Real, decimal.Decimal)):
        return _read_list(float(value), name, is_out)
    raise TypeError(f"{name}: {_kind_of(value)}, expected an array, or what has __dlpack__ or the buffer protocol")


# Lists and numbers.


def _flatten(value: Any, name: str, leaves: list[Any], depth: int = 0) -> tuple[int, ...]:
    """Appends the numbers and arrays of a list. Returns its shape."""
    if isinstance(value, (int, float)):
        leaves.append(value)
        return ()
    if not isinstance(value, (list, tuple, range)):
        if value is None or isinstance(value, (str, dict)):
            raise TypeError(f"{name}: {_kind_of(value)}, expected a number")
        leaves.append(tensor_of(value, name))
        return tuple(leaves[-1].extents())
    if depth == _AXES:
        name = name.partition("[")[0]
        raise TypeError(f"{name}: is a list that contains itself, or has more than {_AXES} axes")
    if set(map(type, value)) <= {float, int, bool}:
        before = len(leaves)
        leaves.extend(value)
        return (len(leaves) - before,)
    first: tuple[int, ...] = ()
    number = -1
    for number, one in enumerate(value):
        shape = _flatten(one, f"{name}[{number}]", leaves, depth + 1)
        first = first if number else shape
        if shape != first:
            found, expected = ("a list of " + " by ".join(map(str, axes)) if axes else "a number" for axes in (shape, first))
            raise ValueError(f"{name}[{number}]: is {found}, expected {expected}, as {name}[0] is: the list is ragged")
    return (number + 1, *first)


def _bytes_of(tensor: Tensor) -> bytes:
    """The elements in C order."""
    run, shape = DTYPES[tensor.dtype.decode()][0], list(tensor.extents())
    if tensor.strides is None or not tensor.nbytes:
        return ctypes.string_at(tensor.data or 0, tensor.nbytes)
    strides = (_I64 * tensor.ndim).from_address(tensor.strides)
    if shape and strides[-1] == run:
        run *= shape.pop()
    starts = (sum(map(operator.mul, index, strides)) for index in itertools.product(*map(range, shape)))
    return b"".join(ctypes.string_at(tensor.data + start, run) for start in starts)


def _values_of(tensor: Tensor, name: str) -> Sequence[Any]:
    elements, dtype = _bytes_of(tensor), tensor.dtype.decode()
    size, letter = DTYPES[dtype]
    if not letter:
        raise TypeError(f"{name}: is a list of several dtypes with {dtype} among them, expected arrays of one dtype")
    is_big = bool(tensor.flags & SWAPPED) == (sys.byteorder == "little")
    return struct.unpack(f"{'>' if is_big else '<'}{len(elements) // size}{letter}", elements)


def _read_list(value: Any, name: str, is_out: bool) -> Tensor:
    """A number, or a list of numbers or arrays: of the arrays' dtype, else bool, int64, uint64 or float64."""
    leaves: list[Any] = []
    shape = _flatten(value, name, leaves)
    dtypes = {(leaf.dtype, leaf.flags & SWAPPED) if isinstance(leaf, Tensor) else None for leaf in leaves}
    if len(dtypes) == 1 and None not in dtypes:
        elements: Any = array.array("B", b"".join(map(_bytes_of, leaves)))
        first = leaves[0]
        tensor = _made(elements.buffer_info()[0], first.dtype.decode(), first.flags | READ_ONLY, shape, None, elements)
        tensor.dtype_of = first.dtype_of
        return tensor
    if dtypes - {None}:
        each = ([leaf] if not isinstance(leaf, Tensor) else _values_of(leaf, name) for leaf in leaves)
        leaves = list(itertools.chain.from_iterable(each))
    types = set(map(type, leaves))
    fits = [("int64", "q"), ("uint64", "Q")]
    if types == {bool}:
        fits = [("bool", "B")]
    elif not types or any(issubclass(kind, float) for kind in types):
        fits = [("float64", "d")]
    for dtype, code in fits:
        with contextlib.suppress(OverflowError):
            elements = array.array(code, leaves)
            return _made(elements.buffer_info()[0], dtype, READ_ONLY, shape, None, elements)
    at, where = next(i for i, one in enumerate(leaves) if isinstance(one, int) and not -(2**63) <= one < 2**63), ""
    for extent in reversed(shape):
        at, where = at // extent, f"[{at % extent}]{where}"
    raise ValueError(f"{name}{where}: is beyond the range of 64-bit integers, expected a float")


# What has __dlpack__.


class _DLTensor(ctypes.Structure):
    _fields_ = _fields(
        "data device ndim code bits lanes shape strides byte_offset",
        _P, _I32 * 2, _I32, ctypes.c_uint8, ctypes.c_uint8, ctypes.c_uint16, _P, _P, ctypes.c_uint64,
    )  # fmt: skip


class _Managed(ctypes.Structure):
    _fields_ = _fields("tensor context deleter", _DLTensor, _P, _P)


class _ManagedVersioned(ctypes.Structure):
    _fields_ = _fields("version context deleter flags tensor", ctypes.c_uint32 * 2, _P, _P, ctypes.c_uint64, _DLTensor)


class _Held:
    """A tensor that a capsule has handed over. It is given back when this goes."""

    def __init__(self, managed: Any) -> None:
        self.managed = managed

    def __del__(self, function: Any = ctypes.PYFUNCTYPE(None, _P), addressof: Any = ctypes.addressof) -> None:
        if self.managed.deleter:
            function(self.managed.deleter)(addressof(self.managed))


# The names of capsules, those of used ones, and what they hold. A capsule does not copy its name.
_CAPSULES: list[tuple[bytes, bytes, Any]] = [
    (b"dltensor", b"used_dltensor", _Managed),
    (b"dltensor_versioned", b"used_dltensor_versioned", _ManagedVersioned),
]
_capsule_is = _function("PyCapsule_IsValid", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
_capsule_holds = _function("PyCapsule_GetPointer", _P, ctypes.py_object, ctypes.c_char_p)
_capsule_rename = _function("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)


def _of_dlpack(value: Any, name: str) -> Tensor:
    if hasattr(value, "__dlpack_device__"):
        found = value.__dlpack_device__()
        try:
            kind, number = map(int, found)
        except (TypeError, ValueError):
            raise TypeError(f"{name}: its __dlpack_device__() is {found!r}, expected two integers") from None
        if kind not in _HOST:
            _fail_device(value, name, f"{_DEVICES.get(kind, f'type {kind} of DLPack')}:{number}")
    try:
        try:
            capsule = value.__dlpack__(max_version=(1, 0))
        except TypeError:
            capsule = value.__dlpack__()
    except Exception as error:
        raise TypeError(f"{name}: its __dlpack__() raised {type(error).__name__}: {error}") from error
    for fresh, used, managed in _CAPSULES:
        if _capsule_is(capsule, fresh):
            held = _Held(managed.from_address(_capsule_holds(capsule, fresh)))
            _capsule_rename(capsule, used)
            return _of_managed(held, name)
    raise TypeError(f"{name}: its __dlpack__() is no capsule of a tensor")


def _of_managed(held: _Held, name: str) -> Tensor:
    managed, tensor = held.managed, held.managed.tensor
    if isinstance(managed, _ManagedVersioned) and managed.version[0] != 1:
        raise TypeError(f"{name}: its __dlpack__() has version {managed.version[0]}, expected 0 or 1")
    kind = _DLPACK.get(tensor.code, "")
    dtype = kind if kind in DTYPES else f"{kind}{tensor.bits}"
    size = DTYPES.get(dtype, (0,))[0]
    if 8 * size != tensor.bits or tensor.lanes != 1:
        found = dtype if kind else f"number {tensor.code} of DLPack, of {tensor.bits} bits"
        _fail_dtype(name, found if tensor.lanes == 1 else f"{found} in vectors of {tensor.lanes}")
    extents = _I64 * tensor.ndim
    shape = extents.from_address(tensor.shape) if tensor.ndim else ()
    steps = [step * size for step in extents.from_address(tensor.strides)] if tensor.ndim and tensor.strides else None
    flags = READ_ONLY if getattr(managed, "flags", 0) & 1 else 0
    return _made((tensor.data or 0) + tensor.byte_offset or None, dtype, flags, shape, steps, held)


# Frameworks.


def _wait_for_torch(tensor: Any) -> None:
    torch, device = sys.modules["torch"], tensor.device
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif hasattr(torch, "accelerator"):
        torch.accelerator.synchronize(device)
    else:
        getattr(torch, device.type).synchronize()


def _read_torch(value: Any, name: str, is_out: bool) -> Tensor:
    """A tensor of PyTorch, by what it says itself: DLPack lacks float8, or bool, in versions that are in use."""
    torch = sys.modules["torch"]
    for is_so, what, method in [
        (getattr(value, "is_nested", False), "nested", "its to_padded_tensor(0.0), or a dict of its unbind()"),
        (str(value.layout) != "torch.strided", f"of layout {value.layout}", "its to_dense()"),
        (getattr(value, "is_quantized", False), "quantized", "its dequantize()"),
        (value.device.type == "meta", "on device meta, which holds no values", "a tensor that has some"),
    ]:
        if is_so:
            raise TypeError(f"{name}: is {what}, expected {method}")
    if value.device.type != "cpu":
        if is_out:
            _fail_out(name, value.device, "{0}.copy_(torch.as_tensor(lnorm.layer_norm(x)))")
        _wait_for_torch(value)
    elif torch.cuda.is_initialized() and value.is_pinned():
        torch.cuda.synchronize()  # a copy from a device may still be on its way here
    if is_out and value.requires_grad:
        raise TypeError(f"{name}: requires a gradient, which would not see what is written, expected its detach()")
    host = value.detach().cpu()
    if host.is_neg():
        if is_out:
            raise TypeError(f"{name}: is a negated view, expected its resolve_neg()")
        host = host.resolve_neg()
    dtype = dtype_name(host.dtype)
    if dtype not in DTYPES:
        _fail_dtype(name, host.dtype)
    data = 0
    with contextlib.suppress(RuntimeError):
        data = host.data_ptr()
    if not data and host.numel():
        raise TypeError(f"{name}: {_kind_of(value)} without elements in memory, expected a plain tensor")
    tensor = _made(data or None, dtype, 0, host.shape, [DTYPES[dtype][0] * step for step in host.stride()], host)
    tensor.dtype_of = host.dtype
    return tensor


# Other frameworks with arrays on devices: how their work is waited for, how an array comes to the host, and how a result
# goes to one. JAX waits by itself, and has no place to write to.
_FRAMEWORKS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], str]] = {
    "cupy": (lambda x: x.device.synchronize(), lambda x: x.get(), "{0}.set(lnorm.layer_norm(x))"),
    "numba": (lambda x: sys.modules["numba.cuda"].synchronize(), lambda x: x.copy_to_host(), "{0}.copy_to_device(lnorm.layer_norm(x))"),
    "jax": (lambda x: None, lambda x: sys.modules["numpy"].asarray(x), "{0} = jax.numpy.asarray(lnorm.layer_norm(x))"),
}  # fmt: skip


def _read_framework(framework: str, value: Any, name: str, is_out: bool) -> Tensor:
    wait, to_host, line = _FRAMEWORKS[framework]
    if is_out:
        _fail_out(name, getattr(value, "device", "cuda"), line)
    wait(value)
    return _read_any(to_host(value), name, is_out)


def _refuse_tracer(value: Any, name: str, is_out: bool) -> Tensor:
    raise TypeError(f"{name}: is a tracer of JAX, which has no values; expected a call outside of jax.jit, or by jax.debug.callback")


def _refuse_masked(value: Any, name: str, is_out: bool) -> Tensor:
    raise TypeError(f"{name}: is a masked array, and there is no mask here; expected an array: its filled(), or its data")


@functools.lru_cache(maxsize=256)
def _reader(kind: Any) -> Callable[[Any, str, bool], Tensor]:
    """How tensors of a type are read."""
    if issubclass(kind, (int, float, list, tuple, range)):
        return _read_list
    for base in kind.__mro__:
        module = base.__module__.partition(".")[0]
        if module == "numpy" and base.__name__ == "MaskedArray":
            return _refuse_masked
        if module == "torch" and base.__name__ == "Tensor":
            return _read_torch
        if module == "cupy" and hasattr(kind, "get") or module == "numba" and hasattr(kind, "copy_to_host"):
            return functools.partial(_read_framework, module)
        if module in ("jax", "jaxlib") and base.__name__ in ("Tracer", "Array", "ArrayImpl"):
            if base.__name__ == "Tracer":
                return _refuse_tracer
            return functools.partial(_read_framework, "jax")
    return _read_any


def tensor_of(value: Any, name: str, is_out: bool = False) -> Tensor:
    """A tensor as the library takes it, which keeps its elements. name: what the caller calls it."""
    kind: Any = type(value)
    return _reader(kind)(value, name, is_out)


def is_masked(value: Any) -> bool:
    kind: Any = type(value)
    return _reader(kind) is _refuse_masked


# Results.


@functools.lru_cache(maxsize=None)
def _numpy() -> Any:
    with contextlib.suppress(ImportError):
        return importlib.import_module("numpy")
    return None


def _is_of_torch(tensor: Tensor) -> bool:
    return type(tensor.dtype_of).__module__ == "torch"


def new_array(
    dtype: str, shape: tuple[int, ...], inputs: Sequence[Tensor], may_be_torch: bool = False, way_on: str = "out=, or another dtype"
) -> Any:
    """NumPy's, of ml_dtypes where NumPy lacks the dtype; else PyTorch's, where an input is; else a memoryview."""
    numpy, (size, letter) = _numpy(), DTYPES[dtype]
    if numpy:
        of: list[Any] = [dtype] if letter else []
        of += [one.dtype_of for one in inputs if one.dtype.decode() == dtype and not _is_of_torch(one)]
        with contextlib.suppress(ImportError, AttributeError):
            return numpy.empty(shape, of[0] if of and of[0] is not None else getattr(importlib.import_module("ml_dtypes"), dtype))
    if may_be_torch or any(map(_is_of_torch, inputs)):
        with contextlib.suppress(ImportError, AttributeError):
            torch: Any = importlib.import_module("torch")
            return torch.empty(shape, dtype=getattr(torch, dtype))
    with contextlib.suppress(ValueError, AttributeError):
        if 0 not in shape:
            return memoryview(bytearray(math.prod(shape) * size)).cast(letter, shape)
        kind: Any = type("element", (ctypes._SimpleCData,), {"_type_": letter})  # what has no bytes cannot be cast
        for extent in reversed(shape):
            kind *= extent
        return memoryview(kind())
    lacks = "NumPy has only with ml_dtypes" if numpy else "a memoryview has not"
    raise TypeError(f"the result is {dtype}, which {lacks}, expected {way_on}")
