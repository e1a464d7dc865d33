"""The commands of the program that report, on arrays: their options are keywords, the keys of --json attributes."""

from __future__ import annotations

import dataclasses
import functools
import html
import json
import operator
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

from . import _library
from ._library import Job
from ._tensors import is_masked

__tracebackhide__ = True

_NUMBERS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


def _numbers(value: Any, key: str = "") -> Any:
    """What stands for a number that is not finite, as that number."""
    if isinstance(value, str):
        return value if key == "name" else _NUMBERS.get(value, value)
    if isinstance(value, list):
        return [_numbers(one, key) for one in value]
    if isinstance(value, dict):
        return {key: _numbers(one, key) for key, one in value.items()}
    return value


class Report:
    """What a command found. The keys of its JSON are attributes, str() is its text.

    Attributes
    ----------
    json : dict
        All that the command's ``--json`` has; to_dict() gives it as well.
    exit_status : int
        That of the command: 0; 1 if it found a difference; 2 if nothing could be judged.
    """

    def __init__(self, exit_status: int, text: str, document: str) -> None:
        self.exit_status = exit_status
        self.json: dict[str, Any] = _numbers(json.loads(document))
        self._text = text.rstrip("\n")

    def to_dict(self) -> dict[str, Any]:
        return self.json

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

    def _headline(self) -> str:
        """The first line; of several results the first that does not hold, where one does not."""
        lines = self._text.split("\n")
        failing = [line for line in lines if ": differs" in line or line.endswith(" differ")]
        return failing[0] if failing and not self else lines[0]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._headline()}>"

    def __format__(self, spec: str) -> str:
        return format(self._text, spec)

    def _repr_html_(self) -> str:
        text, headline = (html.escape(one, quote=False) for one in (self._text, self._headline()))
        bold = f'<b style="color: {"green" if self else "crimson"}">{headline}</b>'
        return f"<pre>{text.replace(headline, bold, 1)}</pre>"


class Comparison(Report):
    """What `compare` found; true if all criteria hold."""


class Verdict(Report):
    """What `check` found; true if rounding explains every element, or the criteria hold where some are given.

    Its exit_status is 2 if elements could not be judged.
    """


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
    json : dict
        The manifest that ``lnorm inputs`` writes; to_dict() gives it as well.
    """

    def __init__(self, cases: list[Case], manifest: dict[str, Any], options: dict[str, Any]) -> None:
        self._cases = cases
        self._options = options
        self.json = manifest
        self.alive: list[str] = manifest.get("alive", [])
        self.equivalent: list[str] = manifest.get("equivalent", [])

    def to_dict(self) -> dict[str, Any]:
        return self.json

    def __len__(self) -> int:
        return len(self._cases)

    def __getitem__(self, index: Any) -> Any:
        return self._cases[index]

    def __repr__(self) -> str:
        return f"<Inputs: {', '.join(case.name for case in self)}>"


def _unmasked(values: list[Any]) -> tuple[list[Any], Any]:
    """Masked arrays as their data, and which elements are masked in none of them; None where no array is masked."""
    if any(isinstance(value, dict) for value in values):
        sets = [dict(value) if isinstance(value, dict) else value for value in values]
        masks = {}
        for name in dict.fromkeys(name for one in sets if isinstance(one, dict) for name in one):
            holders = [one for one in sets if isinstance(one, dict) and name in one]
            found, mask = _unmasked([one[name] for one in holders])
            for one, value in zip(holders, found):
                one[name] = value
            masks[name] = mask
        if all(mask is None for mask in masks.values()):
            return values, None
        return sets, {name: True if mask is None else mask for name, mask in masks.items()}
    masked = [value for value in values if is_masked(value)]
    if not masked:
        return values, None
    ma = sys.modules["numpy.ma"]
    flags = [ma.getmaskarray(value) for value in masked]
    is_out = functools.reduce(operator.or_, (one for one in flags if one.shape == flags[0].shape))
    return [ma.getdata(value) if is_masked(value) else value for value in values], ~is_out


def _run(command: bytes, tensors: dict[str, tuple[str, Any]], options: dict[str, Any], is_long: bool = False) -> tuple[int, str, str]:
    values, mask = [value for _, value in tensors.values()], None
    if _library.option_kind(command, "mask") == _library.TENSOR:
        values, mask = _unmasked(values)
    if mask is not None and options.get("mask") is not None:
        raise TypeError("mask: found beside a masked array, which has its own, expected one of them")
    named = {role: (name, value) for (role, (name, _)), value in zip(tensors.items(), values)}
    job = Job(command, named, options if mask is None else {"mask": mask, **options}, is_long)
    return (job.run(), *job.report())


def compare(actual: Any, expected: Any, **criteria: Any) -> Comparison:
    """Two arrays, element by element, as ``lnorm compare`` compares them.

    Parameters
    ----------
    actual, expected : array, or dict of arrays
        Of the same shape. Dicts are compared by their names: a name on one side alone is a difference. What is masked in a
        masked array is not compared.
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
    TypeError
        Something is no array, or there is no such option.

    Examples
    --------
    >>> found = compare([1.0, 2.0], [1.0, 2.5], max_abs=0.1)
    >>> bool(found), found.mismatched
    (False, 1)
    >>> print(str(found).splitlines()[1])
    mismatched: 1 / 2 (50%), tolerance abs 0.1
    """
    return Comparison(*_run(b"compare", {"actual": ("actual", actual), "expected": ("expected", expected)}, criteria))


def check(x: Any, y: Any = None, weight: Any = None, bias: Any = None, **options: Any) -> Verdict:
    """Whether y is what layer normalization of x gives: rounding or a bug, and which bug, as ``lnorm check`` says.

    Parameters
    ----------
    x, y : array, or dict of arrays
        A kernel's input and output. Dicts are checked by their names. Without y, gradients alone are judged: dy, and
        actual_dx, actual_dweight or actual_dbias. What is masked in a masked array is not judged.
    weight, bias : array or float, optional
        What the kernel was given.
    **options
        The options of ``lnorm check``: those of `layer_norm`, arithmetic, depth, kernels, skip_kernels, mask, and the
        criteria of `compare`.

    Returns
    -------
    Verdict
        Among its attributes: verdict, worst_ratio, cause, most_like, warning, where.

    Examples
    --------
    >>> import numpy as np, lnorm
    >>> x = np.random.default_rng(0).normal(size=(16, 64)).astype(np.float32)
    >>> check(x, lnorm.layer_norm(x)).verdict
    'correctly rounded'
    >>> wrong = check(x, (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True, ddof=1) + 1e-5))
    >>> wrong.verdict, wrong.cause["ids"]
    ('differs', ['eps-on-std', 'ddof-1'])
    """
    if y is not None and isinstance(x, dict) != isinstance(y, dict):
        raise TypeError("y: expected a dict of tensors where x is one, and a tensor where x is one")
    only: dict[str, list[str]] = {}
    if isinstance(x, dict) and isinstance(y, dict) and x.keys() != y.keys():
        both = [name for name in x if name in y]
        only = {"only_in_x": [name for name in x if name not in y], "only_in_y": [name for name in y if name not in x]}
        x, y = ({name: one[name] for name in both} for one in (x, y))
    tensors = {"input": ("x", x), **({} if y is None else {"output": ("y", y)})}
    status, text, document = 1, "x and y have no name in common", '{"tensors": []}'
    if not only or x:
        status, text, document = _run(b"check", tensors, {"weight": weight, "bias": bias, **options}, True)
    lines = [f"{key.replace('_', ' ')}: {', '.join(names)}" for key, names in only.items() if names]
    verdict = Verdict(1 if only else status, "\n".join([*lines, text]), document)
    verdict.json.update(only)
    return verdict


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
        The options of ``lnorm mutants``: those of `layer_norm` and `quantize`, kernels, skip_kernels, and the criteria of `compare`.

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
    given = {"weight": weight, "bias": bias, "dy": dy}
    if not isinstance(x, Inputs):
        return Mutants(*_run(b"mutants", {"input": ("x", x)}, {**given, **options}, True))
    if any(value is not None for value in given.values()):
        raise ValueError("weight, bias and dy: Inputs have their own")
    # The same bytes again, with a manifest that says which goes with which.
    with tempfile.TemporaryDirectory() as folder:
        Job(b"inputs", {}, {**x._options, "output": folder + "/"}, True).run()
        return Mutants(*_run(b"mutants", {}, {"input": folder, **options}, True))


def inputs(shape: Any, dtype: Any = "float32", **options: Any) -> Inputs:
    """Inputs for a test that tell wrong kernels from right ones, as ``lnorm inputs`` makes them.

    Parameters
    ----------
    shape : int or sequence of int
        Of every x.
    dtype : dtype or str
        float16, bfloat16, float32 or float64. What NumPy lacks are arrays of ml_dtypes, or else tensors of PyTorch.
    **options
        The options of ``lnorm inputs``: `seed`, which is 0 by default, and axes, normalized_shape, groups, channel_axis,
        affine_axes, eps, eps_on, ddof, rms and zero_centered_weight of `layer_norm`. The same seed gives the same bytes on
        every machine.

    Returns
    -------
    Inputs

    Examples
    --------
    >>> cases = inputs((4, 100))
    >>> len(cases), cases[0].name, cases[0].x.shape, cases.alive
    (12, 'ordinary', (4, 100), [])
    >>> bool(mutants(cases))
    True
    """
    if "output" in options:
        raise TypeError("output has no meaning here: results and reports are in memory")
    options = {"shape": shape, "dtype": dtype, **options}
    job = Job(b"inputs", {}, options, True)
    job.run()
    manifest = json.loads(job.report()[1])
    cases = []
    for entry in manifest["cases"]:
        x, weight, bias, dy = (job.made(entry[role]) if entry.get(role) else None for role in ("x", "weight", "bias", "dy"))
        cases.append(Case(entry["name"], x, weight, bias, dy, entry["for"], entry["kills"]))
    return Inputs(cases, manifest, options)
