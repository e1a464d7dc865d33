"""Assertions for tests of kernels. What fails has the program's report in its message."""

from __future__ import annotations

import warnings
from typing import Any

from ._reports import Report, check, compare


def _pass(report: Report) -> None:
    __tracebackhide__ = True
    if not report:
        raise AssertionError(str(report))


def assert_close(actual: Any, expected: Any, **criteria: Any) -> None:
    """Raise AssertionError unless `lnorm.compare` finds that all criteria hold.

    Examples
    --------
    >>> assert_close([1.0, 2.0], [1.0, 2.0 + 1e-9])
    """
    __tracebackhide__ = True
    _pass(compare(actual, expected, **criteria))


def _cause(document: dict[str, Any]) -> str:
    """What the first tensor that differs is like, in the words of JUnit's message; empty if nothing is known."""
    for tensor in document.get("tensors", [document]):
        if tensor["verdict"] == "differs" and tensor["explained_by"] is not None:
            best = tensor["explanations"][0]
            options = "; " + " ".join(best["options"]) if best["options"] else ""
            return f"{tensor.get('name', 'y')} differs: {best['words']} ({best['id']}{options})"
    return ""


def assert_layer_norm(
    y: Any, x: Any, weight: Any = None, bias: Any = None, *, strict: bool = False, **options: Any
) -> None:
    """Raise AssertionError unless `lnorm.check` finds that y is layer normalization of x, but for rounding.

    The message begins with the cause, where there is one. A bug that rounding hides is a UserWarning; if strict it is an error.

    Examples
    --------
    >>> import lnorm
    >>> assert_layer_norm(lnorm.layer_norm([[1.0, 2.0, 4.0]]), [[1.0, 2.0, 4.0]])
    """
    __tracebackhide__ = True
    report = check(x, y, weight, bias, **options)
    if not report:
        cause = _cause(report.json)
        raise AssertionError(f"{cause}\n{report}" if cause else str(report))
    for line in str(report).splitlines():
        if line.lstrip().startswith("warning: "):
            if strict:
                raise AssertionError(str(report))
            warnings.warn(line.strip().removeprefix("warning: "), UserWarning, stacklevel=2)
