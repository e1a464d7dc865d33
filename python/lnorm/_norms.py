"""The norms, forward and backward."""

from __future__ import annotations

import numbers
import operator
from typing import Any, Sequence, Union

import numpy

from . import _lnorm

Axes = Union[int, Sequence[int], None]


def dtype_name(dtype: Any) -> str | None:
    """The name of a dtype of NumPy, PyTorch, JAX or ml_dtypes, or of one that is named."""
    if dtype is None or isinstance(dtype, str):
        return dtype
    name = str(dtype)
    return name[6:] if name.startswith("torch.") else numpy.dtype(dtype).name


def integer(name: str, value: Any) -> int:
    """An int of Python or NumPy that the library can hold."""
    try:
        found = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: expected an integer, found {value!r}") from None
    if not -(2**63) <= found < 2**63:
        raise ValueError(f"{name}: {found} is out of range")
    return found


def _integers(name: str, value: Any) -> int | tuple[int, ...] | None:
    if value is None:
        return None
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        return integer(name, value)
    return integer(name, value) if getattr(value, "ndim", 1) == 0 else tuple(integer(name, one) for one in value)


def _number(name: str, value: Any) -> float:
    if isinstance(value, numbers.Real):
        try:
            return float(value)
        except OverflowError:
            raise ValueError(f"{name}: is beyond the range of float64") from None
    raise TypeError(f"{name}: expected a number, found {value!r}")


def _flag(name: str, value: Any) -> bool:
    if isinstance(value, (bool, numpy.bool_)):
        return bool(value)
    raise TypeError(f"{name}: expected True or False, found {value!r}")


def _steps(round: Any) -> tuple[str, ...]:
    steps = tuple(round.split(",")) if isinstance(round, str) else round
    if isinstance(steps, (tuple, list)) and all(isinstance(step, str) for step in steps):
        return tuple(steps)
    raise TypeError(f"round: expected names of steps, found {round!r}")


def _given(
    axes: Any, normalized_shape: Any, groups: Any, channel_axis: Any, affine_axes: Any, eps: Any, eps_on: Any, ddof: Any,
    rms: Any, zero_centered_weight: Any, round: Any, dtype: Any, threads: Any,
) -> _lnorm.Given:  # fmt: skip
    if not isinstance(eps_on, str):
        raise TypeError(f"eps_on: expected 'variance' or 'std', found {eps_on!r}")
    return _lnorm.Given(
        _integers("axes", axes),
        _integers("normalized_shape", normalized_shape),
        None if groups is None else integer("groups", groups),
        integer("channel_axis", channel_axis),
        _integers("affine_axes", affine_axes),
        _number("eps", eps),
        eps_on,
        integer("ddof", ddof),
        _flag("rms", rms),
        _flag("zero_centered_weight", zero_centered_weight),
        _steps(round),
        dtype_name(dtype),
        threads_of(threads),
    )


def threads_of(threads: Any) -> int:
    found = integer("threads", threads)
    if 0 <= found < 2**31:
        return found
    raise ValueError(f"threads: {found} is not 0 or more")


def layer_norm(
    x: Any,
    weight: Any = None,
    bias: Any = None,
    *,
    axes: Axes = None,
    normalized_shape: Axes = None,
    groups: int | None = None,
    channel_axis: int = 1,
    affine_axes: Axes = None,
    eps: float = 1e-5,
    eps_on: str = "variance",
    ddof: int = 0,
    rms: bool = False,
    zero_centered_weight: bool = False,
    residual: Any = None,
    mean: Any = None,
    rstd: Any = None,
    variance: Any = None,
    round: str | Sequence[str] = (),
    dtype: Any = None,
    out: Any = None,
    threads: int = 0,
) -> Any:
    """Layer normalization, each element the exact value rounded once.

    ``y = (x - mean) / sqrt(var + eps) * weight + bias`` of every row, as ``lnorm apply`` computes it.

    Parameters
    ----------
    x : array
        Of any shape; bool, integers, or floats of 8 to 64 bits. It is read where it lies.
    weight, bias : array, optional
        In the shape of the normalized axes, or a number; of any of these dtypes.
    axes : int or sequence of int, optional
        The normalized axes; the last one by default.
    normalized_shape : int or sequence of int, optional
        The trailing shape that is normalized, in place of `axes`.
    groups, channel_axis : int, optional
        Group norm in place of `axes`, as `group_norm` has it.
    affine_axes : int or sequence of int, optional
        The axes that `weight` and `bias` run along; by default the normalized ones. Instance norm: ``axes=(2, 3),
        affine_axes=1``; batch norm in training: ``axes=(0, 2, 3), affine_axes=1``.
    eps : float
        What is added to the variance, or with ``eps_on="std"`` to the standard deviation.
    eps_on : {"variance", "std"}
        Where `eps` is added.
    ddof : int
        The variance is divided by ``n - ddof``.
    rms : bool
        No mean is subtracted, and the mean of squares takes the place of the variance.
    zero_centered_weight : bool
        Multiplies by ``1 + weight``.
    residual : array, optional
        In the shape of `x`: ``x + residual`` is normalized.
    mean, rstd, variance : array or float, optional
        Statistics that are given, not computed: `mean`, and `rstd` or `variance`; one number a row, or one for all. Batch
        norm in evaluation: ``axes=(0, 2, 3), affine_axes=1, mean=running_mean, variance=running_var``.
    round : sequence of {"sum", "xhat", "product"}
        Where else to round to the output's dtype: the sum with the residual, before the weight, before the bias.
    dtype : dtype or str, optional
        Of the result; by default that of `x`, or float64 where that is no float.
    out : array, optional
        Where the result goes, with any strides; it may be `x` itself.
    threads : int
        As many as the machine has, if it is 0.

    Returns
    -------
    array
        `out`, or a NumPy array in the shape of `x`.

    Raises
    ------
    ValueError
        Shapes or options do not fit together.
    TypeError
        Something is no array, is on another device, or has a dtype that is not read.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([[1.0, 2.0, 3.0, 6.0]], dtype=np.float32)
    >>> layer_norm(x, weight=[1, 1, 2, 2], bias=0.5)
    array([[-0.56904346, -0.03452172,  0.5       ,  3.7071304 ]],
          dtype=float32)
    >>> layer_norm(x, weight=[1, 2])
    Traceback (most recent call last):
    ...
    ValueError: weight has shape (2), but the normalized shape is (4)
    """
    given = _given(
        axes, normalized_shape, groups, channel_axis, affine_axes, eps, eps_on, ddof, rms, zero_centered_weight, round,
        dtype, threads,
    )  # fmt: skip
    return _lnorm.layer_norm(x, weight, bias, residual, mean, rstd, variance, out, False, given)


def layer_norm_with_stats(
    x: Any,
    weight: Any = None,
    bias: Any = None,
    *,
    axes: Axes = None,
    normalized_shape: Axes = None,
    groups: int | None = None,
    channel_axis: int = 1,
    affine_axes: Axes = None,
    eps: float = 1e-5,
    eps_on: str = "variance",
    ddof: int = 0,
    rms: bool = False,
    zero_centered_weight: bool = False,
    residual: Any = None,
    round: str | Sequence[str] = (),
    dtype: Any = None,
    out: Any = None,
    threads: int = 0,
) -> tuple[Any, Any, Any]:
    """Layer normalization, and the statistics of every row.

    The parameters are those of `layer_norm`.

    Returns
    -------
    y : array
        What `layer_norm` gives.
    mean, rstd : array of float64
        In the shape of `x` with 1 in place of the normalized axes; of groups in the shape (N, groups). `mean` is None with `rms`, which subtracts none.

    Examples
    --------
    >>> y, mean, rstd = layer_norm_with_stats([[1.0, 2.0, 3.0], [0.0, 0.0, 6.0]], eps=0)
    >>> mean
    array([[2.],
           [2.]])
    >>> rstd.shape
    (2, 1)
    """
    given = _given(
        axes, normalized_shape, groups, channel_axis, affine_axes, eps, eps_on, ddof, rms, zero_centered_weight, round,
        dtype, threads,
    )  # fmt: skip
    y, mean, rstd = _lnorm.layer_norm(x, weight, bias, residual, None, None, None, out, True, given)
    return y, mean, rstd


def rms_norm(x: Any, weight: Any = None, bias: Any = None, **options: Any) -> Any:
    """RMS normalization: `layer_norm` with ``rms=True``, and its other options.

    Examples
    --------
    >>> rms_norm([[3.0, 4.0]], eps=0, dtype="float32")
    array([[0.84852815, 1.1313709 ]], dtype=float32)
    """
    return layer_norm(x, weight, bias, rms=True, **options)


def group_norm(
    x: Any, groups: int, weight: Any = None, bias: Any = None, *, channel_axis: int = 1, **options: Any
) -> Any:
    """Group normalization, as ``torch.nn.functional.group_norm``: `layer_norm` of every group of channels.

    Parameters
    ----------
    x : array
        Of shape (N, C, ...).
    groups : int
        How many groups the channels are split into; it divides C.
    weight, bias : array, optional
        In the shape (C), or a number.
    channel_axis : int
        Where the channels are; -1 is Flax's layout.

    The others are those of `layer_norm`.

    Examples
    --------
    >>> group_norm([[[0.0], [2.0], [5.0], [7.0]]], 2, weight=[1, 1, 10, 10], eps=0)
    array([[[ -1.],
            [  1.],
            [-10.],
            [ 10.]]])
    """
    return layer_norm(x, weight, bias, groups=integer("groups", groups), channel_axis=channel_axis, **options)


def softmax(
    x: Any, axes: int | Sequence[int] = -1, *, dtype: Any = None, out: Any = None, threads: int = 0
) -> Any:
    """Softmax over one axis or several, each element the exact value rounded once.

    `dtype`, `out` and `threads` are those of `layer_norm`.

    Examples
    --------
    >>> softmax([0.0, 0.0])
    array([0.5, 0.5])
    """
    over = _integers("axes", axes)
    if over is None:
        raise TypeError("axes: expected an integer or several, found None")
    return _lnorm.softmax(x, over, dtype_name(dtype), out, threads_of(threads))


def layer_norm_backward(
    dy: Any,
    x: Any,
    weight: Any = None,
    *,
    mean: Any = None,
    rstd: Any = None,
    variance: Any = None,
    axes: Axes = None,
    normalized_shape: Axes = None,
    groups: int | None = None,
    channel_axis: int = 1,
    affine_axes: Axes = None,
    eps: float = 1e-5,
    eps_on: str = "variance",
    ddof: int = 0,
    rms: bool = False,
    zero_centered_weight: bool = False,
    residual: Any = None,
    round: str | Sequence[str] = (),
    dtype: Any = None,
    out: tuple[Any, Any, Any] = (None, None, None),
    threads: int = 0,
) -> tuple[Any, Any, Any]:
    """The backward pass: the gradients of ``sum(dy * y)`` by x, weight and bias, as ``lnorm grad`` computes them.

    Parameters
    ----------
    dy : array
        In the shape of `x`.
    mean, rstd : array or float, optional
        What a forward pass has saved, one number a row or one for all, in place of what is computed.
    variance : array or float, optional
        In place of `rstd`: `mean` and `variance` are constants, as in batch norm in evaluation, so that dx is g / s.
    dtype : dtype or str, optional
        Of all gradients; by default that of `x`, and for the last two that of `weight`.
    out : tuple, optional
        Where dx, dweight and dbias go: three arrays, or None in place of any, which makes a new one. Without `dtype` the
        arrays say the dtypes; dweight and dbias are of one. dx may go to `x` or `dy` itself.

    The others are those of `layer_norm`.

    Returns
    -------
    dx, dweight, dbias : array
        In the shapes of `x` and of the weight; without one, of the normalized axes, of `affine_axes` or of the channels.

    Examples
    --------
    >>> dx, dweight, dbias = layer_norm_backward([[1.0, 0.0, 2.0]], [[1.0, 2.0, 3.0]])
    >>> dbias
    array([1., 0., 2.])
    """
    if not isinstance(out, tuple) or len(out) != 3:
        raise TypeError(f"out: expected a tuple of three arrays or None, found {type(out).__name__}")
    given = _given(
        axes, normalized_shape, groups, channel_axis, affine_axes, eps, eps_on, ddof, rms, zero_centered_weight, round,
        dtype, threads,
    )  # fmt: skip
    dx, dweight, dbias = _lnorm.layer_norm_backward(dy, x, weight, residual, mean, rstd, variance, out, given)
    return dx, dweight, dbias
