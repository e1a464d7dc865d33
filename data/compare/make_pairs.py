#!/usr/bin/python3
"""Makes pairs.json, pairs of tensors and how they compare, for tests/golden/compare_test.cpp.

Run it with Debian's python3-numpy:  /usr/bin/python3 data/compare/make_pairs.py

A pair has the two tensors (dtype, shape, and the elements as little-endian bytes in hex), the
options of `lnorm compare`, and the result: its JSON, but with indices only where that has the two
elements, too. NumPy computes in float64; where a 64-bit integer takes part, the difference is that
of Python's integers and fractions, exact and then rounded to float64. What the errors are like is
computed in fractions, and in decimals of 60 digits. The default tolerances are those of a pair for
which no criterion is given; of --rtol and --atol alone the other is 0.
"""

import decimal
import fractions
import json
import math
import os

import numpy

TOLERANCES = {"float16": (1e-3, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7)}
FLOATS = list(TOLERANCES)
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
DTYPES = FLOATS + INTEGERS + ["bool"]
WIDE = ("int64", "uint64")
DEFAULTS = {"max_ulp": None, "equal_nan": True, "max_diffs": 5}
CRITERIA = ("max_abs", "max_mismatched", "max_mean_abs", "max_rmse", "min_cosine", "min_sqnr")
PRECISIONS = {"float16": (11, -24), "float32": (24, -149), "float64": (53, -1074)}
SPECIAL = [numpy.nan, -numpy.nan, numpy.inf, -numpy.inf]


# ---- What compare is to find.


def limits(dtype):
    """The least and the greatest integer of a dtype."""
    info = None if dtype == "bool" else numpy.iinfo(dtype)
    return (0, 1) if info is None else (int(info.min), int(info.max))


def positions(array):
    """Where floats lie among all of their dtype: zero at 0, infinity next to the largest."""
    size = array.dtype.itemsize
    bits = array.view(f"uint{8 * size}").astype(object)
    sign = 1 << (8 * size - 1)
    return numpy.where(bits >= sign, sign - bits, bits)


def floats_from_positions(at, dtype):
    """The reverse of positions."""
    size = numpy.dtype(dtype).itemsize
    sign = 1 << (8 * size - 1)
    return numpy.where(at < 0, sign - at, at).astype(f"uint{8 * size}").view(dtype)


def into(array, dtype):
    """Finite numbers in another dtype: the nearest, ties to even; saturated, or an infinity."""
    if dtype in FLOATS:
        # A cast rounds once. From 64-bit integers to float16 NumPy goes by way of float32, which
        # holds exactly all that is less than float16's infinity.
        with numpy.errstate(over="ignore"):
            return array.astype(dtype)
    low, high = limits(dtype)
    whole = [min(max(round(value), low), high) for value in array.tolist()]
    return numpy.array(whole, dtype)


def exact_numbers(array):
    """Python's integers and fractions."""
    numbers = numpy.empty(array.shape, object)
    numbers[:] = [fractions.Fraction(value) for value in array.tolist()]
    return numbers


def ulp_distances(actual, expected):
    """Of finite elements in a row: how many steps the expected dtype has between them."""
    if expected.dtype.name in FLOATS:
        nearest = into(actual, expected.dtype.name)
        steps = numpy.abs(positions(nearest) - positions(expected))
        return numpy.where(numpy.isinf(nearest), 2**64 - 1, steps)
    exact = numpy.abs(exact_numbers(actual) - exact_numbers(expected))
    return numpy.array([min(math.ceil(difference), 2**64 - 1) for difference in exact], object)


def is_wider(dtype, than):
    """Whether a float dtype has more precision and range than another."""
    return dtype in FLOATS and than in FLOATS and FLOATS.index(dtype) > FLOATS.index(than)


def real_distances(actual, expected):
    """Of finite elements in a row: |actual - expected| in ulp of the actual dtype at expected."""
    precision, least = PRECISIONS[actual.dtype.name]
    result = numpy.zeros(actual.shape, object)
    for i, (a, e) in enumerate(zip(exact_numbers(actual), exact_numbers(expected))):
        # frexp gives a factor from 1/2 on.
        exponent = least if e == 0 else max(math.frexp(float(e))[1] - precision, least)
        result[i] = float(abs(a - e) / fractions.Fraction(2) ** exponent)
    return result


def as_float(number):
    """The nearest double, or an infinity."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def errors_of(actual, expected):
    """What the errors of finite elements are like."""
    same_dtype = actual.dtype == expected.dtype
    pairs = actual.size
    zeros_differ = numpy.signbit(actual) != numpy.signbit(expected)
    a, e = exact_numbers(actual), exact_numbers(expected)
    equal = a == e
    result = {"pairs": pairs, "equal_bits": None, "equal_numbers": int(numpy.count_nonzero(equal)),
              "correctly_rounded": None, "mean": None, "mean_absolute": None,
              "mean_toward_zero": None, "mean_away_from_zero": None,
              "root_mean_square": None, "cosine": None, "sqnr_db": None}
    if same_dtype:
        result["equal_bits"] = int(numpy.count_nonzero(equal & ~((a == 0) & zeros_differ)))
    if is_wider(expected.dtype.name, actual.dtype.name):
        nearest = into(expected, actual.dtype.name)
        result["correctly_rounded"] = int(numpy.count_nonzero(nearest == actual))
    if pairs == 0:
        return result
    decimals = decimal.Context(prec=60, Emax=99999, Emin=-99999)

    def as_decimal(number):
        number = fractions.Fraction(number)
        return decimals.divide(decimal.Decimal(number.numerator),
                               decimal.Decimal(number.denominator))

    differences = a - e
    squared, signal, size = sum(differences ** 2), sum(e ** 2), sum(a ** 2)
    result["mean"] = as_float(sum(differences) / fractions.Fraction(pairs))
    result["mean_absolute"] = as_float(sum(abs(differences)) / fractions.Fraction(pairs))
    # Of the way from expected to actual what leads toward zero.
    toward = sum(max(abs(y) - (abs(x) if x * y > 0 else 0), 0) for x, y in zip(a, e))
    result["mean_toward_zero"] = as_float(toward / fractions.Fraction(pairs))
    result["mean_away_from_zero"] = as_float(
        (sum(abs(differences)) - toward) / fractions.Fraction(pairs))
    result["root_mean_square"] = as_float(decimals.sqrt(as_decimal(
        squared / fractions.Fraction(pairs))))
    if signal and size:
        result["cosine"] = float(decimals.divide(as_decimal(sum(a * e)), decimals.sqrt(
            as_decimal(signal * size))))
    if squared and signal:
        ratio = decimals.log10(as_decimal(fractions.Fraction(signal) / squared))
        result["sqnr_db"] = float(decimals.multiply(ratio, decimal.Decimal(10)))
    else:
        result["sqnr_db"] = "-Infinity" if squared else "Infinity"
    return {key: json_number(value) if isinstance(value, float) else value
            for key, value in result.items()}


def distribution(ulps):
    """How many distances are at most 0, 1/2, 1, 2, 4 and so on: the counts alone."""
    bounds = [0, 0.5, *(2 ** i for i in range(65)), math.inf]
    within = [int(numpy.count_nonzero((ulps <= bound) & (ulps < 2**64 - 1) if bound < math.inf
                                      else ulps == ulps)) for bound in bounds]
    last = next((i for i, count in enumerate(within) if count == ulps.size), -1)
    return within[:last + 1] if ulps.size else []


def failures(result, options, fail_tolerance, fail_finite):
    """The criteria that do not hold, with what was found."""
    failed = []

    def check(holds, criterion, found):
        if not holds:
            failed.append({"criterion": criterion, "found": found})

    def value_of(key):
        greatest_of = result["greatest_" + key]
        return None if greatest_of is None else as_number(greatest_of["value"])

    errors = result["errors"]
    check(fail_finite == 0, "finite", fail_finite)
    limit = options.get("max_mismatched")
    if limit is not None:
        percent = isinstance(limit, str)
        most = fractions.Fraction(limit[:-1]) * result["elements"] / 100 if percent else limit
        check(result["mismatched"] <= most, "max_mismatched", result["mismatched"])
    else:
        check(fail_tolerance == 0, "tolerance", fail_tolerance)
        for criterion, key in (("max_ulp", "ulp_distance"), ("max_abs", "absolute_difference")):
            if options.get(criterion) is not None and value_of(key) is not None:
                check(value_of(key) <= options[criterion], criterion, json_number(value_of(key)))
    for criterion, key in (("max_mean_abs", "mean_absolute"), ("max_rmse", "root_mean_square"),
                           ("min_cosine", "cosine"), ("min_sqnr", "sqnr_db")):
        if options.get(criterion) is None or errors["pairs"] == 0:
            continue
        found = errors[key]
        if criterion == "min_cosine" and errors["equal_numbers"] == errors["pairs"]:
            continue
        if found is None:
            check(False, criterion, "NaN")
            continue
        value, bound = as_number(found), options[criterion]
        check(value <= bound if criterion.startswith("max") else value >= bound, criterion, found)
    return failed


def as_number(value):
    """A number of the JSON."""
    return float(value) if isinstance(value, str) else value


def index_list(flat, shape):
    """The index of an element."""
    return [int(i) for i in numpy.unravel_index(flat, shape)]


def json_number(value):
    """An integer of Python or a double, for JSON."""
    if isinstance(value, int):
        return value
    value = float(value)
    assert not math.isnan(value)
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def greatest(values, counting, shape):
    """The greatest value of those that count, and its first index in the shape."""
    if not counting.any():
        return None
    first = numpy.argmax(numpy.where(counting, values, -1))
    value = values[first]
    assert value == numpy.max(values[counting])
    return {"value": json_number(value), "index": index_list(first, shape)}


def tolerance_of(actual, expected, options):
    """The tolerance as the JSON has it."""
    bounds = loosest(actual, expected)
    given = {key for key in ("max_ulp", *CRITERIA) if options.get(key) is not None}
    if "rtol" in options or "atol" in options:
        bounds = [options.get("rtol", 0.0), options.get("atol", 0.0)]
    elif given & {"max_ulp", "max_abs"} or (given and "max_mismatched" not in given):
        bounds = [None, None]
    return {"rtol": bounds[0], "atol": bounds[1],
            "max_ulp": options["max_ulp"], "equal_nan": options["equal_nan"],
            **{key: options.get(key) for key in CRITERIA}}


def loosest(actual, expected):
    """The default rtol and atol."""
    return [max(TOLERANCES.get(array.dtype.name, (0.0, 0.0))[i] for array in (actual, expected))
            for i in range(2)]


@numpy.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore")
def compare(actual, expected, options):
    """The result of a comparison."""
    tolerance = tolerance_of(actual, expected, options)
    result = {"equal": False, "elements": None, "mismatched": None, "tolerance": tolerance,
              "greatest_absolute_difference": None, "greatest_relative_difference": None,
              "greatest_ulp_distance": None, "non_finite_one_side": None,
              "rounded_to_infinity": None, "non_finite_differing": None, "mismatches": [],
              "failed": [], "errors": None, "ulp": None}
    if actual.shape != expected.shape:
        return result

    shape = actual.shape
    actual, expected = actual.ravel(), expected.ravel()
    actual64, expected64 = actual.astype("float64"), expected.astype("float64")
    finite = numpy.isfinite(actual64) & numpy.isfinite(expected64)
    scale = numpy.abs(expected64)
    wide = actual.dtype.name in WIDE or expected.dtype.name in WIDE
    difference = numpy.abs(actual64 - expected64)
    if wide:
        exact = numpy.abs(exact_numbers(actual[finite]) - exact_numbers(expected[finite]))
        difference[finite] = exact.astype("float64")
    equal = difference == 0
    passed = finite.copy()
    if tolerance["rtol"] is not None:
        passed = finite & (difference <= tolerance["atol"] + tolerance["rtol"] * scale)
    alike = ~finite & (actual64 == expected64)
    if tolerance["equal_nan"]:
        alike |= numpy.isnan(actual64) & numpy.isnan(expected64)
    if not wide and tolerance["rtol"] is not None:
        assert (passed | alike == numpy.isclose(actual64, expected64, tolerance["rtol"],
                                                tolerance["atol"], tolerance["equal_nan"])).all()

    ulps = numpy.zeros(actual.shape, object)
    wider = is_wider(expected.dtype.name, actual.dtype.name)
    distances = real_distances if wider else ulp_distances
    ulps[finite] = distances(actual[finite], expected[finite])
    fail_tolerance = numpy.count_nonzero(finite & ~passed)
    if tolerance["max_ulp"] is not None:
        passed &= (ulps <= tolerance["max_ulp"]).astype(bool)
    if tolerance["max_abs"] is not None:
        passed &= difference <= tolerance["max_abs"]
    rounded = numpy.zeros(actual.shape, bool)
    if wider:
        rounded = numpy.isfinite(expected64) & numpy.isinf(actual64) & (
            into(expected, actual.dtype.name).astype("float64") == actual64)
    passed |= alike | rounded | finite & equal

    one_side = numpy.isfinite(actual64) != numpy.isfinite(expected64)
    neither = ~numpy.isfinite(actual64) & ~numpy.isfinite(expected64)
    mismatches = numpy.flatnonzero(~passed)[:options["max_diffs"]]
    result.update({
        "elements": int(passed.size),
        "mismatched": int(numpy.count_nonzero(~passed)),
        "greatest_absolute_difference": greatest(difference, finite, shape),
        "greatest_relative_difference": greatest(difference / scale, finite & (scale != 0),
                                               shape),
        "greatest_ulp_distance": greatest(ulps, finite, shape),
        "non_finite_one_side": int(numpy.count_nonzero(one_side)),
        "rounded_to_infinity": int(numpy.count_nonzero(rounded)),
        "non_finite_differing": int(numpy.count_nonzero(neither & ~passed)),
        "mismatches": [index_list(flat, shape) for flat in mismatches],
        "errors": errors_of(actual[finite], expected[finite]),
        "ulp": {"dtype": (actual if wider else expected).dtype.name,
                "distribution": distribution(ulps[finite])}})
    fail_finite = int(numpy.count_nonzero(~finite & ~passed))
    result["failed"] = failures(result, options, int(fail_tolerance), fail_finite)
    result["equal"] = not result["failed"]
    return result


def command_line(options):
    """The options as words."""
    words = []
    for key in ("rtol", "atol", "max_ulp", "max_diffs", *CRITERIA):
        if options.get(key) != DEFAULTS.get(key):
            words += ["--" + key.replace("_", "-"), str(options[key])]
    return words if options["equal_nan"] else words + ["--no-equal-nan"]


def tensor(array):
    """A tensor for JSON."""
    data = array.astype(array.dtype.newbyteorder("<")).tobytes().hex()
    return {"dtype": array.dtype.name, "shape": list(array.shape), "hex": data}


def pair(actual, expected, **options):
    """A pair and its result."""
    actual, expected = numpy.asarray(actual), numpy.asarray(expected)
    options = {**DEFAULTS, **options}
    return {"actual": tensor(actual), "expected": tensor(expected),
            "options": command_line(options), "result": compare(actual, expected, options)}


# ---- Random pairs.


def floats(rng, dtype, count):
    """Finite floats of one of many kinds."""
    info = numpy.finfo(dtype)
    kind = rng.randint(6)
    values = rng.standard_normal(count)
    if kind == 1:  # all magnitudes
        values = numpy.copysign(2.0 ** rng.uniform(info.minexp, info.maxexp, count), values)
    elif kind == 2:  # whole numbers
        values = numpy.rint(values * 10.0 ** rng.randint(0, 4))
    elif kind == 3:  # subnormals and a little more
        values = values * float(info.tiny) * rng.choice([1, 0.01])
    elif kind == 4:  # the other end
        values = values * (float(info.max) * rng.choice([1, 0.25]))
    elif kind == 5:  # any bits
        values = numpy.frombuffer(rng.bytes(count * numpy.dtype(dtype).itemsize), dtype)
    values = numpy.where(rng.rand(count) < 0.05, rng.choice([0.0, -0.0], count), values)
    return finite(values, dtype)


def finite(values, dtype):
    """As the dtype, with its largest where that overflows, and 0 for NaN."""
    return numpy.nan_to_num(values.astype(dtype))


def integers(rng, dtype, count):
    """Integers or bool of one of many kinds."""
    low, high = limits(dtype)
    kind = rng.randint(4)
    if kind == 0 and dtype != "bool":  # any bits
        return numpy.frombuffer(rng.bytes(count * numpy.dtype(dtype).itemsize), dtype)
    if kind == 1:  # at the ends, and about the integers that doubles end at
        ends = [low, low + 1, high - 1, high, -2**53, -2**53 - 1, 2**53, 2**53 + 1, 2**63, 0]
        values = [ends[i] for i in rng.randint(0, len(ends), count)]
    else:
        reach = 2.0 ** rng.uniform(1, [0, 0, 8, 64][kind])
        values = [int(value) for value in rng.uniform(-reach, reach, count)]
    return numpy.array([min(max(value, low), high) for value in values], dtype)


def elements(rng, dtype, count):
    """Random finite elements."""
    return (floats if dtype in FLOATS else integers)(rng, dtype, count)


def step(array, steps):
    """Finite elements moved by so many units in the last place."""
    dtype = array.dtype.name
    if dtype in FLOATS:
        last = positions(numpy.array([numpy.finfo(dtype).max]))[0]
        return floats_from_positions(numpy.clip(positions(array) + steps, -last, last), dtype)
    return numpy.clip(array.astype(object) * 1 + steps, *limits(dtype)).astype(dtype)


def near(rng, expected, dtype, tolerance):
    """Finite elements of a dtype that are mostly not far from the expected ones."""
    count = expected.size
    other = elements(rng, dtype, count)
    same = into(expected, dtype)
    same = finite(same, dtype) if dtype in FLOATS else same
    kind = rng.randint(8)
    if kind == 0:
        return same
    if kind == 1:
        return other
    if kind == 2:  # few differ
        return numpy.where(rng.rand(count) < 0.1, other, same)
    if kind == 3:
        return step(same, rng.randint(-4, 5, count).astype(object))
    # Near the tolerance, or just at it.
    expected64 = expected.astype("float64")
    width = tolerance["atol"] + tolerance["rtol"] * numpy.abs(expected64)
    width = width * (rng.uniform(-2, 2, count) if kind < 6 else rng.choice([-1, 1], count))
    moved = into(numpy.nan_to_num(expected64 + width), dtype)
    moved = finite(moved, dtype) if dtype in FLOATS else moved
    return step(moved, rng.randint(-1, 2, count).astype(object)) if kind == 7 else moved


def sprinkle(rng, array, mask, values):
    """Puts some of the values where the mask says, if the dtype has them."""
    if array.dtype.name not in FLOATS:
        return array
    return numpy.where(mask, values, array).astype(array.dtype)


def with_non_finite(rng, actual, expected, sides):
    """NaN and infinities in some elements of one side or both, there in some places alike."""
    count = actual.size
    rate = rng.choice([0.03, 0.2, 0.2, 0.7])
    if sides == "both":
        mask, values = rng.rand(count) < rate, rng.choice(SPECIAL, count)
        actual = sprinkle(rng, actual, mask, values)
        expected = sprinkle(rng, expected, mask, values)
    if sides in ("actual", "both"):
        actual = sprinkle(rng, actual, rng.rand(count) < rate, rng.choice(SPECIAL, count))
    if sides in ("expected", "both"):
        expected = sprinkle(rng, expected, rng.rand(count) < rate, rng.choice(SPECIAL, count))
    return actual, expected


def random_shape(rng):
    """Ranks 0 to 4; one in twenty is empty."""
    rank = rng.choice(5, p=[0.04, 0.36, 0.3, 0.2, 0.1])
    longest = [1, 201, 15, 6, 4][rank]
    shape = [int(longest ** rng.rand()) for _ in range(rank)]
    if rank and rng.rand() < 1 / 20:
        shape[rng.randint(rank)] = 0
    return shape


def random_options(rng):
    """Half of the time the defaults."""
    options = {}
    if rng.rand() < 0.5:
        if rng.rand() < 0.4:
            options["rtol"] = float(rng.choice([0, 1e-16, 1e-5, 1e-3, 0.1, 0.5, 3]))
        if rng.rand() < 0.4:
            options["atol"] = float(rng.choice([0, 1e-40, 1e-8, 0.001, 0.3, 1, 2.5, 1e18]))
        if rng.rand() < 0.4:
            options["max_ulp"] = int(rng.choice([0, 1, 2, 3, 10, 1000, 2**32]))
        if rng.rand() < 0.4:
            options["equal_nan"] = False
        if rng.rand() < 0.2:
            options["max_diffs"] = int(rng.choice([0, 1, 2, 30]))
    return options


def random_pair(rng, actual_dtype, expected_dtype, sides, options=None):
    """Any small pair."""
    shape = random_shape(rng)
    options = random_options(rng) if options is None else options
    count = int(numpy.prod(shape))
    with numpy.errstate(all="ignore"):
        expected = elements(rng, expected_dtype, count)
        bounds = loosest(numpy.empty(0, actual_dtype), expected)
        tolerance = {"rtol": options.get("rtol", bounds[0]), "atol": options.get("atol", bounds[1])}
        actual = near(rng, expected, actual_dtype, tolerance)
        actual, expected = with_non_finite(rng, actual, expected, sides)
    return pair(actual.reshape(shape), expected.reshape(shape), **options)


def random_pairs(rng):
    """Every dtype with itself, the floats more often, and with every other."""
    sides = ["neither", "actual", "expected", "both"]
    for dtype in DTYPES:
        for i in range(16 if dtype in FLOATS else 4):
            yield random_pair(rng, dtype, dtype, sides[i % 4])
    for actual in DTYPES:
        for expected in DTYPES:
            if actual != expected:
                yield random_pair(rng, actual, expected, sides[rng.randint(4)])


def criteria_pairs(rng):
    """Floats, and criteria that about half of the time hold."""
    for i in range(120):
        actual, expected = rng.choice(FLOATS, 2)
        sides = "both" if i % 8 == 0 else "neither"
        entry = random_pair(rng, actual, expected, sides, {})
        errors, found = entry["result"]["errors"], entry["result"]["greatest_absolute_difference"]
        if errors is None or errors["pairs"] == 0:
            continue
        near_ones = {"max_ulp": entry["result"]["greatest_ulp_distance"]["value"],
                     "max_abs": found["value"], "max_mean_abs": errors["mean_absolute"],
                     "max_rmse": errors["root_mean_square"], "min_cosine": errors["cosine"],
                     "min_sqnr": errors["sqnr_db"]}
        options = {}
        for key, value in near_ones.items():
            if rng.rand() > 0.35 or isinstance(value, str) or value is None:
                continue
            value = float(value)
            if abs(value) < 1e300 and (key != "min_sqnr" or abs(value) > 1e-3):
                value *= rng.choice([0.5, 1 - 1e-9, 1 + 1e-9, 2])
                options[key] = max(-1.0, min(value, 1.0)) if key == "min_cosine" else value
        if rng.rand() < 0.4:
            options["max_mismatched"] = [0, 1, 3, 20, "0%", "12.5%", "100%"][rng.randint(7)]
        yield pair(array_of(entry["actual"]), array_of(entry["expected"]), **options)


def array_of(entry):
    """The reverse of tensor."""
    data = numpy.frombuffer(bytes.fromhex(entry["hex"]), entry["dtype"])
    return data.reshape(entry["shape"])


# ---- Pairs at the edges of the rules.


def edge_pairs():
    """Ends of ranges, ties, zeros, overflows and shapes."""
    array = numpy.array
    nan, inf = numpy.nan, numpy.inf

    # 64-bit integers beyond what doubles tell apart.
    signed = array([-2**63, -2**63, -1, 2**63 - 1, 2**53 + 1, 0], "int64")
    unsigned = array([2**64 - 1, 0, 2**64 - 1, 2**63, 2**53, 1], "uint64")
    yield pair(signed, unsigned)
    yield pair(unsigned, signed)
    yield pair(signed, unsigned, rtol=1.0, atol=1.0)
    yield pair(signed, unsigned, max_ulp=1)
    yield pair(array([-2**63, 2**63 - 1], "int64"), array([2**63 - 1, -2**63], "int64"))
    near_2_53 = array([2**53 + 1, 2**53 + 1, 2**62 + 1, 2**63 - 1, -2**63], "int64")
    doubles = array([2.0**53, 2.0**53 + 2, 2.0**62, 2.0**63, -2.0**63])
    yield pair(near_2_53, doubles, rtol=0.0, atol=0.0)
    yield pair(near_2_53, doubles, max_ulp=0)
    yield pair(doubles, near_2_53, rtol=0.0, atol=0.0)
    yield pair(doubles, near_2_53, max_ulp=0)
    yield pair(array([2**64 - 1, 2**24 + 1, 3], "uint64"),
               array([2.0**64, 2.0**24, inf], "float32"))
    yield pair(array([2**64 - 1, 65519, 65520, 1], "uint64"), array([65504] * 4, "float16"))
    yield pair(array([0.1, 1e300, -1e300, 5e-324, nan]), array([0, 2**63 - 1, 2, 0, 1], "int64"))
    # Rounded twice, these come out wrong: the difference; the nearest float32.
    for number, other in ((2**60 + 255, 127), (2**53 + 1, -1.5), (-2**53 - 1, 1.5)):
        yield pair(array([number], "int64"), array([other]))
        yield pair(array([other]), array([number], "int64"))
    yield pair(array([2**60 + 255], "uint64"), array([127], "int64"))
    middle = array([2**60 + i * 2**36 + j for i in (1, 3) for j in (-1, 0, 1)], "uint64")
    yield pair(middle, array([2.0**60] * 6, "float32"), max_ulp=1)
    for number in middle:
        yield pair(number, array(2.0**60, "float32"), max_ulp=1)
    halves = array([2**52 + 0.5, 2**52 - 0.5, 2**51 + 1.25, 2.0**64, -0.5, 3.5])
    yield pair(halves, array([2**52, 2**52, 2**51 + 1, 2**64 - 1, 0, 4], "uint64"), max_ulp=0)

    # Floats next to each other, about zero and at the ends.
    for dtype in FLOATS:
        info = numpy.finfo(dtype)
        least, most = info.smallest_subnormal, info.max
        zeros = array([0.0, -0.0, 0.0, -0.0, least, -least, -0.0], dtype)
        others = array([-0.0, 0.0, least, least, -least, 0.0, -least], dtype)
        yield pair(zeros, others, rtol=0.0, atol=0.0)
        yield pair(zeros, others, max_ulp=1, max_diffs=10)
        yield pair(array([most, -most, inf, most], dtype), array([-most, most, most, inf], dtype),
                   max_ulp=2)
    # Where float16 rounds to its infinity.
    many = array([65519.999999999, 65520, 1e300, 2049, 2051, 2.0**-25, 2.0**-24 * 1.5, -65520])
    near_them = array([65504, 65504, 65504, 2048, 2052, 0, 2.0**-24, 65504], "float16")
    yield pair(many, near_them)
    yield pair(many, near_them, max_ulp=1)

    # Halves of an ulp of the actual dtype, which is narrower; its infinity, and its subnormals.
    exact = array([1 + 2.0**-11, 1 + 2.0**-12, 65519.99, 65520, -65520, 1e300, 2.0**-26, 3e-8])
    narrow = array([1, 1, 65504, inf, inf, inf, 0, 2.0**-24], "float16")
    yield pair(narrow, exact, max_ulp=0.5)
    yield pair(narrow[:3], exact[:3], max_ulp=0.5)
    yield pair(narrow[:3], exact[:3], max_ulp=0.49)
    yield pair(narrow[3:4], exact[3:4], min_sqnr=10)
    yield pair(array([inf, 3e38], "float32"), array([2.0**128 - 2.0**103, 2.0**128 - 2.0**104]))
    yield pair(array([inf, 3e38], "float32"), array([2.0**128 - 2.0**102, -3e38]))

    # Squares beyond float64, at either end, and sums that cancel.
    yield pair(array([1e200, -1e-200, 3e-320]), array([1.1e200, 1e-200, 1e-320]))
    yield pair(array([1e-200, 2e-250, 0.0]), array([1.5e-200, 1e-250, 0.0]), max_rmse=1e-200)
    yield pair(array([1e308, -1.7e308, 1.0]), array([-1e308, 1.7e308, 1.0]), min_sqnr=-10)
    yield pair(array([2.0, 0.0, -1.0]), array([2.0, 1e-300, -1.0]), max_rmse=1e-300)
    yield pair(array([1e16, 1.0, -1e16, 1e-5]), array([0.0, 0.0, 0.0, 0.0]))
    yield pair(array([1e16, 1e-3, 1.0]), array([1e-3, -1e16, 3.0]), min_cosine=0)
    yield pair(array([0.0, 0.0]), array([1.0, 2.0]), min_cosine=-1)
    yield pair(array([1.0, 2.0]), array([0.0, -0.0]), min_cosine=-1, min_sqnr=-1000)
    yield pair(array([0.0, 0.0]), array([0.0, -0.0]), min_cosine=1, min_sqnr=1000)

    # How many may be out of bounds, but none that is not finite.
    yield pair(array([1.0, 2.0, 3.0, 4.0]), array([1.5, 2.5, 3.0, 4.0]), max_mismatched=2)
    yield pair(array([1.0, 2.0, 3.0, 4.0]), array([1.5, 2.5, 3.0, 4.0]), max_mismatched=1)
    yield pair(array([1.0, 2.0, 3.0, 4.0]), array([1.5, 2.5, 3.0, 4.0]), max_mismatched="50%")
    yield pair(array([1.0, 2.0, 3.0, 4.0]), array([1.5, 2.5, 3.0, 4.0]), max_mismatched="49.9%")
    yield pair(array([1.0, 2.0, nan, 4.0]), array([1.5, 2.5, 3.0, 4.0]), max_mismatched="100%")
    yield pair(array([nan, 2.0]), array([nan, 2.0]), max_rmse=1.0, equal_nan=False)

    # Differences and tolerances that float64 does not hold.
    huge = array([[1.0, -1e308, 1.7976931348623157e308], [1e308, 0.0, nan]])
    huger = array([[1.0, 1e308, -1.7976931348623157e308], [5e-324, 5e-324, 1.0]])
    yield pair(huge, huger)
    yield pair(huge, huger, rtol=4.0)
    yield pair(array([1e308, -1.0]), array([-1e308, 2.0]), rtol=1e300)
    yield pair(array([3e38, -3e38], "float32"), array([-1e308, 1.7976931348623157e308]))

    # NaN and infinities, and nothing else.
    special = array([nan, inf, -inf, nan, nan, inf, -inf, inf, -inf])
    specials = array([nan, inf, -inf, inf, -inf, nan, nan, -inf, inf], "float32")
    yield pair(special, specials)
    yield pair(special, specials, equal_nan=False, max_diffs=100)
    yield pair(array([nan, nan]), array([nan, -nan]))
    yield pair(array(nan, "float16"), array(nan, "float16"), equal_nan=False, max_ulp=10)
    yield pair(array([nan, 1.0, inf]), array([inf, 1.0, 0.0]), rtol=1e10, atol=1e300, max_ulp=2**32)

    # Floats that become integers: ties to even, the nearest; bool is 0 or 1.
    fractional = array([0.5, 1.5, -0.5, 2.5, 126.5, 127.5, -128.5, 300, -1e9], "float32")
    bytes_ = array([1, 1, -1, 3, 127, 127, -128, 127, -128], "int8")
    yield pair(fractional, bytes_)
    yield pair(fractional, bytes_, max_ulp=0, rtol=0.0, atol=0.0)
    yield pair(array([0, 1, 5, 1], "uint8"), array([False, True, True, False]))
    yield pair(array([False, True, True, False]), array([0.0, 1.0, 0.999999, nan]))

    # The first of equals, in C order; no pair with another expected value than 0.
    yield pair(array([[[1, 3], [3, 2]], [[0, 4], [4, 0]]], "int16"),
               array([[[0, 0], [0, 0]], [[0, 0], [0, 0]]], "int16"), max_diffs=3)
    yield pair(array([[2.0, 0.0], [0.0, 2.0]], "float16"), array([[1, 1], [1, 1]], "float16"))
    # Just at the tolerance, and a little beyond.
    edge = 1.0 + (1e-7 + 1e-7 * 1.0)
    yield pair(array([edge, numpy.nextafter(edge, 2), 2 - edge]), array([1.0, 1.0, 1.0]))

    # Without elements; with other shapes.
    for shape in ([0], [2, 0, 3]):
        yield pair(numpy.empty(shape, "float32"), numpy.empty(shape, "float32"))
    for shape, other in (([2, 3], [3, 2]), ([4], [4, 1]), ([], [1]), ([0], [0, 3]), ([2], [3])):
        yield pair(numpy.ones(shape, "float32"), numpy.ones(other, "int64"), max_ulp=3)


def main():
    """Writes pairs.json beside this file."""
    rng = numpy.random.RandomState(2024)
    pairs = [*edge_pairs(), *random_pairs(rng), *criteria_pairs(rng)]
    origin = f"NumPy {numpy.__version__}, data/compare/make_pairs.py"
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pairs.json")
    with open(path, "w", encoding="ascii") as file:
        file.write('{"origin": ' + json.dumps(origin) + ',\n"pairs": [\n')
        file.write(",\n".join(json.dumps(entry, allow_nan=False) for entry in pairs))
        file.write("\n]}\n")


if __name__ == "__main__":
    main()
