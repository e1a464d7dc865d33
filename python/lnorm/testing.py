"""Assertions for tests of kernels. What fails has the program's report in its message."""

from __future__ import annotations

import warnings
from typing import Any

from . import _library
from ._reports import check, compare

__tracebackhide__ = True  # pytest shows the line of the test


def assert_close(actual: Any, expected: Any, **criteria: Any) -> None:
    """Raise AssertionError unless `lnorm.compare` finds that all criteria hold.

    Examples
    --------
    >>> assert_close([1.0, 2.0], [1.0, 2.0 + 1e-9])
    """
    try:
        report = compare(actual, expected, **criteria)
    except ValueError as error:
        raise _difference(error) from None
    if not report:
        raise AssertionError(str(report))


def _difference(error: ValueError) -> Exception:
    """An error of what is judged, such as its shape, as a failure of the test."""
    role = getattr(error, "role_at_fault", "")
    return AssertionError(str(error)) if role in ("output", "actual", "expected") or role.startswith("actual") else error


def _cause(document: dict[str, Any]) -> str:
    """What the first tensor that differs is like, in the words of JUnit's message; empty if nothing is known."""
    for tensor in document.get("tensors", [document]):
        cause = tensor.get("cause")
        if cause is not None:
            options = "; " + " ".join(cause["options"]) if cause["options"] else ""
            return f"{tensor.get('name', 'y')} differs: {cause['words']} ({'+'.join(cause['ids'])}{options})"
    return ""


def _wrong_dtypes(document: dict[str, Any], expected: str) -> list[str]:
    outputs = [tensor["output"] for tensor in document.get("tensors", [document]) if tensor.get("output")]
    return [f"{one['name']} is {one['dtype']}, expected {expected}" for one in outputs
            if one["name"].partition(":")[0] == "y" and one["dtype"] != expected]  # fmt: skip


def assert_layer_norm(
    y: Any, x: Any, weight: Any = None, bias: Any = None, *, strict: bool = False, **options: Any
) -> None:
    """Raise AssertionError unless `lnorm.check` finds that y is layer normalization of x, but for rounding.

    The first line of the message is the verdict and its cause, where there is one. Of a backward pass alone, with `dy` and
    `actual_dx`, `actual_dweight` or `actual_dbias`, y is None. With `dtype` y must be of it. Criteria
    such as `rtol` decide where they are given. A bug that rounding hides, or that they let pass, is a UserWarning; if strict it is an
    error.

    Examples
    --------
    >>> import lnorm
    >>> assert_layer_norm(lnorm.layer_norm([[1.0, 2.0, 4.0]]), [[1.0, 2.0, 4.0]])
    """
    if y is None and not {"actual_dx", "actual_dweight", "actual_dbias"} & options.keys():
        raise TypeError("y is None, expected a tensor: does the kernel return what it computes?")
    dtype = options.get("dtype")
    if not _library.option_kind(b"check", "dtype"):
        options.pop("dtype", None)
    try:
        report = check(x, y, weight, bias, **options)
    except ValueError as error:
        raise _difference(error) from None
    tensors = report.json.get("tensors", [report.json])
    if report.exit_status == 2 and tensors and all(0 in tensor.get("input", {"shape": ()})["shape"] for tensor in tensors):
        return  # nothing is wrong where there is nothing
    lines = _wrong_dtypes(report.json, _library.full_dtype(dtype)) if dtype is not None else []
    if not report and _cause(report.json):
        lines.append(_cause(report.json))
    if lines or not report:
        raise AssertionError("\n".join([*lines, str(report)]))
    lines = [line.strip() for line in str(report).splitlines()]
    doubts = [line[len("warning: ") :] for line in lines if line.startswith("warning: ")]
    if any(tensor.get("verdict") == "differs" for tensor in tensors):
        doubts.append(f"the criteria hold, but {_cause(report.json) or 'y is beyond rounding'}")
    for doubt in doubts:
        if strict:
            raise AssertionError("\n".join([doubt, str(report)]))
        warnings.warn(doubt, UserWarning, stacklevel=2)
