"""The commands of the program that report, on arrays: their options are keywords, the keys of --json attributes."""

from __future__ import annotations

import dataclasses
import html
import json
import numbers
import tempfile
from collections.abc import Sequence
from typing import Any, Mapping

import numpy

from . import _lnorm
from ._norms import dtype_name

# Options that take a tensor.
_TENSORS = {"weight", "bias", "residual", "mean", "rstd", "variance", "dy", "mask", "baseline"}
# Options that may be given several times.
_REPEATED = {"only", "skip", "rename", "tolerance"}
# What they ask for is in a report, or is no option of a function.
_ELSEWHERE = {
    "help", "version", "quiet", "json", "csv", "save_json", "save_junit", "color", "progress", "verbose", "list", "page", "spec",
    "rows_out", "output", "from",
}  # fmt: skip
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

    def __format__(self, spec: str) -> str:
        return format(self._text, spec)

    def _repr_html_(self) -> str:
        first, *rest = html.escape(self._text, quote=False).split("\n")
        color = "green" if self else "crimson"
        return "\n".join([f'<pre><b style="color: {color}">{first}</b>', *rest]) + "</pre>"


class Comparison(Report):
    """What `compare` found; true if all criteria hold."""


class Verdict(Report):
    """What `check` found; true if rounding explains every element, or the criteria hold where some are given."""


class Mutants(Report):
    """What `mutants` found; true if every wrong kernel that was tried is caught."""


@dataclasses.dataclass(eq=False)
class Case:
    """An input of `inputs`: arrays, why it exists, and which wrong kernels it kills. `dy` may be None."""

    name: str
    x: Any
    weight: Any
    bias: Any
    dy: Any
    purpose: str
    kills: list[str]


class Inputs(Sequence[Case]):
    """What `inputs` makes: a sequence of cases.

    Attributes
    ----------
    alive : list of str
        Ids of wrong kernels that no case kills.
    equivalent : list of str
        Ids of those that are right by their formula.
    """

    def __init__(self, cases: list[Case], alive: list[str], equivalent: list[str], words: list[str]) -> None:
        self._cases = cases
        self.alive = alive
        self.equivalent = equivalent
        self._words = words

    def __len__(self) -> int:
        return len(self._cases)

    def __getitem__(self, index: Any) -> Any:
        return self._cases[index]

    def __repr__(self) -> str:
        return f"<Inputs: {', '.join(case.name for case in self)}>"


def _text_of(value: Any) -> str:
    """A number as it is, in the shortest decimals that read back as the same float64."""
    if isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral):
        return repr(float(value))
    return str(value)


def _words_of(
    command: str, tensors: dict[str, Any], options: Mapping[str, Any]
) -> tuple[list[str], dict[str, Any]]:
    words: list[str] = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        opposite = "--no-" + option[2:]
        if name in _ELSEWHERE or not (_lnorm.has_option(command, option) or _lnorm.has_option(command, opposite)):
            # The program says it, with a hint; what it would take has no meaning here.
            _lnorm.check_option(command, option)
            raise ValueError(f"{name} has no meaning here: a report has all of it")
        if isinstance(value, numpy.bool_):
            value = bool(value)
        if isinstance(value, (numpy.ndarray, range)) and name not in _TENSORS and not name.startswith("actual_"):
            value = value.tolist() if isinstance(value, numpy.ndarray) else tuple(value)
        if value is None:
            continue
        is_tensor = name in _TENSORS or name.startswith("actual_")
        if is_tensor and (isinstance(value, bool) or not isinstance(value, numbers.Real)):
            tensors = {**tensors, name: value}
            words += [option, name + ":{}" if isinstance(value, dict) else name]
        elif isinstance(value, bool):
            is_own = _lnorm.has_option(command, option)
            if value == is_own:
                words.append(option if is_own else opposite)
        elif name in ("dtype", "arithmetic"):
            words += [option, str(dtype_name(value))]
        elif isinstance(value, (list, tuple)) and name in _REPEATED:
            for one in value:
                words += [option, str(one)]
        elif isinstance(value, (list, tuple)):
            words += [option, ",".join(map(_text_of, value))]
        else:
            words += [option, _text_of(value)]
    return words, tensors


def _run(command: str, tensors: dict[str, Any], options: Mapping[str, Any]) -> tuple[int, str, str]:
    words, all_tensors = _words_of(command, tensors, options)
    return _lnorm.run_command([command, *tensors, *words], all_tensors)


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


def check(x: Any, y: Any = None, weight: Any = None, bias: Any = None, **options: Any) -> Verdict:
    """Whether y is what layer normalization of x gives: rounding or a bug, and which bug, as ``lnorm check`` says.

    Parameters
    ----------
    x, y : array, or dict of arrays
        A kernel's input and output. Dicts are checked by their names. Without y, gradients alone are judged: dy, and
        actual_dx, actual_dweight or actual_dbias.
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
    tensors = {"x": x} if y is None else {"x": x, "y": y}
    return Verdict(*_run("check", tensors, {"weight": weight, "bias": bias, **options}))


def mutants(x: Any, weight: Any = None, bias: Any = None, dy: Any = None, **options: Any) -> Mutants:
    """Which wrong kernels the inputs and the tolerance of a test would let through, as ``lnorm mutants`` says.

    Parameters
    ----------
    x : array, dict of arrays, or Inputs
        What the test has. Several are judged together: caught by one is caught. `Inputs` have weight, bias and dy.
    weight, bias : array or float, optional
        What the kernel is given.
    dy : array, optional
        Wrong backward passes are tried as well.
    **options
        The options of ``lnorm mutants``: those of `layer_norm`, kernels, skip_kernels, and the criteria of `compare`.

    Returns
    -------
    Mutants
        Among its attributes: mutants, survivors.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(4, 16)).astype(np.float32)
    >>> mutants(x, kernels="ddof-1,eps-1e-6", rtol=1e-3).survivors
    ['eps-1e-6']
    """
    if isinstance(x, Inputs) and (weight is not None or bias is not None or dy is not None):
        raise ValueError("weight, bias and dy: Inputs have their own")
    if not isinstance(x, Inputs):
        return Mutants(*_run("mutants", {"x": x}, {"weight": weight, "bias": bias, "dy": dy, **options}))
    # The same bytes again, with a manifest that says which goes with which.
    with tempfile.TemporaryDirectory() as folder:
        _lnorm.run_command(["inputs", *x._words, "-o", folder + "/"], {})
        words, tensors = _words_of("mutants", {}, options)
        return Mutants(*_lnorm.run_command(["mutants", folder, *words], tensors))


def inputs(shape: int | Sequence[int], dtype: Any = "float32", *, seed: int = 0, **options: Any) -> Inputs:
    """Inputs for a test that tell wrong kernels from right ones, as ``lnorm inputs`` makes them.

    Parameters
    ----------
    shape : int or sequence of int
        Of every x.
    dtype : dtype or str
        float16, bfloat16, float32 or float64.
    seed : int
        The same seed gives the same bytes on every machine.
    **options
        axes, normalized_shape, groups, channel_axis, affine_axes, eps, eps_on, ddof, rms and zero_centered_weight of
        `layer_norm`.

    Returns
    -------
    Inputs

    Examples
    --------
    >>> cases = inputs((4, 100))
    >>> len(cases), cases[0].name, cases[0].x.shape, cases.alive
    (12, 'ordinary', (4, 100), [])
    >>> bool(mutants(cases, skip_kernels="truncated,away"))
    True
    """
    extents = (shape,) if isinstance(shape, int) else tuple(shape)
    words, _ = _words_of("inputs", {}, {"shape": extents, "dtype": dtype, "seed": seed, **options})
    cases, alive, equivalent = _lnorm.make_inputs(["inputs", *words, "-o", "cases/"])
    return Inputs([Case(*case) for case in cases], alive, equivalent, words)
