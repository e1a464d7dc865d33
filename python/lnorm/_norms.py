"""The norms, forward and backward."""

from __future__ import annotations

from typing import Any

from ._library import Job

__tracebackhide__ = True


def _apply(x: Any, weight: Any, bias: Any, options: dict[str, Any]) -> Job:
    return Job(b"apply", {"input": ("x", x)}, {"weight": weight, "bias": bias, **options})


def layer_norm(x: Any, weight: Any = None, bias: Any = None, *, out: Any = None, **options: Any) -> Any:
    """Layer normalization, each element the exact value rounded once.

    ``y = (x - mean) / sqrt(var + eps) * weight + bias`` of every row, as ``lnorm apply`` computes it.

    Parameters
    ----------
    x : array
        Of any shape; bool, integers, or floats of 8 to 64 bits. It is read where it lies; on a device it is waited for,
        and copied to the host.
    weight, bias : array or float, optional
        In the shape of the normalized axes, or a number; of any of these dtypes.
    out : array, optional
        Where the result goes, with any strides; it may be `x` itself.
    **options
        Those of ``lnorm apply``, with ``_`` for ``-``; None is the default. Among them:

    axes : int or sequence of int
        The normalized axes; the last one by default.
    axis : int
        The first of them: it, and all after it.
    normalized_shape : int or sequence of int
        The trailing shape that is normalized, in place of `axes`.
    groups, channel_axis : int
        Group norm in place of `axes`, as `group_norm` has it.
    affine_axes : int or sequence of int
        The axes that `weight` and `bias` run along; by default the normalized ones. Instance norm: ``axes=(2, 3),
        affine_axes=1``; batch norm in training: ``axes=(0, 2, 3), affine_axes=1``.
    eps : float
        What is added to the variance, or with ``eps_on="std"`` to the standard deviation; with
        ``eps_on="max"`` the standard deviation is at least eps. 1e-5 by default.
    ddof : int
        The variance is divided by ``n - ddof``; ``unbiased=True`` is ``ddof=1``.
    rms : bool
        No mean is subtracted, and the mean of squares takes the place of the variance.
    zero_centered_weight : bool
        Multiplies by ``1 + weight``.
    residual : array
        In the shape of `x`: ``x + residual`` is normalized.
    mean, rstd, variance : array or float
        Statistics that are given, not computed: `mean`, and `rstd` or `variance`; one number a row, or one for all. Batch
        norm in evaluation: ``axes=(0, 2, 3), affine_axes=1, mean=running_mean, variance=running_var``.
    round : str or sequence of {"sum", "xhat", "product"}
        Where else to round to the output's dtype: the sum with the residual, before the weight, before the bias.
    dtype : dtype or str
        Of the result; by default that of `x`, or float64 where that is no float.
    threads : int
        As many as the machine has, if it is 0.

    Returns
    -------
    array
        `out`, or a NumPy array in the shape of `x`; without NumPy a memoryview.

    Raises
    ------
    ValueError
        Shapes or options do not fit together.
    TypeError
        Something is no array, has a dtype that is not read, or there is no such option.

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
    job = _apply(x, weight, bias, options)
    y = job.result("y", out)
    job.run()
    return y


def layer_norm_with_stats(
    x: Any, weight: Any = None, bias: Any = None, *, out: Any = None, **options: Any
) -> tuple[Any, Any, Any]:
    """Layer normalization, and the statistics of every row.

    The parameters are those of `layer_norm`.

    Returns
    -------
    y : array
        What `layer_norm` gives.
    mean, rstd : array of float64
        In the shape of `x` with 1 in place of the normalized axes; of groups in the shape (N, groups). `mean` is None with
        `rms`, which subtracts none.

    Examples
    --------
    >>> y, mean, rstd = layer_norm_with_stats([[1.0, 2.0, 3.0], [0.0, 0.0, 6.0]], eps=0)
    >>> mean
    array([[2.],
           [2.]])
    >>> rstd.shape
    (2, 1)
    """
    given = [name for name in ("mean", "rstd", "variance") if options.get(name) is not None]
    if given:
        raise TypeError(f"{given[0]}: is given, where layer_norm_with_stats computes the statistics")
    job = _apply(x, weight, bias, options)
    results = job.result("y", out), job.result("mean"), job.result("rstd")
    job.run()
    return results


def quantize(
    x: Any, weight: Any = None, bias: Any = None, *, quantize: str = "row", dtype: Any = "int8", out: Any = None, **options: Any
) -> tuple[Any, Any]:
    """A norm whose result is divided by a scale and rounded to 8 bits, as inference kernels fuse it: each scale and each
    element is rounded once.

    The other parameters are those of `layer_norm`; ``rms=True`` is RMS norm.

    Parameters
    ----------
    quantize : {"row", "tensor", "group:K", "static"}
        Whose largest ``|y|`` makes a scale: that of a row (a token), of the tensor, of K successive elements; "static": `given_scale`,
        which is returned as it is.
    dtype : {"int8", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz"}
        Of the result.
    **options
        Also `qmax`, `amax_min`, `amax_max`, `scale_min`, `scale_max` (numbers, or quotients as ``"1/229376"``),
        `scale_power_of_two`, `scale_dtype`, `quantize_axes` (of all that share a scale), and
        ``round="y"`` where y is rounded to the dtype of `x` first.

    Returns
    -------
    q : array
        ``y / scale``, rounded and saturating.
    scale : array of float32
        One for each row, or group of it, in the place of the normalized axes; of a tensor in the shape (1,).

    Examples
    --------
    >>> q, scale = quantize([[1.0, 2.0, 3.0, 6.0]], rms=True)
    >>> q
    array([[ 21,  42,  64, 127]], dtype=int8)
    >>> scale
    array([[0.01336264]], dtype=float32)
    """
    job = _apply(x, weight, bias, {"quantize": quantize, "dtype": dtype, **options})
    results = job.result("y", out), options.get("given_scale") if quantize == "static" else job.result("scale")
    job.run()
    return results


def rms_norm(x: Any, weight: Any = None, bias: Any = None, **options: Any) -> Any:
    """RMS normalization: `layer_norm` with ``rms=True``, and its other options.

    Examples
    --------
    >>> rms_norm([[3.0, 4.0]], eps=0, dtype="float32")
    array([[0.84852815, 1.1313709 ]], dtype=float32)
    """
    if "rms" in options:
        raise TypeError("rms: is given, where rms_norm sets it")
    return layer_norm(x, weight, bias, rms=True, **options)


def group_norm(x: Any, groups: int, weight: Any = None, bias: Any = None, **options: Any) -> Any:
    """Group normalization, as ``torch.nn.functional.group_norm``: `layer_norm` of every group of channels.

    Parameters
    ----------
    x : array
        Of shape (N, C, ...).
    groups : int
        How many groups the channels are split into; it divides C.
    weight, bias : array or float, optional
        In the shape (C), or a number.
    channel_axis : int
        Where the channels are: 1 by default; -1 is Flax's layout.

    The others are those of `layer_norm`.

    Examples
    --------
    >>> group_norm([[[0.0], [2.0], [5.0], [7.0]]], 2, weight=[1, 1, 10, 10], eps=0)
    array([[[ -1.],
            [  1.],
            [-10.],
            [ 10.]]])
    """
    if groups is None:
        raise TypeError("groups: expected an integer, found None")
    return layer_norm(x, weight, bias, groups=groups, **options)


def softmax(x: Any, axes: Any = None, *, out: Any = None, **options: Any) -> Any:
    """Softmax over one axis, the last by default, or several: each element is the exact value rounded once.

    The options are those of ``lnorm softmax``: `axis`, `dtype`, `threads` and others.

    Examples
    --------
    >>> softmax([0.0, 0.0])
    array([0.5, 0.5])
    """
    job = Job(b"softmax", {"input": ("x", x)}, {"axes": axes, **options})
    y = job.result("y", out)
    job.run()
    return y


def layer_norm_backward(
    dy: Any, x: Any, weight: Any = None, *, out: tuple[Any, Any, Any] = (None, None, None), **options: Any
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
        found_out = f"a tuple of {len(out)}" if isinstance(out, tuple) else type(out).__name__
        raise TypeError(f"out: expected a tuple of three arrays or None, found {found_out}")
    job = Job(b"grad", {"input": ("x", x), "dy": ("dy", dy)}, {"weight": weight, **options})
    found = {}
    # What is given says the dtype of what is not.
    for number in sorted(range(3), key=lambda number: out[number] is None):
        found[number] = job.result(("dx", "dweight", "dbias")[number], out[number], f"out[{number}]")
    job.run()
    return found[0], found[1], found[2]
