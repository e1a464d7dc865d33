#!/usr/bin/python3
"""Makes the files of data/float8: what PyTorch takes the dtypes of 8 bits for, and rounds to them.

Run it with the python3-torch and python3-numpy of Debian 13:  python3 data/float8/make.py
Made by PyTorch 2.6.0 and NumPy 2.2.4.

DTYPE_values.npy has the float32 value of each of the 256 codes. floats.npy has float32 numbers: every value of both
dtypes, every point halfway between two neighbors, the floats on either side of those, what is beyond the ends, and
random ones. DTYPE_codes.npy has the codes that they become, which saturate nowhere.
"""

import os

import numpy
import torch

FOLDER = os.path.dirname(os.path.abspath(__file__))
DTYPES = {"float8_e4m3fn": torch.float8_e4m3fn, "float8_e5m2": torch.float8_e5m2}


def save(name, array):
    """An array of this folder."""
    numpy.save(os.path.join(FOLDER, name + ".npy"), array)


def main():
    """All files."""
    codes = torch.arange(256, dtype=torch.uint8)
    numbers = [numpy.float32([0, numpy.inf, -numpy.inf, 480, 496, 61440, 65536, 1e9, -1e9, 1e-30, 1e-45])]
    for name, dtype in DTYPES.items():
        values = codes.view(dtype).to(torch.float32).numpy()
        save(name + "_values", values)
        finite = numpy.sort(values[numpy.isfinite(values)])
        halfway = (finite[1:] + finite[:-1]) / numpy.float32(2)
        numbers += [finite, halfway, numpy.nextafter(halfway, numpy.float32(numpy.inf)),
                    numpy.nextafter(halfway, numpy.float32(-numpy.inf))]
    random = numpy.random.default_rng(8)
    numbers.append((random.standard_normal(2000) * numpy.exp2(random.uniform(-20, 18, 2000))).astype(numpy.float32))
    floats = numpy.concatenate(numbers)
    save("floats", floats)
    for name, dtype in DTYPES.items():
        save(name + "_codes", torch.from_numpy(floats).to(dtype).view(torch.uint8).numpy())


if __name__ == "__main__":
    main()
