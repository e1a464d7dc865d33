"""The commands of the program that report, on arrays: their options are keywords, the keys of --json attributes."""

from __future__ import annotations

import html
import json
import numbers
from typing import Any, Mapping

from . import _lnorm
from ._norms import dtype_name

# Options that take a tensor.
_TENSORS = {"weight", "bias", "residual", "mean", "rstd", "variance", "dy", "mask", "baseline"}
_NUMBERS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


def _numbers(value: Any) -> Any:
    """What stands for a number that is not finite, as that number."""
    if isinstance(value, str):
        return _NUMBERS.get(value, value)
    if isinstance(value, list):
        return [_numbers(one) for one in value]
    if isinstance(value, dict):
        return {key: _numbers(one) for key, one in value.items()}
    return value


class Report:
    """What a command found. The keys of its JSON are attributes, str() is its text.

    Attributes
    ----------
    json : dict
        All that the command's ``--json`` has.
    exit_status : int
        That of the command: 0, or 1 if it found a difference.
    """

    def __init__(self, exit_status: int, text: str, document: str) -> None:
        self.exit_status = exit_status
        self.json: dict[str, Any] = _numbers(json.loads(document))
        self._text = text.rstrip("\n")

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["json"][name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}") from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.json]

    def __bool__(self) -> bool:
        return self.exit_status == 0

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._text.splitlines()[0]}>"

    def _repr_html_(self) -> str:
        first, *rest = html.escape(self._text, quote=False).split("\n")
        color = "green" if self else "crimson"
        return "\n".join([f'<pre><b style="color: {color}">{first}</b>', *rest]) + "</pre>"


class Comparison(Report):
    """What `compare` found; true if all criteria hold."""


class Verdict(Report):
    """What `check` found; true if rounding explains every element, or the criteria hold where some are given."""


def _run(command: str, tensors: dict[str, Any], options: Mapping[str, Any]) -> tuple[int, str, str]:
    words = [command, *tensors]
    for name, value in options.items():
        if value is None or value is False:
            continue
        option = "--" + name.replace("_", "-")
        is_tensor = name in _TENSORS or name.startswith("actual_")
        if is_tensor and not isinstance(value, numbers.Real):
            tensors = {**tensors, name: value}
            words += [option, name + ":{}" if isinstance(value, dict) else name]
        elif value is True:
            words.append(option)
        elif name in ("dtype", "arithmetic"):
            words += [option, str(dtype_name(value))]
        elif isinstance(value, (list, tuple)):
            words += [option, ",".join(map(str, value))]
        else:
            words += [option, str(value)]
    return _lnorm.run_command(words, tensors)


def compare(actual: Any, expected: Any, **criteria: Any) -> Comparison:
    """Two arrays, element by element, as ``lnorm compare`` holds them against each other.

    Parameters
    ----------
    actual, expected : array, or dict of arrays
        Of the same shape. Dicts are compared by their names.
    **criteria
        The options of ``lnorm compare``: rtol, atol, max_ulp, max_abs, max_rmse, max_mean_abs, min_cosine, min_sqnr,
        max_mismatched, axes, worst, by and others; the tolerance of torch.testing if none is given.

    Returns
    -------
    Comparison

    Raises
    ------
    ValueError
        The program cannot do it, in its words.

    Examples
    --------
    >>> found = compare([1.0, 2.0], [1.0, 2.5], max_abs=0.1)
    >>> bool(found), found.mismatched
    (False, 1)
    >>> print(str(found).splitlines()[1])
    mismatched: 1 / 2 (50%), tolerance abs 0.1
    """
    return Comparison(*_run("compare", {"actual": actual, "expected": expected}, criteria))


def check(x: Any, y: Any, weight: Any = None, bias: Any = None, **options: Any) -> Verdict:
    """Whether y is what layer normalization of x gives: rounding or a bug, and which bug, as ``lnorm check`` says.

    Parameters
    ----------
    x, y : array, or dict of arrays
        A kernel's input and output. Dicts are checked by their names.
    weight, bias : array or float, optional
        What the kernel was given.
    **options
        The options of ``lnorm check``: those of `layer_norm`, arithmetic, depth, kernels, skip_kernels, and the
        criteria of `compare`.

    Returns
    -------
    Verdict
        Among its attributes: verdict, worst_ratio, explained_by, explanations, where.

    Examples
    --------
    >>> import numpy as np, lnorm
    >>> x = np.random.default_rng(0).normal(size=(16, 64)).astype(np.float32)
    >>> check(x, lnorm.layer_norm(x)).verdict
    'correctly rounded'
    >>> wrong = check(x, (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True, ddof=1) + 1e-5))
    >>> wrong.verdict, wrong.explained_by
    ('differs', 'eps-on-std+ddof-1')
    """
    tensors = {"x": x, "y": y}
    return Verdict(*_run("check", tensors, {"weight": weight, "bias": bias, **options}))
