#!/usr/bin/env python3
"""Holds random commands of the program against NumPy in long doubles: values, figures, verdicts, causes.

  tests/random/against_numpy.py PROGRAM [SECONDS [SEED]]

A case is a tensor of 1 to 4 axes and options that may stand together. Prints the commands that differ, and keeps their files.
"""

import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

LONG = np.longdouble
FLAGS = ("--rms", "--unbiased", "--zero-centered-weight")


class Skipped(Exception):
    """The options of the case do not go with what is asked."""


def near(found, expected, what, rtol=1e-12, atol=0.0):
    found = float(found) if isinstance(found, str) else found
    is_nan = found is None or np.isnan(found)
    if not (np.isnan(float(expected)) if is_nan else abs(LONG(found) - LONG(expected)) <= rtol * abs(LONG(expected)) + atol):
        raise AssertionError(f"{what}: {found}, expected {expected}")


def same(found, expected, what):
    if found != expected:
        raise AssertionError(f"{what}: {found}, expected {expected}")


def without(words, name):
    """The words without an option and its value."""
    if name not in words:
        return list(words)
    at = words.index(name)
    return words[:at] + words[at + (1 if name in FLAGS else 2) :]


def without_affine(words, name):
    """Without weight or bias, and without what has no effect then."""
    words = without(words, name)
    if "--weight" not in words:
        words = without(words, "--zero-centered-weight")
    return words if "--weight" in words or "--bias" in words else without(words, "--affine-axes")


class Case:
    """A tensor x, the axes of its rows, and the words of the command line."""

    def __init__(self, program, rng, folder):
        self.program, self.rng, self.folder = program, rng, folder
        dims = rng.randint(1, 4)
        self.shape = tuple(rng.choice([1, 2, 3, 4, 5, 7, 8, 12, 17]) for _ in range(dims))
        self.dtype = rng.choice(["f2", "f4", "f8"])
        self.axes = tuple(sorted(rng.sample(range(dims), rng.randint(1, dims))))
        self.words, self.command = [], ""
        if self.axes != (dims - 1,) or rng.random() < 0.3:
            named = [a - dims if rng.random() < 0.3 else a for a in self.axes]
            self.words += ["--axes", ",".join(map(str, named))]
        self.kept = tuple(a for a in range(dims) if a not in self.axes)
        self.mask = self.slice = None
        self.x = self.numbers(self.shape)
        self.save("x", self.x)
        self.n = self.rows(self.x).shape[1]

    def numpy_random(self):
        return np.random.default_rng(self.rng.randrange(2**32))

    def numbers(self, shape):
        numpy_random, kind = self.numpy_random(), self.rng.random()
        a = numpy_random.standard_normal(shape)
        if kind < 0.2:
            a = numpy_random.integers(-3, 4, shape).astype(float)
        elif kind < 0.4:
            a = a + numpy_random.uniform(-3, 3)
        return a.astype(self.dtype)

    def save(self, name, array):
        if self.rng.random() < 0.2 and array.ndim > 1:
            array = np.asfortranarray(array)
        np.save(self.folder / f"{name}.npy", array)
        return f"{name}.npy"

    def rows(self, a):
        """Rows by number, elements in the order of the axes."""
        return np.transpose(a, self.kept + self.axes).reshape(-1, int(np.prod([self.shape[i] for i in self.axes])))

    def whole(self, rows):
        order = self.kept + self.axes
        return np.transpose(rows.reshape([self.shape[i] for i in order]), np.argsort(order))

    def index(self, number, axes):
        return [int(i) for i in np.unravel_index(number, [self.shape[i] for i in axes])]

    def take_mask(self):
        shape = [d if self.rng.random() < 0.8 else 1 for d in self.shape]
        bits = self.numpy_random().random(shape[1:] if self.rng.random() < 0.2 else shape) < 0.7
        self.words += ["--mask", self.save("mask", bits)]
        self.mask = np.broadcast_to(bits, self.shape)

    def take_slice(self):
        count = len(self.rows(self.x))
        begin = self.rng.randrange(count)
        self.slice = (begin, self.rng.randint(begin + 1, count))
        self.words += ["--rows", "{}:{}".format(*self.slice)]

    def take_norm(self):
        """Draws eps, its place, ddof and RMS."""
        rng = self.rng
        self.eps = LONG(rng.choice(["1e-5", "1e-6", "0.1"]))
        if self.eps != LONG("1e-5"):
            self.words += ["--eps", str(float(self.eps))]
        self.rms = rng.random() < 0.3
        self.words += ["--rms"] * self.rms
        self.ddof = int(self.n > 1 and rng.random() < 0.2)
        self.words += ["--unbiased"] * self.ddof
        self.place = rng.choice(["variance"] * 4 + ["std", "max"])
        if self.place != "variance":
            self.words += ["--eps-on", self.place]

    def statistics(self, rows):
        """Mean, variance and s of rows of long doubles."""
        mean = 0 * rows[:, :1] if self.rms else rows.mean(1, keepdims=True)
        variance = ((rows - mean) ** 2).sum(1, keepdims=True) / (self.n - self.ddof)
        root = np.sqrt(variance)
        s = {"variance": np.sqrt(variance + self.eps), "std": root + self.eps, "max": np.maximum(root, self.eps)}
        return mean, variance, s[self.place]

    def xhat(self, rows):
        rows = rows.astype(LONG)
        mean, _, s = self.statistics(rows)
        return (rows - mean) / s

    def take_affine(self):
        """Draws weight and bias; returns those of every row's elements, and their axes."""
        rng, axes, found = self.rng, self.axes, []
        if rng.random() < 0.4 and len(self.shape) > 1:
            axes = tuple(sorted(rng.sample(range(len(self.shape)), rng.randint(1, len(self.shape)))))
            self.words += ["--affine-axes", ",".join(map(str, axes))]
        shape = tuple(self.shape[a] for a in axes)
        spread = [self.shape[a] if a in axes else 1 for a in range(len(self.shape))]
        for name, chance in (("weight", 0.6), ("bias", 0.5)):
            numbers = np.full(shape, 1 if name == "weight" else 0, self.dtype)
            if rng.random() < chance:
                numbers = self.numbers(shape)
                self.words += ["--" + name, self.save(name, numbers)]
            found.append(self.rows(np.broadcast_to(numbers.reshape(spread), self.shape)).astype(LONG))
        if "--weight" in self.words and rng.random() < 0.15:
            self.words.append("--zero-centered-weight")
            found[0] = found[0] + 1
        if "--affine-axes" in self.words and without_affine(self.words, "") != self.words:
            raise Skipped
        return found[0], found[1], axes

    def run(self, *words, status=(0,)):
        words = [*words, *self.words]
        self.command = "lnorm " + " ".join(words)
        done = subprocess.run([self.program, *words], cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode not in status:
            raise AssertionError(f"exit status {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def load(self, name):
        return np.load(self.folder / f"{name}.npy")


def stats(case):
    case.take_norm()
    rows = case.rows(case.x)
    keep = np.ones_like(rows, bool)
    if case.rng.random() < 0.8 and not {"--eps", "--eps-on", "--rms", "--unbiased"} & set(case.words):
        case.take_mask()
        keep = case.rows(case.mask)
    if case.rng.random() < 0.3:
        case.take_slice()
    begin, end = case.slice or (0, len(rows))
    report = json.loads(case.run("stats", "x.npy", "--json"))
    same(len(report["rows"]), end - begin, "rows")
    found = {key: [] for key in ("mean", "variance", "min", "max")}
    for line, r in zip(report["rows"], range(begin, end)):
        same((line["row"], line["index"]), (r, case.index(r, case.kept)), "row")
        some = rows[r][keep[r]].astype(LONG)
        if not len(some):
            continue
        given = line["input"]
        near(given["mean"], some.mean(), f"mean of {r}", 1e-13, 1e-16)
        near(given["variance"], ((some - some.mean()) ** 2).sum() / (len(some) - case.ddof), f"variance of {r}", 1e-12, 1e-16)
        near(given["min"], some.min(), f"min of {r}")
        near(given["max"], some.max(), f"max of {r}")
        for key, values in found.items():
            values.append(given[key])
    for key, values in found.items():
        summary = report["summary"]["input"][key]
        same(summary["count"], len(values), key + " count")
        for name, of in (("min", min), ("median", np.median), ("max", max)):
            if values:
                near(summary[name], of(values), f"{name} of {key}", 1e-12, 1e-16)


def features(case):
    rows = case.rows(case.x)
    keep = np.ones_like(rows, bool)
    if case.rng.random() < 0.5:
        case.take_mask()
        keep = case.rows(case.mask)
    if case.rng.random() < 0.3:
        case.take_slice()
    begin, end = case.slice or (0, len(rows))
    report = json.loads(case.run("stats", "--features", "x.npy", "--json"))
    same(len(report["features"]), case.n, "features")
    for i, line in enumerate(report["features"]):
        same(line["index"], case.index(i, case.axes), "index")
        some = rows[begin:end, i][keep[begin:end, i]].astype(LONG)
        if not len(some):
            continue
        near(line["mean"], some.mean(), f"mean of {i}", 1e-13, 1e-14)
        near(line["variance"], some.var(), f"variance of {i}", 1e-12, 1e-16)
        near(line["absmax"], abs(some).max(), f"absmax of {i}")
        near(line["zeros"], (some == 0).mean(), f"zeros of {i}", 1e-13)


def compare(case):
    rng, expected, actual = case.rng, case.x, case.x.copy()
    if rng.random() < 0.8:
        noise = case.numpy_random()
        hit = noise.random(expected.shape) < rng.choice([0.05, 0.5, 1])
        factor = 1 + rng.choice([1e-7, 1e-3, 0.3]) * noise.standard_normal(expected.shape)
        actual = np.where(hit, expected * factor, expected).astype(rng.choice([case.dtype, "f4"]))
    case.save("actual", actual)
    keep = np.ones(case.shape, bool)
    if rng.random() < 0.3:
        case.take_mask()
        keep = case.mask
    if rng.random() < 0.3:
        case.take_slice()
    begin, end = case.slice or (0, None)
    inside = np.zeros_like(case.rows(keep))
    inside[begin:end] = case.rows(keep)[begin:end]
    if rng.random() < 0.5:
        case.words += ["--rtol", rng.choice(["0", "1e-3", "1e-6"]), "--atol", rng.choice(["0", "1e-3"])]
    out = case.run("compare", "actual.npy", "x.npy", "--json", status=(0, 1) if inside.any() else (2,))
    if not inside.any():
        return
    report = json.loads(out)
    a, e = case.rows(actual).astype(LONG), case.rows(expected).astype(LONG)
    d = abs(a - e)
    tolerance = report["tolerance"]
    bad = inside & (d > LONG(tolerance["atol"]) + LONG(tolerance["rtol"]) * abs(e))
    same(report["elements"], int(inside.sum()), "elements")
    same(report["left_out"], inside[begin:end].size - int(inside.sum()), "left out")
    same((report["mismatched"], report["equal"]), (int(bad.sum()), not bad.any()), "mismatched")
    same(report["affected_rows"]["count"], int(bad.any(1).sum()), "affected rows")
    same(report["affected_rows"]["first"], [int(r) for r in np.flatnonzero(bad.any(1))[:10]], "first rows")
    same(report["affected_columns"]["count"], int(bad.any(0).sum()), "affected columns")
    errors = report["errors"]
    d, a, e = d[inside], a[inside], e[inside]
    near(report["greatest_absolute_difference"]["value"], d.max(), "greatest absolute", 1e-15)
    near(errors["mean_absolute"], d.mean(), "mean absolute", 1e-13)
    near(errors["mean"], (a - e).mean(), "mean", 1e-11, 1e-18)
    near(errors["root_mean_square"], np.sqrt((d**2).mean()), "root mean square", 1e-12)
    same(errors["equal_numbers"], int((d == 0).sum()), "equal numbers")
    if a.any() and e.any():
        near(errors["cosine"], (a * e).sum() / np.sqrt((a * a).sum() * (e * e).sum()), "cosine", 1e-13)
    if d.any() and e.any():
        near(errors["sqnr_db"], 10 * np.log10((e * e).sum() / (d * d).sum()), "SQNR", 1e-11, 1e-11)


def apply(case):
    case.take_norm()
    weight, bias, _ = case.take_affine()
    y = case.whole(case.xhat(case.rows(case.x)) * weight + bias)
    case.run("apply", "x.npy", "-o", "y.npy")
    found = case.load("y")
    same((found.dtype, found.shape), (case.x.dtype, y.shape), "dtype and shape")
    ulp, least = {"f2": (2.0**-10, 2.0**-24), "f4": (2.0**-23, 1e-15), "f8": (2.0**-51, 1e-15)}[case.dtype]
    if (abs(found.astype(LONG) - y) > ulp * abs(y) + least).any():
        raise AssertionError("off by more than an ulp")


def grad(case):
    case.take_norm()
    weight, _, axes = case.take_affine()
    if "--bias" in case.words:
        case.words = without_affine(case.words, "--bias")
        axes = axes if "--affine-axes" in case.words else case.axes
    rows, dy = case.rows(case.x).astype(LONG), case.numbers(case.shape)
    case.words += ["--dy", case.save("dy", dy)]
    mean, variance, s = case.statistics(rows)
    root = np.sqrt(variance)
    with np.errstate(divide="ignore", invalid="ignore"):
        # What s grows by with x_i, in parts of x_i - mean.
        slope = {"variance": 1 / s, "std": 1 / root, "max": np.where(root > case.eps, 1 / root, 0)}[case.place]
        g = case.rows(dy).astype(LONG) * weight
        of_s = slope / (case.n - case.ddof) * (g * (rows - mean)).sum(1, keepdims=True) / s**2
        dx = g / s - (rows - mean) * of_s
        if not case.rms:
            dx = dx - (g / s).mean(1, keepdims=True)
    over = tuple(a for a in range(len(case.shape)) if a not in axes)
    dweight = case.whole(case.rows(dy).astype(LONG) * (rows - mean) / s).sum(over)
    case.run("grad", "x.npy", "--dx", "dx.npy", "--dweight", "dw.npy", "--dbias", "db.npy", "--dtype", "float64")
    for name, expected in (("dx", case.whole(dx)), ("dw", dweight), ("db", dy.astype(LONG).sum(over))):
        found = case.load(name).astype(LONG)
        same(found.shape, expected.shape, f"shape of {name}")
        if np.isfinite(expected).all() and (abs(found - expected) > 1e-12 * abs(expected).max() + 1e-15 + 1e-14 / case.eps).any():
            raise AssertionError(f"{name} is off by {abs(found - expected).max()}")


def check(case):
    """A right output passes, a wrong one differs, and the options of its cause give it."""
    case.take_norm()
    weight, bias, _ = case.take_affine()
    with np.errstate(over="ignore"):
        y = case.whole(case.xhat(case.rows(case.x)) * weight + bias).astype(case.dtype)
    case.save("y", y)
    asked = list(case.words)
    if case.rng.random() < 0.3:
        case.take_slice()
    if "not judged" in case.run("check", "x.npy", "y.npy", "--json", status=(0, 2)):
        raise Skipped
    kind = case.rng.choice(["--eps", "--unbiased", "--weight", "--bias", "--rms", "element"])
    begin, end = case.slice or (0, None)
    if kind == "element":
        wrong = y.copy()
        places = case.rows(np.arange(y.size).reshape(y.shape))[begin:end].ravel()
        at = np.unravel_index(case.rng.choice(list(places)), y.shape)
        wrong[at] = wrong[at] * 1.5 + 3
    else:
        words = without_affine(asked, kind) if kind in ("--weight", "--bias") else without(asked, kind)
        if kind == "--eps":
            words += ["--eps", "0.5"]
        elif kind not in asked:
            if kind in ("--weight", "--bias") or case.n == 1:
                raise Skipped
            words.append(kind)
        case.words, rest = words, case.words
        case.run("apply", "x.npy", "-o", "wrong.npy")
        case.words, wrong = rest, case.load("wrong")
    np.save(case.folder / "wrong.npy", wrong)
    off = case.rows(abs(wrong.astype(LONG) - y.astype(LONG)))[begin:end]
    if not (off > 0.1 * case.rows(abs(y.astype(LONG)))[begin:end] + 0.1).any():
        raise Skipped
    cause = json.loads(case.run("check", "x.npy", "wrong.npy", "--json", status=(1,)))["cause"]
    if not cause or not cause["options"] or case.slice:
        return
    plus, minus = [], []
    for option in cause["options"]:
        words = option.split()
        while "without" in words:
            at = words.index("without")
            minus.append(words[at + 1])
            del words[at : at + 2]
        plus += words
    words = asked
    for name in [word for word in plus if word.startswith("--")] + minus:
        words = without(words, "--unbiased" if name == "--ddof" else name)
    case.words = without_affine(words, "") + plus
    case.run("check", "x.npy", "wrong.npy")


COMMANDS = (stats, features, compare, apply, grad, check)


def main(program, seconds="20", seed="1"):
    rng, end, failed = random.Random(int(seed)), time.monotonic() + float(seconds), 0
    counts = {command.__name__: 0 for command in COMMANDS}
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end and failed < 10:
            command = rng.choice(COMMANDS)
            case = Case(str(Path(program).resolve()), rng, Path(folder))
            try:
                command(case)
                counts[command.__name__] += 1
            except Skipped:
                pass
            except (AssertionError, KeyError, ValueError) as error:
                failed += 1
                kept = shutil.copytree(folder, tempfile.mkdtemp(prefix="lnorm-random-"), dirs_exist_ok=True)
                print(f"in {kept}: {case.command}\n  {type(error).__name__}: {error}")
    print(f"seed {seed}:", ", ".join(f"{count} {name}" for name, count in counts.items()) + f"; {failed} differ")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
