#!/usr/bin/python3
"""Makes layer_norm.json: float16 layer norms of PyTorch against exact ones, for tests/golden/compare_test.cpp.

Run it with Debian's python3-torch:  /usr/bin/python3 data/compare/make_layer_norm.py

Each entry has the input x, and a pair as in pairs.json: PyTorch's result, computed in float32 and
rounded to float16 as under autocast, and the exact result rounded to float64, from fractions and
decimals. The figures are those of make_pairs.py.
"""

import decimal
import fractions
import json
import os

import numpy
import torch

import make_pairs

DECIMALS = decimal.Context(prec=60)


def exact_layer_norm(x, eps=1e-5):
    """Of the rows of x, as float64."""
    result = numpy.empty(x.shape, "float64")
    for row, out in zip(x, result):
        numbers = [fractions.Fraction(value) for value in row.tolist()]
        mean = sum(numbers) / len(numbers)
        variance = sum((number - mean) ** 2 for number in numbers) / len(numbers)
        square = variance + fractions.Fraction(eps)
        root = DECIMALS.sqrt(DECIMALS.divide(decimal.Decimal(square.numerator),
                                             decimal.Decimal(square.denominator)))
        for i, number in enumerate(numbers):
            deviation = number - mean
            out[i] = float(DECIMALS.divide(DECIMALS.divide(
                decimal.Decimal(deviation.numerator), decimal.Decimal(deviation.denominator)), root))
    return result


def entry(x):
    """Of one input."""
    y16 = torch.nn.functional.layer_norm(torch.from_numpy(x).float(), x.shape[-1:]).half().numpy()
    return {"x": make_pairs.tensor(x), "pair": make_pairs.pair(y16, exact_layer_norm(x))}


def main():
    """Writes layer_norm.json beside this file."""
    rng = numpy.random.RandomState(14)
    usual = rng.standard_normal((24, 48)).astype("float16")
    shifted = (rng.standard_normal((8, 32)) + 1000).astype("float16")
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "layer_norm.json")
    with open(path, "w", encoding="ascii") as file:
        origin = f"PyTorch {torch.__version__}, data/compare/make_layer_norm.py"
        json.dump({"origin": origin, "layer_norms": [entry(usual), entry(shifted)]}, file)
        file.write("\n")


if __name__ == "__main__":
    main()
