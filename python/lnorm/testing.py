"""Assertions for tests of kernels. What fails has the program's report in its message."""

from __future__ import annotations

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


def assert_layer_norm(y: Any, x: Any, weight: Any = None, bias: Any = None, **options: Any) -> None:
    """Raise AssertionError unless `lnorm.check` finds that y is layer normalization of x, but for rounding.

    Examples
    --------
    >>> import lnorm
    >>> assert_layer_norm(lnorm.layer_norm([[1.0, 2.0, 4.0]]), [[1.0, 2.0, 4.0]])
    """
    __tracebackhide__ = True
    _pass(check(x, y, weight, bias, **options))
