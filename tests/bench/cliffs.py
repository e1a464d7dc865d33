"""Where a kind of rows takes far longer than others, as those do that integers decide.

    /usr/bin/python3 tests/bench/cliffs.py [LNORM] [NANOSECONDS] [PATTERN]     needs python3-numpy

Runs commands on 4 million elements of many kinds, dtypes and row lengths, in $TMPDIR, and prints those that take more
nanoseconds an element (12). By default LNORM is build/release/lnorm. PATTERN: of what is printed, a regular expression.
"""

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy

ELEMENTS = 1 << 22
LENGTHS = (4, 64, 768, 1000, 4096, 30000, 1 << 18)
DTYPES = ("float16", "float32", "float64")
NORMAL = numpy.random.default_rng(3).standard_normal(ELEMENTS)
NUMBER = numpy.arange(ELEMENTS)

# Of all elements, by the length of a row.
KINDS = {
    "normal": lambda n: NORMAL,
    "mean 3": lambda n: 3 + NORMAL,
    "mean 1e4": lambda n: 1e4 + NORMAL,
    "all but constant": lambda n: 1 + NORMAL * 2**-20,
    "constant": lambda n: numpy.full(ELEMENTS, 0.1),
    "integers": lambda n: numpy.round(2 * NORMAL),
    "1 and -1": lambda n: numpy.sign(NORMAL),
    "relu": lambda n: numpy.maximum(NORMAL, 0),
    "one 1, else 0": lambda n: (NUMBER % n == 0).astype(float),
    "every other row 0": lambda n: numpy.where(NUMBER // n % 2 == 0, 0, NORMAL),
    "rising": lambda n: NUMBER % n / n,
    "1e-3": lambda n: 1e-3 * NORMAL,
    "1e-40": lambda n: 1e-40 * NORMAL,
    "1e37": lambda n: 1e37 * NORMAL,
    "heavy tails": lambda n: NORMAL**7,
    "one outlier": lambda n: numpy.where(NUMBER % n == 0, 1e6, NORMAL),
    "one NaN": lambda n: numpy.where(NUMBER % n == 0, numpy.nan, NORMAL),
}
COMMANDS = {
    "apply": "x.npy -o y.npy",
    "apply --rms": "x.npy --rms -o y.npy",
    "softmax": "softmax x.npy -o y.npy",
    "stats": "stats x.npy",
    "grad": "grad x.npy --dy dy.npy --dx dx.npy",
    "grad where dy is x": "grad x.npy --dy x.npy --dx dx.npy",
    "grad --rms": "grad x.npy --dy dy.npy --rms --dx dx.npy",
    "grad of all": "grad x.npy --dy dy.npy --weight w.npy --dx dx.npy --dweight dw.npy --dbias db.npy",
}


def save(folder, name, elements, dtype, length):
    with numpy.errstate(over="ignore"):
        rows = elements[: ELEMENTS // length * length].astype(dtype)
    numpy.save(folder / name, rows.reshape(-1, length) if name != "w.npy" else rows[:length])


def nanoseconds(command, folder, most):
    """Of an element; the best of three runs if the first takes more than most."""
    best = float("inf")
    for _ in range(3):
        begin = time.perf_counter()
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        best = min(best, (time.perf_counter() - begin) / ELEMENTS * 1e9)
        if best <= most:
            break
    return best


def main():
    given = sys.argv[1:]
    lnorm, most, pattern = given + ["build/release/lnorm", "12", ""][len(given) :]
    program, most = str(Path(lnorm).resolve()), float(most)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for length in LENGTHS:
            for dtype in DTYPES:
                save(folder, "dy.npy", numpy.roll(NORMAL, 1000), dtype, length)
                save(folder, "w.npy", NORMAL, dtype, length)
                for kind, elements in KINDS.items():
                    save(folder, "x.npy", elements(length), dtype, length)
                    for label, command in COMMANDS.items():
                        text = f"{label}, {dtype}, rows of {length}, {kind}"
                        if not re.search(pattern, text):
                            continue
                        found = nanoseconds([program, *command.split()], folder, most)
                        if found > most:
                            print(f"{text:60} {found:8.1f} ns", flush=True)


if __name__ == "__main__":
    main()
