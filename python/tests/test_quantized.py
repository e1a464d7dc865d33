"""Quantized norms: `quantize`, and what `check` says of kernels that NumPy emulates in float32."""

import numpy as np
import pytest

import lnorm
from lnorm.testing import assert_layer_norm

f32 = np.float32


def inputs(seed, n=512):
    chance = np.random.default_rng(seed)
    x = (chance.standard_normal((8, n)) + 0.5).astype(f32)
    x[:, chance.integers(n)] *= 4
    return x.astype(np.float16), (1 + 0.3 * chance.standard_normal(n)).astype(f32), (0.2 * chance.standard_normal(n) + 0.3).astype(f32)


def norm(x, weight=None, bias=None):
    x = x.astype(f32)
    d = x - x.mean(1, keepdims=True, dtype=f32)
    y = d * (f32(1) / np.sqrt((d * d).mean(1, keepdims=True, dtype=f32) + f32(1e-5)))
    if weight is not None:
        y = y * weight + bias
    return y


def scales(y, size, qmax=127):
    return (np.abs(y.reshape(len(y), -1, size)).max(2) / f32(qmax)).astype(f32)


def divided(y, scale):
    return (y.reshape(*scale.shape, -1) / scale[..., None]).reshape(y.shape)


def int8(t):
    return np.clip(np.rint(t), -128, 127).astype(np.int8)


def cause_of(report):
    tensors = report.json.get("tensors", [report.json])
    return next(("+".join(tensor["cause"]["ids"]) for tensor in tensors if tensor["cause"]), None)


def test_quantize_gives_q_and_scale():
    x, weight, bias = inputs(0)
    q, scale = lnorm.quantize(x, weight, bias)
    assert q.dtype == np.int8 and scale.shape == (8, 1) and scale.dtype == f32
    assert_layer_norm(q, x, weight, bias, quantize="row", dtype=q.dtype.name, actual_scale=scale)
    exact = lnorm.layer_norm(x, weight, bias, dtype="float64")
    assert np.abs(q * scale.astype(float) - exact).max() <= scale.max() * 0.5000001
    q, scale = lnorm.quantize(x, weight, bias, quantize="group:64", scale_power_of_two=True)
    assert scale.shape == (8, 8) and (np.frexp(scale)[0] == 0.5).all()
    q, scale = lnorm.quantize(x, weight, rms=True, quantize="tensor", amax_max=1.0)
    assert scale.shape == (1,) and scale[0] == f32(1 / 127)
    with pytest.raises(ValueError, match="no whole number of groups"):
        lnorm.quantize(x, quantize="group:100")
    with pytest.raises(ValueError, match="found dtype float16"):
        lnorm.quantize(x, dtype="float16")


@pytest.mark.parametrize("seed", range(4))
def test_right_kernels_in_any_order_of_operations_are_right(seed):
    x, weight, bias = inputs(seed)
    y = norm(x, weight, bias)
    for size, quantize in [(512, "row"), (64, "group:64")]:
        scale = scales(y, size)
        amax = np.abs(y.reshape(8, -1, size)).max(2)
        parts = y.reshape(*scale.shape, -1)
        for t in [divided(y, scale), parts * (f32(1) / scale)[..., None], parts * (f32(127) / amax)[..., None]]:
            q = int8(t).reshape(y.shape)
            assert lnorm.check(x, q, weight, bias, quantize=quantize, actual_scale=scale)
            assert lnorm.check(x, q, weight, bias, quantize=quantize)


@pytest.mark.parametrize(
    "cause",
    ["amax-of-x", "amax-of-xhat", "amax-before-bias", "amax-without-residual", "truncated", "away", "wraps"]
    + ["saturates-at-127", "zeros", "half-away", "amax-without-abs", "zero-point", "scale-reciprocal", "scale-transposed", "rounded-y", "qmax-128"],
)
def test_a_wrong_kernel_is_named(cause):
    for seed in range(3):
        x, weight, bias = inputs(seed)
        if cause == "amax-without-abs":
            x, bias = -x, -bias  # the largest are negative then
        y = without = norm(x, weight, bias)
        options = {}
        if cause == "amax-without-residual":
            options = {"residual": np.roll(x, 5, 1) * np.float16(2)}
            y = norm(x.astype(f32) + options["residual"], weight, bias)
        elif cause == "half-away":
            options = {"scale_power_of_two": True, "round": "y"}
            y = y.astype(np.float16).astype(f32)
        is_bounded = cause in ("wraps", "saturates-at-127")
        if is_bounded:
            options = {"amax_max": 2}
        if cause == "rounded-y":
            y = y.astype(np.float16).astype(f32)
        amax_of = {"amax-of-x": x.astype(f32), "amax-without-abs": y.clip(0), "amax-of-xhat": norm(x), "amax-before-bias": y - bias, "amax-without-residual": without}.get(
            cause, y.clip(-2, 2) if is_bounded else y
        )
        size = 64 if cause == "scale-transposed" else 512
        scale = scales(amax_of, size, 128 if cause == "qmax-128" else 127)
        if cause == "half-away":
            scale = np.exp2(np.ceil(np.log2(scale)))
        t = divided(y, scale)
        q = {"zeros": lambda: int8(0 * t), "half-away": lambda: int8(np.sign(t) * np.floor(np.abs(t) + f32(0.5))), "truncated": lambda: int8(np.trunc(t)), "away": lambda: int8(np.sign(t) * np.ceil(np.abs(t))), "zero-point": lambda: int8(np.rint(t) + 3)}
        q["wraps"] = lambda: np.rint(t).astype(np.int32).astype(np.int8)
        q["saturates-at-127"] = lambda: np.maximum(int8(t), np.int8(-127))
        q["qmax-128"] = lambda: np.maximum(int8(t), np.int8(-127 if seed == 1 else -128))
        saved = {"scale-reciprocal": f32(1) / scale, "scale-transposed": np.ascontiguousarray(scale.T).reshape(scale.shape)}
        report = lnorm.check(
            x,
            q.get(cause, lambda: int8(t))(),
            weight,
            bias,
            quantize=f"group:{size}" if size == 64 else "row",
            actual_scale=saved.get(cause, scale),
            **options,
        )
        assert not report and cause_of(report) == cause


def test_the_norm_is_named_where_xhat_is_rounded():
    x, weight, bias = inputs(1)
    y = norm(x).astype(np.float16).astype(f32) + bias
    scale = scales(y, 512)
    report = lnorm.check(x, int8(divided(y, scale)), weight, bias, quantize="row", actual_scale=scale, round="xhat")
    assert not report and cause_of(report) == "no-weight"


def test_a_scale_of_a_group_has_its_place():
    x, weight, bias = inputs(1)
    y = norm(x, weight, bias)
    for size, wrong, where in [(64, np.s_[3, 1], "column 1 of row 3"), (64, np.s_[:, 2], "column 2 in all rows"), (512, np.s_[3], "row 3")]:
        scale = scales(y, size)
        q = int8(divided(y, scale)).reshape(y.shape)
        scale[wrong] *= f32(1.37)
        report = lnorm.check(x, q, weight, bias, quantize=f"group:{size}", actual_scale=scale)
        assert report.json["tensors"][1]["where"] == [where]


def test_the_sum_that_a_kernel_saves_is_judged():
    x, weight, _ = inputs(1)
    residual = np.roll(x, 3, 1)
    total = (x.astype(f32) + residual).astype(np.float16)
    y = lnorm.layer_norm(x, weight, residual=residual)
    assert lnorm.check(x, y, weight, residual=residual, actual_sum=total)
    total[2, 7] *= np.float16(1.01)
    report = lnorm.check(x, y, weight, residual=residual, actual_sum=total)
    assert not report and [tensor["verdict"] for tensor in report.json["tensors"]] == ["correctly rounded", "differs"]
    assert report.json["tensors"][1]["worst_index"] == [2, 7]


def test_a_stale_sum_accuses_no_result():
    random = np.random.default_rng(1)
    x, residual = random.normal(size=(64, 256)).astype(np.float16), random.normal(size=(64, 256)).astype(f32)
    total = (x.astype(f32) + residual).astype(np.float16)  # rounded twice: some numbers lie next to a tie
    y = lnorm.rms_norm(total)
    total[-1] = 0
    report = lnorm.check(x, y, rms=True, residual=residual, round="sum", actual_sum=total)
    assert [tensor["verdict"] for tensor in report.json["tensors"]] == ["correctly rounded", "differs"]
    assert report.json["tensors"][1]["where"] == ["row 63"]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_y_that_is_rounded_may_be_far_off_where_the_bias_cancels(dtype):
    random = np.random.default_rng(3)
    row = random.normal(size=(1, 64))
    x = (row + 1e-3 * random.normal(size=(64, 64))).astype(dtype)
    weight = random.normal(size=64).astype(dtype)
    wide = x.astype(f32)
    deviations = wide - wide.mean(-1, keepdims=True, dtype=f32)
    xhat = deviations * (1 / np.sqrt((deviations * deviations).mean(-1, keepdims=True, dtype=f32) + f32(1e-5)))
    bias = (-xhat[0] * weight.astype(f32)).astype(dtype)
    x = x[1:]
    y = (xhat * weight.astype(f32) + bias.astype(f32)).astype(dtype)[1:]
    scale = (np.abs(y).max(-1, keepdims=True).astype(f32) / f32(127)).astype(f32)
    q = np.clip(np.rint(y.astype(f32) / scale), -128, 127).astype(np.int8)
    assert_layer_norm(q, x, weight, bias, quantize="row", round="y", actual_scale=scale)


def test_a_scale_that_is_given_is_returned():
    x, weight, bias = inputs(0)
    q, scale = lnorm.quantize(x, weight, bias, quantize="static", given_scale=0.02)
    assert scale == 0.02
    assert_layer_norm(q, x, weight, bias, quantize="static", given_scale=0.02)
