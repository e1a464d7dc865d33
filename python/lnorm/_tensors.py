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
from typing import Any, Callable, NamedTuple, NoReturn, Sequence

__tracebackhide__ = True

SWAPPED, READ_ONLY = 1, 2

# The bytes of an element, and the code of the module struct where it has one.
DTYPES = {
    "bool": (1, "?"), "int8": (1, "b"), "int16": (2, "h"), "int32": (4, "i"), "int64": (8, "q"),
    "uint8": (1, "B"), "uint16": (2, "H"), "uint32": (4, "I"), "uint64": (8, "Q"),
    "float16": (2, "e"), "float32": (4, "f"), "float64": (8, "d"),
    "bfloat16": (2, ""), "float8_e4m3fn": (1, ""), "float8_e5m2": (1, ""),
}  # fmt: skip
_DLPACK = {
    (0, 8): "int8", (0, 16): "int16", (0, 32): "int32", (0, 64): "int64",
    (1, 8): "uint8", (1, 16): "uint16", (1, 32): "uint32", (1, 64): "uint64",
    (2, 16): "float16", (2, 32): "float32", (2, 64): "float64", (4, 16): "bfloat16",
    (6, 8): "bool", (10, 8): "float8_e4m3fn", (12, 8): "float8_e5m2",
}  # fmt: skip
_DEVICES = {2: "cuda", 4: "opencl", 7: "vulkan", 8: "metal", 10: "rocm", 14: "oneapi"}
_HOST = (1, 3, 11, 13)  # the CPU, and memory of CUDA and ROCm that it sees
_AXES = 64  # more than any array has


class Tensor(ctypes.Structure):
    """lnorm_tensor. owner: what keeps the elements; dtype_of: NumPy's dtype, if that is not to be had by its name."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("dtype", ctypes.c_char_p),
        ("ndim", ctypes.c_int32),
        ("flags", ctypes.c_uint32),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
    ]
    owner: Any = None
    dtype_of: Any = None
    nbytes = 0

    def extents(self) -> tuple[int, ...]:
        return tuple((ctypes.c_int64 * self.ndim).from_address(self.shape)) if self.ndim else ()


def _function(name: str, result: Any, *arguments: Any) -> Any:
    """A function of Python's own interface. That of ctypes.pythonapi is everyone's: others may say other types of it."""
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


class _Buffer(ctypes.Structure):
    """Py_buffer, which is given back when this goes."""

    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    ]

    def __del__(self, release: Any = _function("PyBuffer_Release", None, ctypes.c_void_p), byref: Any = ctypes.byref) -> None:
        release(byref(self))


_get_buffer = _function("PyObject_GetBuffer", ctypes.c_int, ctypes.py_object, ctypes.c_void_p, ctypes.c_int)
_capsule_is = _function("PyCapsule_IsValid", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
_capsule_holds = _function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
_capsule_rename = _function("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
_STRIDES_AND_FORMAT = 0x1C  # PyBUF_RECORDS_RO


@functools.lru_cache(maxsize=256)
def _format(code: bytes, size: int) -> tuple[bytes, int]:
    """The dtype and flags of a buffer's format; no dtype if we read none of the kind."""
    text = code.decode()
    order, letter = (text[0], text[1:]) if text[:1] in tuple("@=<>!") else ("@", text)
    of_kind = {"?": "bool", **dict.fromkeys("bhilqn", "int"), **dict.fromkeys("BHILQN", "uint"), **dict.fromkeys("efd", "float")}
    kind = of_kind.get(letter, "")
    size = size or struct.calcsize(text if kind else "B")  # CPython 3.9 says 0 of arrays of ctypes without elements
    name = kind if kind in ("", "bool") else f"{kind}{8 * size}"
    swapped = order in ("<" if sys.byteorder == "big" else ">!") and size > 1
    return name.encode() if name in DTYPES and DTYPES[name][0] == size else b"", SWAPPED if swapped else 0


def _kind_of(value: Any) -> str:
    kind = type(value).__name__
    return f"is {'an' if kind[:1] in 'aeiouAEIOU' else 'a'} {kind}"


def _fail_dtype(name: str, found: Any) -> NoReturn:
    raise TypeError(f"{name}: is of dtype {found}, expected bool, integers or floats, of 8 to 64 bits")


def dtype_name(dtype: Any) -> str:
    """The name of a dtype of NumPy, PyTorch, JAX or ml_dtypes, of a type of Python, or of one that is named."""
    if isinstance(dtype, str):
        return dtype
    kind = dtype if isinstance(dtype, type) else getattr(dtype, "type", None)  # a dtype of NumPy has a type
    name = kind.__name__ if isinstance(kind, type) else str(dtype)
    return {"float": "float64", "int": "int64", "bool_": "bool"}.get(name, name.rpartition("torch.")[2])


def _made(data: int | None, dtype: str, flags: int, shape: Any, strides: Any, owner: Any) -> Tensor:
    """strides: in bytes, or None."""
    ndim = len(shape)
    extents = (ctypes.c_int64 * ndim)(*shape)
    steps = strides and (ctypes.c_int64 * ndim)(*strides)
    tensor = Tensor(data, dtype.encode(), ndim, flags, ctypes.addressof(extents), ctypes.addressof(steps) if steps else None)
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
    dtype: Any = getattr(value, "dtype", None)
    if hasattr(value, "__array_interface__") and hasattr(value, "view"):
        of = getattr(dtype, "type", type(None)).__name__  # ml_dtypes has no buffers: its elements are seen as integers
        if of not in DTYPES or DTYPES[of] != (dtype.itemsize, ""):
            _fail_dtype(name, dtype)
        tensor = _of_buffer(value.view(f"u{dtype.itemsize}"))
        assert tensor is not None
        tensor.dtype = of.encode()
        tensor.dtype_of = dtype
        return tensor
    if hasattr(value, "__dlpack__"):
        return _of_dlpack(value, name)
    if hasattr(value, "__cuda_array_interface__"):
        _fail_device(value, name, "cuda")
    if hasattr(value, "__array__"):  # pandas and others
        made = value.__array__()
        if str(made.dtype) == "object":
            raise TypeError(f'{name}: {_kind_of(value)} of objects, expected numbers: its astype("float64")')
        if made is not value:
            tensor = _read_any(made, name, is_out)
            tensor.flags |= READ_ONLY  # the value might not see what is written to it
            return tensor
    if isinstance(value, (numbers.Real, decimal.Decimal)):
        return _read_list(float(value), name, is_out)
    raise TypeError(f"{name}: {_kind_of(value)}, expected an array, or what has __dlpack__ or the buffer protocol")


# Lists and numbers.


def _flatten(value: Any, name: str, leaves: list[Any], depth: int = 0) -> tuple[int, ...]:
    """Appends the numbers and arrays of a list. Returns its shape."""
    if not isinstance(value, (list, tuple, range)):
        if isinstance(value, (int, float)):
            leaves.append(value)
            return ()
        if value is None or isinstance(value, (str, dict)):
            raise TypeError(f"{name}: {_kind_of(value)}, expected a number")
        leaves.append(tensor_of(value, name))
        shape: tuple[int, ...] = leaves[-1].extents()
        return shape
    if depth == _AXES:
        raise TypeError(f"{name.partition('[')[0]}: is a list, expected an array: it is in itself, or has more than {_AXES} axes")
    if set(map(type, value)) <= {float, int, bool}:
        leaves.extend(value)
        return (len(value),)
    shapes = []
    for number, one in enumerate(value):
        shapes.append(_flatten(one, f"{name}[{number}]", leaves, depth + 1))
        if shapes[-1] != shapes[0]:
            found, expected = ("a list of " + " by ".join(map(str, shape)) if shape else "a number" for shape in (shapes[-1], shapes[0]))
            raise ValueError(f"{name}[{number}]: is {found}, expected {expected}, as {name}[0] is: the list is ragged")
    return (len(value), *shapes[0])


def _bytes_of(tensor: Tensor) -> bytes:
    """The elements in C order."""
    run, shape = DTYPES[tensor.dtype.decode()][0], list(tensor.extents())
    if tensor.strides is None or 0 in shape:
        return ctypes.string_at(tensor.data or 0, tensor.nbytes)
    strides = list((ctypes.c_int64 * tensor.ndim).from_address(tensor.strides)) if shape else []
    if shape and strides[-1] == run:
        run *= shape.pop()
    starts = (sum(map(operator.mul, index, strides)) for index in itertools.product(*map(range, shape)))
    return b"".join(ctypes.string_at(tensor.data + start, run) for start in starts)


def _read_list(value: Any, name: str, is_out: bool) -> Tensor:
    """A number, or a list of numbers or arrays: of the arrays' dtype, else bool, int64, uint64 or float64."""
    leaves: list[Any] = []
    shape = _flatten(value, name, leaves)
    kinds = {(leaf.dtype, leaf.flags & SWAPPED) if isinstance(leaf, Tensor) else isinstance(leaf, float) for leaf in leaves}
    if len(kinds) == 1 and isinstance(leaves[0], Tensor):
        tensor = _made(None, leaves[0].dtype.decode(), READ_ONLY | leaves[0].flags & SWAPPED, shape, None, leaves)
        tensor.dtype_of = leaves[0].dtype_of
        elements: Any = b"".join(map(_bytes_of, leaves))
        tensor.owner = elements, tensor.owner
        tensor.data = ctypes.cast(elements, ctypes.c_void_p).value
        return tensor
    numbers_of: list[Any] = []
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            numbers_of.append(leaf)
            continue
        dtype, elements = leaf.dtype.decode(), _bytes_of(leaf)
        size, letter = DTYPES[dtype]
        if not letter:
            raise TypeError(f"{name}: is a list of several dtypes with {dtype} among them, expected arrays of one dtype")
        order = ">" if bool(leaf.flags & SWAPPED) == (sys.byteorder == "little") else "<"
        numbers_of.extend(struct.unpack(f"{order}{len(elements) // size}{letter}", elements))
    return _made_of(numbers_of, name, shape)


def _made_of(values: list[Any], name: str, shape: tuple[int, ...]) -> Tensor:
    types = set(map(type, values))
    fits = [("int64", "q"), ("uint64", "Q")]
    if types == {bool}:
        fits = [("bool", "B")]
    elif not types or any(issubclass(kind, float) for kind in types):
        fits = [("float64", "d")]
    for dtype, code in fits:
        try:
            elements = array.array(code, values)
        except OverflowError:
            continue
        return _made(elements.buffer_info()[0], dtype, READ_ONLY, shape, None, elements)
    first = next(i for i, value in enumerate(values) if isinstance(value, int) and not -(2**63) <= value < 2**63)
    where = ""
    for extent in reversed(shape):
        first, at = divmod(first, extent)
        where = f"[{at}]{where}"
    raise ValueError(f"{name}{where}: is beyond the range of 64-bit integers, expected a float")


# What has __dlpack__.


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    """DLManagedTensor. Its deleter is called when this goes."""

    _fields_ = [("tensor", _DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class _ManagedVersioned(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint32 * 2),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _DLTensor),
    ]


class _Held:
    """A tensor that a capsule has handed over. It is given back when this goes."""

    def __init__(self, managed: Any) -> None:
        self.managed = managed

    def __del__(self, function: Any = ctypes.PYFUNCTYPE(None, ctypes.c_void_p), addressof: Any = ctypes.addressof) -> None:
        if self.managed.deleter:
            function(self.managed.deleter)(addressof(self.managed))


# The names of capsules, those of used ones, and what they hold. A capsule does not copy its name.
_CAPSULES: list[tuple[bytes, bytes, Any]] = [
    (b"dltensor", b"used_dltensor", _Managed),
    (b"dltensor_versioned", b"used_dltensor_versioned", _ManagedVersioned),
]


def _fail_out(name: str, device: Any, line: str) -> NoReturn:
    raise TypeError(f"{name}: an array on device {device} cannot be written to from here, expected one on the CPU; in place of {name}=: {line.format(name)}")


def _fail_device(value: Any, name: str, device: str) -> NoReturn:
    raise TypeError(f"{name}: is on device {device}, expected the CPU: copy the {type(value).__name__} to the host")


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
    dtype = _DLPACK.get((tensor.code, tensor.bits))
    if dtype is None or tensor.lanes != 1:
        _fail_dtype(name, f"DLPack's code {tensor.code} with {tensor.bits} bits")
    extents = ctypes.c_int64 * tensor.ndim
    shape = extents.from_address(tensor.shape) if tensor.ndim else ()
    steps = [step * DTYPES[dtype][0] for step in extents.from_address(tensor.strides)] if tensor.ndim and tensor.strides else None
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
    layout = str(value.layout)
    for is_so, what, method in [
        (getattr(value, "is_nested", False), "nested", "to_padded_tensor(0.0), or its unbind() as a dict"),
        (layout != "torch.strided", f"of layout {layout}", "to_dense()"),
        (getattr(value, "is_quantized", False), "quantized", "dequantize()"),
        (value.device.type == "meta", "on device meta, which holds no values", "elements on another device"),
    ]:
        if is_so:
            raise TypeError(f"{name}: is {what}, expected its {method}")
    if value.device.type != "cpu":
        if is_out:
            _fail_out(name, value.device, "{0}.copy_(torch.as_tensor(lnorm.layer_norm(x)))")
        _wait_for_torch(value)
    elif torch.cuda.is_initialized() and value.is_pinned():
        torch.cuda.synchronize()  # a copy from a device may still be on its way here
    host = value.detach().cpu()
    if host.is_neg():
        if is_out:
            raise TypeError(f"{name}: is a negated view, expected its resolve_neg()")
        host = host.resolve_neg()
    dtype, size = str(host.dtype)[6:], host.element_size()
    if dtype not in DTYPES:
        _fail_dtype(name, host.dtype)
    try:
        data = host.data_ptr()
    except RuntimeError:
        data = 0
    if not data and host.numel():
        raise TypeError(f"{name}: {_kind_of(value)} without elements in memory, expected a plain tensor")
    tensor = _made(data or None, dtype, 0, host.shape, [size * step for step in host.stride()], host)
    tensor.dtype_of = host.dtype
    return tensor


def _wait_for_numba(_: Any) -> None:
    sys.modules["numba.cuda"].synchronize()


class _Framework(NamedTuple):
    """An array library with arrays on devices: how their work is waited for, how they come to the host, and go back."""

    wait: Callable[[Any], Any]
    to_host: Callable[[Any], Any]
    line: str


_FRAMEWORKS = {
    "cupy": _Framework(lambda x: x.device.synchronize(), lambda x: x.get(), "{0}.set(lnorm.layer_norm(x))"),
    "numba": _Framework(_wait_for_numba, lambda x: x.copy_to_host(), "{0}.copy_to_device(lnorm.layer_norm(x))"),
    # These wait by themselves, and have no place to write to.
    "jax": _Framework(lambda x: None, lambda x: sys.modules["numpy"].asarray(x), "{0} = jax.numpy.asarray(lnorm.layer_norm(x))"),
}


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
        if base.__name__ == "MaskedArray" and module == "numpy":
            return _refuse_masked
        if module == "torch" and hasattr(kind, "data_ptr"):
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
    """NumPy, or None."""
    try:
        import numpy
    except ImportError:
        return None
    return numpy


def _of_torch(tensor: Tensor) -> bool:
    return type(tensor.dtype_of).__module__ == "torch"


def new_array(dtype: str, shape: tuple[int, ...], inputs: Sequence[Tensor], may_be_torch: bool = False) -> Any:
    """NumPy's, of ml_dtypes where NumPy lacks the dtype; else PyTorch's, where an input is; else a memoryview."""
    numpy, (size, letter) = _numpy(), DTYPES[dtype]
    if numpy and letter:
        return numpy.empty(shape, dtype)
    if numpy:
        for tensor in inputs:
            if tensor.dtype.decode() == dtype and tensor.dtype_of is not None and not _of_torch(tensor):
                return numpy.empty(shape, tensor.dtype_of)
        with contextlib.suppress(ImportError):
            return numpy.empty(shape, getattr(importlib.import_module("ml_dtypes"), dtype))
    if may_be_torch or any(map(_of_torch, inputs)):
        with contextlib.suppress(ImportError):
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
    raise TypeError(f"the result is {dtype}, which {lacks}, expected out=, or dtype=\"float32\"")
