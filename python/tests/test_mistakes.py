"""What check names of mistakes that people make in kernels: NumPy makes each of them here, by its own formula."""

import unittest

import numpy as np

import lnorm

ROWS, LENGTH, EPS = 96, 200, 1e-5
COLUMNS = np.arange(LENGTH)


def bfloat16(numbers):
    bits = np.asarray(numbers, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


def mean(numbers):
    return numbers.mean(-1, keepdims=True)


class Mistakes(unittest.TestCase):
    def setUp(self):
        random = np.random.default_rng(11)
        self.x = random.normal(0.3, 1, (ROWS, LENGTH)).astype(np.float32)
        self.residual = random.normal(0, 1, (ROWS, LENGTH)).astype(np.float32)
        self.dy = random.normal(0.1, 1, (ROWS, LENGTH)).astype(np.float32)
        self.w = random.normal(1, 0.3, LENGTH).astype(np.float32)
        self.b = random.normal(0.1, 0.3, LENGTH).astype(np.float32)

    def xhat(self, x):
        x = x.astype(np.float64)
        return (x - mean(x)) / np.sqrt(x.var(-1, keepdims=True) + EPS)

    def norm(self, x):
        return self.xhat(x) * self.w + self.b

    def names(self, ids, tensors, **options):
        for tensor, name in zip(tensors, ids):
            with self.subTest(name):
                report = lnorm.check(*tensor, **options)
                self.assertIsNotNone(report.cause, str(report))
                self.assertIn(name, ["+".join(report.cause["ids"]), *report.cause["alike"]])

    def test_forward(self):
        x, w, b = self.x, self.w, self.b
        xhat, y = self.xhat(x), self.norm(x)
        rows = np.arange(ROWS) % LENGTH

        def by_sums(elements):
            some = x[:, elements].astype(np.float64)
            center = some.sum(-1, keepdims=True) / LENGTH
            variance = ((some - center) ** 2).sum(-1, keepdims=True) / LENGTH
            return (x - center) / np.sqrt(variance + EPS) * w + b

        found = {
            "first-128-by-n": by_sums(COLUMNS[:128]),
            "warp-64": by_sums(COLUMNS[COLUMNS % 64 < 32]),
            "weight-first-128": xhat * w[COLUMNS % 128] + b,
            "bias-first-64": xhat * w + b[COLUMNS % 64],
            "weight-by-row": xhat * w[rows, None] + b,
            "bias-by-row": xhat * w + b[rows, None],
            "x-first-128": ((x[:, COLUMNS % 128] - mean(x)) / np.sqrt(x.var(-1, keepdims=True) + EPS)) * w + b,
            "blocks-64": np.concatenate([self.xhat(x[:, k : k + 64]) for k in range(0, LENGTH, 64)], 1) * w + b,
            "plus-input": y + x,
            "bfloat16-x": self.norm(bfloat16(x)),
            "memory-order": y.T.reshape(ROWS, LENGTH),
            "other-rows": np.roll(y, 9, 0),
        }
        self.names(found, [(x, value.astype(np.float32)) for value in found.values()], weight=w, bias=b)

    def test_memory_order(self):
        x, y, shape = self.x, self.xhat(self.x), (LENGTH, ROWS)
        for tensors in (
            (x, self.xhat(x.T.reshape(x.shape))),
            (x, self.xhat(x.reshape(shape).T)),
            (x, y.T.reshape(x.shape)),
            (x, y.reshape(shape).T),
        ):
            self.names(["memory-order"], [(tensors[0], tensors[1].astype(np.float32))])

    def test_view_read_without_strides(self):
        storage = np.random.default_rng(2).normal(0.3, 1, (ROWS, 2 * LENGTH)).astype(np.float32)
        count = ROWS * LENGTH
        for x in storage[:, :LENGTH], storage[:, 7 : 7 + LENGTH], storage[::2, ::2]:
            first = (x.ctypes.data - storage.ctypes.data) // storage.itemsize
            read = storage.ravel()[first : first + count].reshape(-1, LENGTH)[: len(x)]
            self.names(["storage-start"], [(x, self.xhat(read).astype(np.float32))])
        # What lies beyond the view is not known, or goes back.
        for x in storage[: ROWS // 2, LENGTH:][:, ::-1], np.broadcast_to(storage[0, :LENGTH], (ROWS, LENGTH)):
            report = lnorm.check(x, self.xhat(x[::-1]).astype(np.float32) + 1)
            self.assertNotEqual(report.verdict, "right")
            self.assertNotIn("storage-start", str(report))

    def test_right_kernels_that_fold(self):
        random = np.random.default_rng(3)
        for n in 1, 2, 3:
            for _ in range(60):
                x = (random.normal(size=(64, n)) * random.choice([1, 200])).astype(np.float32)
                x = x if n == 1 else x[:, :1] + x * np.float32(1e-6) * random.integers(0, 2)
                w, b = (random.normal(size=n).astype(np.float32) for _ in range(2))
                m = x.sum(-1, keepdims=True) / np.float32(n)
                r = 1 / np.sqrt(((x - m) ** 2).sum(-1, keepdims=True) / np.float32(n) + np.float32(EPS))
                y = x * (r * w) + (b - m * r * w)
                self.assertNotEqual(lnorm.check(x, y, w, b).verdict, "differs")
        # 1 + weight, which comes in float64, cancels.
        x, w = np.float32([[1, 2, 4, -3]]), np.array([-0.9999, 0.1, 0.2, -1.0003])
        y = (x - x.mean()) / np.sqrt(x.var() + np.float32(EPS)) * (np.float32(1) + w.astype(np.float32))
        self.assertEqual(lnorm.check(x, y, w, zero_centered_weight=True).verdict, "within rounding")

    def test_no_narrow_arithmetic(self):
        # Loops in float32 that leave out the last element, or of numbers in which nothing is told.
        x = np.random.default_rng(0).normal(size=(128, 1000)).astype(np.float16)
        k = x[:, :-1].astype(np.float32)
        y = (x - mean(k)) / np.sqrt(k.var(-1, keepdims=True) + np.float32(EPS))
        self.assertEqual(lnorm.check(x, y.astype(np.float16)).cause["ids"], ["first-999"])
        random = np.random.default_rng(0)
        x = (1000 + random.normal(size=(16, 4)) * 1e-4).astype(np.float32)
        y = 1000 * random.normal(size=(16, 4)).astype(np.float32)
        y[0, 0] = np.inf
        self.assertIsNone(lnorm.check(x, y, eps=0).cause)

    def test_no_wrong_name(self):
        y = self.norm(self.x).astype(np.float32)
        y[-1] *= 1.5
        report = lnorm.check(self.x, y, weight=self.w, bias=self.b)
        self.assertIsNone(report.cause)
        self.assertIn(f"row {ROWS - 1}", str(report))
        x = self.x.copy()
        x[1::3] = 1.5  # constant rows, whose formulas have wide bounds
        report = lnorm.check(x, rms=True, dy=self.dy, actual_dweight=self.b)
        self.assertIsNone(report.tensors[0]["cause"])

    def test_no_name_for_what_is_right_elsewhere(self):
        # Of these inputs other rows, axes and formulas give what is right, but in the row that is wrong.
        arange = np.arange(256, dtype=np.float32).reshape(8, 32) / 8
        signs = np.where(self.x[:16, :64] > 0, 1, -1).astype(np.float32)
        equal = np.tile(self.x[:1, :64], (16, 1))
        for x, rms in (arange, False), (signs, True), (equal, False):
            for factor in 1.3, 1:
                y = x / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + EPS) if rms else self.xhat(x)
                y[-1] *= factor
                y[-1, 5] += 1
                report = lnorm.check(x, y.astype(np.float32), rms=rms)
                self.assertIsNone(report.cause, str(report))

    def test_weight_in_some_columns(self):
        x, w, b, xhat = self.x, self.w, self.b, self.xhat(self.x)
        short = np.where(COLUMNS < LENGTH - 8, b, 0)
        for y in xhat * np.where(COLUMNS < 64, bfloat16(w), w) + b, xhat * w + short:
            self.names(["other-affine"], [(x, y.astype(np.float32))], weight=w, bias=b)
        y = (xhat * w + b).astype(np.float32)
        y[:, 7] = 0
        self.assertIsNone(lnorm.check(x, y, weight=w, bias=b).cause)

    def test_other_sign(self):
        y = -(self.xhat(self.x) * self.w).astype(np.float32)
        for rows in 2, ROWS:
            self.names(["negated"], [(self.x[:rows], y[:rows])], weight=self.w)
        x, dy = self.x.astype(np.float64), self.dy.astype(np.float64)
        s = np.sqrt(mean(x * x) + EPS)
        dx = -(dy - x / s * mean(dy * x / s)) / s
        report = lnorm.check(self.x, rms=True, dy=self.dy, actual_dx=dx.astype(np.float32))
        self.assertEqual(report.tensors[0]["cause"]["ids"], ["dx-negated"])

    def test_constant_rows_summed_by_a_loop(self):
        single = np.float32
        for length, value, eps in (1024, 1.1, 1e-5), (2048, 3.3, 1e-6):

            def total(numbers):
                return np.cumsum(numbers, dtype=np.float32)[-1]

            x, dy, n = np.full(length, value, np.float32), np.zeros(length, np.float32), single(length)
            dy[3] = 1
            d = x - total(x) / n
            rstd = single(1) / np.sqrt(total(d * d) / n + single(eps))
            xhat = d * rstd
            dx = rstd * (dy - (total(dy) / n + xhat * (total(dy * xhat) / n)))
            report = lnorm.check(x[None], dy=dy[None], actual_dx=dx[None], eps=eps)
            self.assertEqual(report.verdict, "within rounding", str(report))

    def test_residual(self):
        x, residual = self.x, self.residual
        found = {
            "residual-after": self.norm(x) + residual,
            "residual-negated": self.norm(x - residual),
            "residual-alone": self.norm(residual),
            "plus-residual": self.norm(x + residual) + residual,
        }
        tensors = [(x, value.astype(np.float32)) for value in found.values()]
        self.names(found, tensors, weight=self.w, bias=self.b, residual=residual)

    def test_given_variance(self):
        x, center, variance = self.x, mean(self.x)[:, 0], self.x.var(-1)
        for name, factor in ("biased", (LENGTH - 1) / LENGTH), ("unbiased", LENGTH / (LENGTH - 1)):
            y = (x - center[:, None]) / np.sqrt(variance[:, None] * factor + EPS)
            self.names(["given-variance-" + name], [(x, y.astype(np.float32))], mean=center, variance=variance)
        # A standard deviation for a variance.
        variance = 3 * variance
        for name, other in ("root", np.sqrt(variance)), ("squared", variance**2):
            y = ((x - center[:, None]) / np.sqrt(other[:, None] + EPS)).astype(np.float32)
            self.names(["given-variance-" + name], [(x, y)], mean=center, variance=variance)

    def test_weight_of_one_number(self):
        ones, b, xhat = np.ones(LENGTH, np.float32), self.b, self.xhat(self.x)
        found = {"weight-plus-one": (1, xhat * 2), "no-weight": (0.5, xhat), "weight-twice": (3, xhat * 9)}
        for name, (weight, scaled) in found.items():
            self.names([name], [(self.x, (scaled + b).astype(np.float32))], weight=ones * np.float32(weight), bias=b)
        x = self.x.astype(np.float16)
        report = lnorm.check(x, (2 * self.xhat(x)).astype(np.float16), ones)
        self.assertEqual(report.cause["ids"], ["weight-plus-one"])

    def test_nearest_formula(self):
        # The norm of the norm, and eps beside the root, are within what rounding explains; another eps is nearer.
        for deviation, eps in (4, 2e-4), (8, 5e-4), (20, 5e-3), (8, 3e-4):
            x = self.x * np.float32(deviation)
            d = x.astype(np.float64) - mean(x.astype(np.float64))
            y = d / np.sqrt(mean(d * d) + eps) * self.w
            self.names([f"eps={eps}"], [(x, y.astype(np.float32))], weight=self.w)

    def test_factor_of_narrow_results(self):
        x = bfloat16(self.x)
        for factor, names in (1 / 0.9, ["factor=1.111111111"]), (np.sqrt(8), ["factor=2.828427125"]):
            self.names(names, [(x.astype(np.float16), (self.xhat(x.astype(np.float16)) * factor).astype(np.float16))])

    def test_layer_norm_for_rms_norm(self):
        random = np.random.default_rng(1)
        x = random.normal(0.3, 1, (8, 4096)).astype(np.float32)
        w = random.normal(size=4096).astype(np.float32)
        d = x - mean(x)
        y = (x * (1 / np.sqrt(mean(d * d) + np.float32(EPS))) - mean(x) / np.sqrt(mean(d * d) + np.float32(EPS))) * w
        self.names(["layer-norm"], [(x, y)], weight=w, rms=True)

    def test_few_elements_tell_no_cause(self):
        # One result is off in bfloat16, where some row of thousands is like any of three elements.
        x = bfloat16(np.random.default_rng(4).normal(size=(20000, 3)))
        y = bfloat16(self.xhat(x))
        y[77, 1] += np.float32(2.0 ** -6)
        report = lnorm.check(x, y)
        self.assertEqual(report.verdict, "differs")
        self.assertIsNone(report.cause, str(report))
        # A variance of one pass, in one row: any number fits it.
        for seed in range(6):
            x = np.random.default_rng(seed).normal(1000, 1, (1, 1000)).astype(np.float32)
            m = x.sum(-1, keepdims=True) / np.float32(1000)
            v = (x * x).sum(-1, keepdims=True) / np.float32(1000) - m * m
            report = lnorm.check(x, (x - m) / np.sqrt(np.maximum(v, 0) + np.float32(EPS)))
            names = report.cause["ids"] if report.cause else ["no-division"]
            self.assertEqual(names, ["no-division"], str(report))  # which it is where v comes out as 1

    def test_backward(self):
        x, dy, w = self.x.astype(np.float64), self.dy.astype(np.float64), self.w.astype(np.float64)
        s = np.sqrt(x.var(-1, keepdims=True) + EPS)
        xhat, g, d = self.xhat(x), dy * w, x - mean(x)

        def dx(of_mean=g, of_variance=g, h=xhat, of=mean):
            return (g - of(of_mean) - h * of(of_variance * h)) / s

        def of_warp(numbers):
            return numbers[:, COLUMNS % 64 < 32].sum(-1, keepdims=True) / LENGTH

        unbiased = np.sqrt(x.var(-1, keepdims=True, ddof=1) + 1e-5)
        found = {
            "dx-mean-of-dy": dx(of_mean=dy),
            "dx-projection-of-dy": dx(of_variance=dy),
            "dx-means-of-dy": dx(of_mean=dy, of_variance=dy),
            "dx-weight-last": (dy - mean(dy) - xhat * mean(dy * xhat)) * w / s,
            "dx-of-x": dx(h=x),
            "dx-of-deviations": dx(h=d),
            "dx-divided-twice": dx() / s,
            "dx-warp-64": dx(of=of_warp),
            "dx-first-64": dx(of=lambda numbers: numbers[:, :64].sum(-1, keepdims=True) / LENGTH),
            "dx-1-1--1": (g - mean(g) + xhat * mean(g * xhat)) / s,
            "other-ddof": (g - mean(g) - d / unbiased * mean(g * d / unbiased)) / unbiased,
        }
        for name, value in found.items():
            with self.subTest(name):
                report = lnorm.check(self.x, dy=self.dy, weight=self.w, actual_dx=value.astype(np.float32))
                self.assertEqual(report.tensors[0]["cause"]["ids"], [name])
        of_channels = np.repeat(self.w[:8].astype(float), LENGTH // 8)
        report = lnorm.check(
            self.x.reshape(ROWS, 8, -1),
            dy=self.dy.reshape(ROWS, 8, -1),
            weight=self.w[:8],
            groups=1,
            actual_dx=((dy - mean(dy) - xhat * mean(dy * xhat)) * of_channels / s).astype(np.float32).reshape(ROWS, 8, -1),
        )
        self.assertEqual(report.tensors[0]["cause"]["ids"], ["dx-weight-last"])
        deviation = x.std(-1, keepdims=True)
        for eps_on, eps, s in ("std", 1e-3, deviation + 1e-3), ("max", 1, np.maximum(deviation, 1)):
            with self.subTest(eps_on):
                value = (dy - mean(dy) - d / s * mean(dy * d / s)) / s
                tensors = self.x, value.astype(np.float32)
                report = lnorm.check(tensors[0], dy=self.dy, actual_dx=tensors[1], eps_on=eps_on, eps=eps)
                self.assertEqual(report.tensors[0]["cause"]["ids"], ["dx-by-s"])
        sums = {
            "every-2nd-row": (dy * xhat)[::2].sum(0),
            "every-4th-row": (dy * xhat)[::4].sum(0),
            "bfloat16-dy": (bfloat16(dy) * xhat).sum(0),
            "float16-gradient": (dy * xhat).sum(0).astype(np.float16),
        }
        for name, value in sums.items():
            with self.subTest(name):
                report = lnorm.check(self.x, dy=self.dy, actual_dweight=value.astype(np.float32))
                self.assertEqual(report.tensors[0]["cause"]["ids"], [name])


if __name__ == "__main__":
    unittest.main()
