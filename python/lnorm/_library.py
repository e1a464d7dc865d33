"""liblnorm by ctypes: where it is, its functions, and a job of it, whose errors are exceptions."""

from __future__ import annotations

import _thread
import ctypes
import functools
import os
import pathlib
import queue
import re
import threading
from numbers import Integral
from typing import Any, Iterable

from ._tensors import Tensor, dtype_name, new_array, tensor_of

__tracebackhide__ = True

__version__ = "@PROJECT_VERSION@"
FILE = "liblnorm.so.0"

_J, _T, _I, _P = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p
# What each function returns, and takes.
_FUNCTIONS: dict[str, list[Any]] = {
    "version": [_T], "option_kind": [_I, _T, _T], "job_new": [_J, _T], "job_free": [None, _J], "job_set": [_I, _J, _T, _T],
    "job_bind": [_I, _J, _T, _P], "job_bind_member": [_I, _J, _T, _T, _P], "job_result": [_I, _J, _T, _P],
    "job_bind_result": [_I, _J, _T, _P], "job_run": [_I, _J], "job_cancel": [None, _J], "job_text": [_T, _J], "job_json": [_T, _J],
    "job_error": [_T, _J], "job_hint": [_T, _J], "job_role_at_fault": [_T, _J], "job_fault": [_I, _J],
    "main": [_I, _I, ctypes.POINTER(_T)],
}  # fmt: skip
# What the library says as a shell or C has it.
_IN_PYTHON = {
    " (a list is written 1,2)": "",
    " (rows 5 to 7 are written 5:8)": ', as "5:8" is rows 5 to 7',
    "output is missing: nothing is bound to it": "y is missing, the output of a kernel",
}
_VALUE_OF_OPTION = re.compile(r"^((?:here it is )?)([a-z]\w*) (\S+)$")  # a hint that is an option and its value
_TWO_RESULTS = re.compile(r"^(\w+) and (\w+) lie")  # an error that is about both
# What lnorm_option_kind and lnorm_job_fault say.
FLAG, VALUE, REPEATED, TENSOR, NEGATED = 1, 2, 3, 4, 5
_OF_SETS = (b"check", b"compare", b"mutants")
UNKNOWN, INVALID, SYSTEM, NO_MEMORY, CANCELED = 1, 2, 3, 4, 5


def _open() -> Any:
    """The library that lies beside this file, or in lib/, or that is named, or of the same prefix, or that the loader finds."""
    here = pathlib.Path(__file__).resolve().parent
    lying = [str(file) for file in (here / FILE, here / "lib" / FILE) if file.exists()]
    prefix = here.parents[2] / FILE  # lib/python3/dist-packages/lnorm lies in it
    path = lying[0] if lying else os.environ.get("LNORM_LIBRARY") or (str(prefix) if prefix.exists() else FILE)
    try:
        library = ctypes.CDLL(path)
        for name, types in _FUNCTIONS.items():
            function = getattr(library, "lnorm_" + name)
            function.restype, *function.argtypes = types
            setattr(library, name, function)
    except (OSError, AttributeError) as error:
        raise ImportError(f"lnorm needs {FILE}: {error}; LNORM_LIBRARY may say where it is") from None
    found = library.version().decode()
    if found != __version__:
        raise ImportError(f"lnorm {__version__} needs {FILE} of its version, found {found} in {path}")
    return library


_library = _open()
main = _library.main
_new, _run, _set = _library.job_new, _library.job_run, _library.job_set
_bind, _bind_member, _bind_result = _library.job_bind, _library.job_bind_member, _library.job_bind_result


@functools.lru_cache(maxsize=1024)
def option_kind(command: bytes, name: str) -> int:
    kind: int = _library.option_kind(command, name.encode(errors="replace"))
    return kind


def _text_of(value: Any) -> str:
    """A value as the program reads it: a number in the shortest decimals that read back as the same float64."""
    if isinstance(value, str):
        return value
    if hasattr(value, "tolist"):  # NumPy's and PyTorch's
        value = value.tolist()
    if isinstance(value, (list, tuple, range, set, frozenset)):
        return ",".join(map(_text_of, value))
    return repr(float(value)) if isinstance(value, float) else str(value)


def _in_python(text: str) -> str:
    """A value of the command line as one of Python."""
    if re.fullmatch(r"-?\d+(,-?\d+)+", text):
        return f"({text.replace(',', ', ')})"
    return text if text[0].isdigit() else repr(text)


def _encoded(text: str, name: str) -> bytes:
    if "\0" in text:
        raise ValueError(f"{name}: has a character 0, {text!r}")
    return text.encode(errors="backslashreplace")


def _truth(name: str, value: Any) -> bool:
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):  # NumPy's
        return bool(value)
    raise TypeError(f"{name}: expected True or False, found {value!r}")


# Where threads wait for jobs. They are kept: a thread is a millisecond's work for TBB. A child process has none of them.
_idle: list[queue.SimpleQueue[Any]] = []
os.register_at_fork(after_in_child=_idle.clear)


def _work(tasks: queue.SimpleQueue[Any]) -> None:
    while True:
        job, found, done = tasks.get()
        found.append(_run(job._job))
        del job  # kept until here, even if the main thread was interrupted twice and left it
        _idle.append(tasks)
        done.release()


def full_dtype(dtype: Any) -> str:
    """What reports call a dtype that an option may call otherwise, such as 'f4'."""
    info = Tensor()
    # int8 is a dtype of quantized results alone.
    of_options: list[dict[str, Any]] = [{"dtype": dtype}, {"dtype": dtype, "quantize": "row"}]
    jobs = [Job(b"apply", {"input": ("x", [[0.0]])}, options) for options in of_options]
    if all(_library.job_result(job._job, b"y", ctypes.byref(info)) for job in jobs):
        jobs[0].fail()
    return str(info.dtype.decode())


class Job:
    """A command with its options and tensors, which are kept until the job goes."""

    # Work on fewer bytes ends before a user can press Ctrl-C.
    LONG = 1 << 22

    def __init__(
        self, command: bytes, tensors: dict[str, tuple[str, Any]], options: dict[str, Any], is_long: bool = False
    ) -> None:
        """tensors: what each role is called by the caller, and its tensor."""
        self._job = _new(command)
        if not self._job:
            raise MemoryError
        self.command = command
        self._bytes = self.LONG if is_long else 0
        self._kept: list[Tensor] = []
        self._outs = {"input": "x", "output": "y"}  # what roles and results are called here
        self._given: set[str] = set()
        for role, (name, value) in tensors.items():
            self.bind(role, value, name)
        for name, value in options.items():
            self.set(name, value)

    def __del__(self, free: Any = _library.job_free) -> None:
        free(self._job)

    def fail(self) -> None:
        """Raises the error of the last call. Its role_at_fault says which tensor does not fit."""
        job = self._job
        fault = _library.job_fault(job)
        words, hint, role = (
            function(job).decode(errors="replace")
            for function in (_library.job_error, _library.job_hint, _library.job_role_at_fault)
        )
        result, colon, rest = words.partition(": ")
        if colon and result in self._outs:
            words = f"{self._outs[result]}: {rest}"
        for shell, python in _IN_PYTHON.items():
            words = words.replace(shell, python)
        if fault != UNKNOWN:  # which quotes the caller
            words = re.sub(r"\bno_(\w+)", r"\1=False", words)
        hint = _VALUE_OF_OPTION.sub(lambda found: f"{found[1]}{found[2]}={_in_python(found[3])}", hint)
        words = _TWO_RESULTS.sub(lambda found: " and ".join(self._outs.get(one, one) for one in found.groups()) + " lie", words)
        kinds: dict[int, type[BaseException]] = {UNKNOWN: TypeError, SYSTEM: OSError, NO_MEMORY: MemoryError, CANCELED: KeyboardInterrupt}
        error: Any = kinds.get(fault, ValueError)(f"{words}\nhint: {hint}" if hint else words)
        error.role_at_fault = role
        try:
            raise error
        finally:
            del error  # or this frame would keep the job and its tensors until the next collection

    def _keep(self, value: Any, name: str, is_out: bool = False) -> Tensor:
        tensor = tensor_of(value, name, is_out)
        self._bytes += tensor.nbytes
        self._kept.append(tensor)
        return tensor

    def bind(self, role: str, value: Any, name: str) -> None:
        """A tensor, or for a report several in a dict, by their names. name: what the caller calls it."""
        if role in self._given:
            raise TypeError(f"{role}: is given twice")
        self._given.add(role)
        if isinstance(value, dict) and self.command in _OF_SETS:
            if not value:
                raise ValueError(f"{name}: is an empty dict, expected tensors by their names")
            keys: dict[str, Any] = {}
            for key, one in value.items():
                if keys.setdefault(str(key), key) is not key:
                    raise ValueError(f"{name}: both {keys[str(key)]!r} and {key!r} get the name '{key}', expected one")
                member = self._keep(one, f"{name}[{key!r}]")
                if _bind_member(self._job, role.encode(), _encoded(str(key), name), ctypes.byref(member)):
                    self.fail()
            return
        tensor = self._keep(value, name)
        if _bind(self._job, role.encode(), ctypes.byref(tensor)):
            self.fail()

    def set(self, name: str, value: Any) -> None:
        """An option by its name in Python. None leaves it as it is."""
        kind = option_kind(self.command, name)
        if value is None and kind:
            return
        words: Iterable[str | None]
        if kind == TENSOR and not isinstance(value, str):
            if name in ("weight", "bias") and isinstance(value, tuple) and value and all(isinstance(one, Integral) for one in value):
                raise TypeError(f"{name} is {value!r}, expected a tensor: a shape is normalized_shape={tuple(map(int, value))!r}")
            self.bind(name, value, name)
            return
        if kind == TENSOR and (value == "-" or value.startswith("-:")):
            raise ValueError(f"{name} is {value!r}, expected a tensor, or the name of a file: standard input is not read here")
        if kind in (FLAG, NEGATED):
            is_named = kind == FLAG or name.startswith("no_")
            if _truth(name, value) != is_named:
                return
            words, name = [None], name if is_named else "no_" + name
        elif kind in (VALUE, REPEATED) and isinstance(value, bool):
            raise TypeError(f"{name}: expected a value, found {value!r}")
        elif name in ("dtype", "arithmetic", "as"):
            words = [dtype_name(value)]
        elif kind == REPEATED and isinstance(value, (list, tuple)):
            words = map(_text_of, value)
        else:
            text = _text_of(value)
            if (name, text) in (("round", ""), ("threads", "0")):  # no steps; as many as there are
                return
            words = [text]
        for word in words:
            if _set(self._job, _encoded(name, "an option"), word if word is None else _encoded(word, name)):
                self.fail()

    def result(self, role: str, out: Any = None, name: str = "out") -> Any:
        """Binds a result to `out` or to a new array, and gives that; None where the command has no such result."""
        if out is None:
            info = Tensor()
            status = _library.job_result(self._job, role.encode(), ctypes.byref(info))
            if status == 1:
                return None
            if status:
                self.fail()
            way_on = "another scale_dtype" if role == "scale" else "out=, or another dtype"
            out = new_array(info.dtype.decode(), info.extents(), self._kept, way_on=way_on)
        self._outs[role] = name
        tensor = self._keep(out, name, True)
        if _bind_result(self._job, role.encode(), ctypes.byref(tensor)):
            self.fail()
        return out

    def made(self, result: str) -> Any:
        """A copy of what the job has made itself, or None."""
        info = Tensor()
        status = _library.job_result(self._job, result.encode(), ctypes.byref(info))
        if status:
            return None if status == 1 else self.fail()
        array = new_array(info.dtype.decode(), info.extents(), [], may_be_torch=True)
        into = tensor_of(array, result, True)
        ctypes.memmove(into.data or 0, info.data or 0, into.nbytes)
        return array

    def run(self) -> int:
        """The exit status; 2 is of a report that could not judge. Ctrl-C ends what takes long: another thread works, since the main one has the signals."""
        if self._bytes < self.LONG or threading.current_thread() is not threading.main_thread():
            status = _run(self._job)
        else:
            status = self._run_apart()
        if status == 2 and (_library.job_error(self._job) or not _library.job_json(self._job)):
            self.fail()
        return int(status)

    def _run_apart(self) -> int:
        found: list[int] = []
        done = _thread.allocate_lock()
        done.acquire()
        try:
            tasks = _idle.pop()
        except IndexError:
            tasks = queue.SimpleQueue()
            try:
                _thread.start_new_thread(_work, (tasks,))
            except RuntimeError:  # there may be no other thread
                return int(_run(self._job))
        tasks.put((self, found, done))
        try:
            while not done.acquire(timeout=0.1):  # the system may give Ctrl-C to a thread that waits for nothing, which wakes no other
                pass
        except BaseException:
            _library.job_cancel(self._job)
            if not found:
                done.acquire()
            raise
        return found[0]

    def report(self) -> tuple[str, str]:
        """Of the last run: its text and its JSON."""
        return _library.job_text(self._job).decode(), _library.job_json(self._job).decode()
