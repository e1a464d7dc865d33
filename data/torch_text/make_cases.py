#!/usr/bin/python3
"""Makes cases.json, what PyTorch prints for some tensors; tests/support/torch_cases.cpp reads it.

Run it with Debian's python3-torch and python3-numpy:  /usr/bin/python3 data/torch_text/make_cases.py

A case has the tensor's dtype, shape and elements, torch.set_printoptions' options and the text. The
elements are little-endian bytes in hex; or a tile, bytes in hex of which copies one after another
fill the shape in C order, the last one cut off; or a recipe: element i is
((i * multiplier) % modulus + offset) / divisor, which the dtype holds exactly.

"cases" are edges of the rules, large tensors and all kinds of options; "random" are random tensors,
most with the default options and every fourth summarised.
"""

import json
import math
import os

import numpy
import torch
from torch import _tensor_str

FLOATS = ["float16", "float32", "float64"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


class Formatter(_tensor_str._Formatter):
    """PyTorch's, with the widths of its newer releases in the older ones as well.

    They are measured in the notation that sci_mode forces (PyTorch's pull request 126859), not in
    the one that it overrides.
    """

    def __init__(self, tensor):
        super().__init__(tensor)
        if tensor.is_floating_point() and _tensor_str.PRINT_OPTS.sci_mode is not None:
            self.max_width = 1
            counting = tensor[torch.isfinite(tensor) & (tensor != 0)].tolist()
            self.max_width = max([1, *(len(self.format(value)) for value in counting)])


_tensor_str._Formatter = Formatter


def torch_text(array, shape, options):
    """str(tensor) of a flat NumPy array's elements in this shape, of any rank (NumPy's end at 32)."""
    torch.set_printoptions(profile="default")
    torch.set_printoptions(**options)
    missing = array.dtype.name in ("uint16", "uint32", "uint64") and not hasattr(torch, "uint16")
    if not missing:
        return str(torch.from_numpy(array).reshape(shape))
    # PyTorch before 2.3 lacks the dtype: the text is int64's, which has no suffix, with one added.
    assert array.size > 0 and array.max() < 2**63
    text = str(torch.from_numpy(array.astype("int64")).reshape(shape))
    suffix = "dtype=torch." + array.dtype.name
    return _tensor_str._add_suffixes(text[:-1], [suffix], len("tensor("), False)


def floats(rng, dtype, count):
    """Floats of one of many kinds."""
    kind = rng.randint(12)
    normal = rng.standard_normal(count)
    if kind <= 1:  # one magnitude
        values = normal * 10.0 ** rng.randint(-8, 10)
    elif kind == 2:  # many magnitudes
        values = normal * 10.0 ** rng.randint(-8, 10, count)
    elif kind == 3:  # within a factor of 1000, near the edge of scientific notation
        values = 10.0 ** (rng.randint(-5, 8) + 3 * rng.rand(count)) * rng.choice([-1, 1], count)
    elif kind == 4:  # whole numbers
        values = numpy.rint(normal * 10.0 ** rng.randint(0, 3))
    elif kind == 5:  # large whole numbers
        values = numpy.rint(10.0 ** (rng.randint(3, 9) + 2 * rng.rand(count)))
    elif kind == 6:  # ties in the last digit printed
        values = rng.randint(-4096, 4096, count) / 2.0 ** rng.randint(1, 12)
    elif kind == 7:  # next to the thresholds
        base = rng.choice([1e-4, 1e-1, 1.0, 1e3, 1e5, 1e8])
        values = base * rng.choice([1, 1, 1000, 0.001], count)
        values = numpy.nextafter(values, rng.choice([0, numpy.inf]) if rng.rand() < 0.5 else values)
    elif kind == 8:  # subnormals and other ends of the range
        tiny = numpy.finfo(dtype).tiny
        values = normal * rng.choice([tiny, tiny / 64, numpy.finfo(dtype).max / 8])
    elif kind == 9:  # nothing that is finite and not zero
        values = rng.choice([0.0, -0.0, numpy.nan, numpy.inf, -numpy.inf], count)
    elif kind == 10:  # decimal fractions
        values = rng.randint(-999, 999, count) / 10.0 ** rng.randint(1, 6)
    else:  # any bits at all
        return numpy.frombuffer(rng.bytes(count * numpy.dtype(dtype).itemsize), dtype).copy()
    if rng.rand() < 0.25:
        special = rng.choice([0.0, -0.0, numpy.nan, numpy.inf, -numpy.inf], count)
        values = numpy.where(rng.rand(count) < 0.2, special, values)
    return values.astype(dtype)


def integers(rng, dtype, count):
    """Integers of one magnitude, of either sign if there is one."""
    limits = numpy.iinfo(dtype)
    reach = int(2.0 ** rng.uniform(0, 63))
    low, high = max(-reach, limits.min), min(reach, limits.max, 2**63 - 1)
    return rng.randint(rng.choice([low, 0]), high, count, dtype="int64").astype(dtype)


def elements(rng, dtype, count):
    """Random elements."""
    with numpy.errstate(all="ignore"):
        if dtype == "bool":
            return rng.randint(0, 2, count).astype("bool")
        return (floats if dtype in FLOATS else integers)(rng, dtype, count)


def random_shape(rng):
    """An even mix of ranks 0 to 5; one in twelve is empty."""
    rank = rng.randint(6)
    longest = [1, 60, 9, 5, 4, 3][rank]
    shape = [int(extent) for extent in rng.randint(1, longest + 1, rank)]
    if rank and rng.rand() < 1 / 12:
        shape[rng.randint(rank)] = 0
    return shape


def large_shape(rng):
    """An even mix of ranks 1 to 5, summarised by default, to elements that are not many."""
    rank = rng.randint(1, 6)
    while True:
        shape = [int(extent) for extent in 10 ** rng.uniform(0, 4, rank)]
        shown = math.prod(min(6, extent) for extent in shape)
        if 1000 < math.prod(shape) <= 20000 and shown <= 144:
            return shape


def tile_size(rng, count):
    """A number of elements that shares no factor with any extent, so that the rows differ."""
    while True:
        size = rng.randint(50, 120)
        if math.gcd(size, count) == 1:
            return size


def random_options(rng):
    """Half of the time the defaults, else one or more options that make a difference."""
    options = {}
    if rng.rand() < 0.5:
        if rng.rand() < 0.5:
            options["precision"] = int(rng.randint(0, 9))
        if rng.rand() < 0.5:
            options["threshold"] = int(rng.choice([0, 5, 10, 50]))
            options["edgeitems"] = int(rng.randint(1, 5))
        if rng.rand() < 0.5:
            options["linewidth"] = int(rng.choice([0, 10, 20, 40, 60, 79, 81, 120, 200]))
        if rng.rand() < 0.5:
            options["sci_mode"] = bool(rng.randint(2))
    return options


def hex_case(array, shape, options):
    """A tensor with its elements in hex, or only a tile of them."""
    count = math.prod(shape)
    data = array.astype(array.dtype.newbyteorder("<")).tobytes().hex()
    return {"dtype": array.dtype.name, "shape": shape, "options": options,
            "hex" if array.size == count else "tile": data,
            "text": torch_text(numpy.resize(array, count), shape, options)}


def random_case(rng, large, default):
    """Any tensor, small or large, with the default options or with any."""
    dtype = rng.choice(["float32"] * 8 + FLOATS * 3 + INTEGERS + ["bool"])
    shape = large_shape(rng) if large else random_shape(rng)
    if 0 in shape and dtype in ("uint16", "uint32", "uint64"):
        dtype = "uint8"  # see torch_text
    options = {} if default else random_options(rng)
    count = math.prod(shape)
    array = elements(rng, dtype, tile_size(rng, count) if large else count)
    return hex_case(array, shape, options)


def edge_cases():
    """Numbers on either side of each rule's edge, and suffixes that do and do not fit the line."""
    below, above = numpy.nextafter([1e-4, 1e-4], [0, 1])
    for values in ([1e-4], [below], [above], [1e8], [1e8 + 1], [1e8, 1e8 - 0.5], [1e8 + 0.5, 1e8],
                   [1, 1000], [1, 1001], [-0.5, 500], [-0.5, 500.5], [2**24 + 1], [0.0, -0.0],
                   [1e308, 5e-324], [numpy.nan, 100], [-numpy.inf, 0.25]):
        for options in ({}, {"sci_mode": True}, {"sci_mode": False}):
            yield hex_case(numpy.array(values, "float64"), [len(values)], options)
    for linewidth in (0, 8, 10, 26, 27, 28, 29, 40, 47, 48, 49, 50, 80):
        empty, one = numpy.array([], "float16"), numpy.array([1.0], "float16")
        yield hex_case(empty, [10, 0, 3], {"linewidth": linewidth})
        yield hex_case(one, [1], {"linewidth": linewidth})


def recipe_case(dtype, shape, recipe, **options):
    """A tensor of any size, its elements by recipe."""
    index = numpy.arange(numpy.prod(shape, dtype="int64"), dtype="int64")
    whole = index * recipe["multiplier"] % recipe["modulus"] + recipe["offset"]
    exact = whole if recipe["divisor"] == 1 else whole / recipe["divisor"]
    array = exact.astype(dtype)
    assert (array == exact).all()
    return {"dtype": dtype, "shape": shape, "options": options, "recipe": recipe,
            "text": torch_text(array, shape, options)}


def recipe(multiplier, modulus, offset=0, divisor=1):
    """See the head of this file."""
    return {"multiplier": multiplier, "modulus": modulus, "offset": offset, "divisor": divisor}


def large_cases():
    """Tensors about the default threshold of 1000 elements, and far over it."""
    quarters = recipe(7, 1999, -1000, 4)
    fine = recipe(1237, 65521, -32000, 65536)
    bytes_ = recipe(5, 251, 0)
    return [
        recipe_case("float32", [1000], quarters),
        recipe_case("float32", [1001], quarters),
        recipe_case("float32", [40, 25], fine),
        recipe_case("float32", [40, 26], fine),
        recipe_case("float32", [7, 7, 30], fine),
        recipe_case("float32", [6, 6, 6, 6], fine),
        recipe_case("float32", [5, 7, 8, 9], fine),
        recipe_case("float32", [2, 3, 4, 5, 11], fine),
        recipe_case("float32", [2000, 3], quarters),
        recipe_case("float32", [3, 2000], recipe(1, 6000)),
        recipe_case("float32", [1, 1, 1, 1, 1200], recipe(1, 1200, 0, 2)),
        recipe_case("float32", [1200, 1, 1, 1, 1], recipe(1, 1200, 0, 2)),
        recipe_case("float32", [1500, 1], fine, edgeitems=1),
        recipe_case("float32", [50, 50], fine, edgeitems=12, linewidth=100),
        recipe_case("float32", [50, 50], fine, edgeitems=30),
        recipe_case("float32", [300], recipe(1, 300, 0, 1), threshold=299, linewidth=20),
        # What is left out has no say in the width, nor in the notation.
        recipe_case("float32", [5000], recipe(3, 100000, 0, 1)),
        recipe_case("float64", [300, 500], recipe(11, 1000003, -500000, 64)),
        recipe_case("float64", [64, 3, 64], recipe(1, 2**30, 1, 1 << 20)),
        recipe_case("float16", [2, 1024], recipe(37, 2003, -1000, 16), precision=6),
        recipe_case("float16", [1024, 2], recipe(37, 2003, -1000, 1)),
        recipe_case("int64", [10, 1000], recipe(99991, 2**40, -(2**39))),
        recipe_case("int32", [1001], recipe(1, 1001, -500)),
        recipe_case("int16", [33, 33], recipe(1, 1089, -500)),
        recipe_case("int8", [1000], recipe(3, 200, -100)),
        recipe_case("uint8", [9, 9, 9, 9], bytes_),
        recipe_case("uint16", [1001], recipe(611, 65521)),
        recipe_case("uint32", [16, 16, 16], recipe(2**20 + 1, 2**32)),
        recipe_case("uint64", [1, 2000], recipe(2**40 + 1, 2**62)),
        recipe_case("bool", [1001], recipe(1, 2)),
        recipe_case("bool", [3, 1001], recipe(3, 2)),
        recipe_case("float32", [1] * 64, recipe(1, 2, 5)),
        recipe_case("float32", [2] + [1] * 61 + [2, 2], recipe(1, 8, 0, 2)),
        recipe_case("int64", [2] + [1] * 61 + [2, 400], recipe(1, 10000)),
    ]


def lines(cases):
    """A JSON array with a case on each line."""
    return "[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]"


def main():
    """Writes cases.json beside this file."""
    rng = numpy.random.RandomState(2024)
    cases = [*large_cases(), *edge_cases()]
    cases += [random_case(rng, large=False, default=False) for _ in range(150)]
    rng = numpy.random.RandomState(2025)
    more = [random_case(rng, large=i % 4 == 0, default=i % 6 != 0) for i in range(360)]
    origin = f"torch {torch.__version__}, data/torch_text/make_cases.py"
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases.json")
    with open(path, "w", encoding="ascii") as file:
        file.write('{"origin": ' + json.dumps(origin) + ',\n"cases": ' + lines(cases))
        file.write(',\n"random": ' + lines(more) + "}\n")


if __name__ == "__main__":
    main()
