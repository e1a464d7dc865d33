#!/usr/bin/env python3
"""Holds the program of one machine against that of another: the same bytes, files, errors and exit status.

  tests/cross/same_bytes.py [--cases N] [--seed S] PROGRAM OTHER...

OTHER may be several words: an emulator, its options, and the program. Its kernels take turns. The tensors are random
ones, the same for the same seed: every dtype, the formats in turn, both byte orders and both memory orders of .npy, and
values that are hard to round.
"""

import argparse
import concurrent.futures
import json
import math
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile

FLOATS = ["float16", "bfloat16", "float32", "float64"]
DTYPES = FLOATS + ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
NPY = {"bool": "b1", "int8": "i1", "int16": "i2", "int32": "i4", "int64": "i8", "uint8": "u1", "uint16": "u2",
       "uint32": "u4", "uint64": "u8", "float16": "f2", "bfloat16": "V2", "float32": "f4", "float64": "f8"}
SAFETENSORS = {"bool": "BOOL", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64", "uint8": "U8",
               "uint16": "U16", "uint32": "U32", "uint64": "U64", "float16": "F16", "bfloat16": "BF16",
               "float32": "F32", "float64": "F64"}
STRUCT = {"bool": "?", "int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint8": "B", "uint16": "H",
          "uint32": "I", "uint64": "Q", "float16": "e", "float32": "f", "float64": "d"}
LARGEST = {"float16": 65504.0, "bfloat16": 3.3e38, "float32": 3.4e38, "float64": 1.7e308}


def rounded(value, dtype):
    """The value as the dtype holds it, more or less to nearest."""
    if not math.isfinite(value):
        return value
    value = max(-LARGEST[dtype], min(LARGEST[dtype], value))
    if dtype == "bfloat16":
        bits = struct.unpack("<I", struct.pack("<f", value))[0] & 0xFFFF0000
        return struct.unpack("<f", struct.pack("<I", bits))[0]
    return struct.unpack("<" + STRUCT[dtype], struct.pack("<" + STRUCT[dtype], value))[0]


def elements(rng, dtype, count, row_length):
    if dtype not in FLOATS:
        bits = {"bool": 1}.get(dtype, 8 * struct.calcsize("<" + STRUCT[dtype]))
        used = rng.choice([1, min(bits, 8), bits])
        low = -(1 << (used - 1)) if dtype.startswith("int") else 0
        return [low + rng.getrandbits(used) for _ in range(count)]
    kind = rng.choice(["normal", "normal", "offset", "exponents", "integers", "signs", "tiny", "huge", "special",
                       "constant"])
    offset = rng.choice([3.0, 100.0, 1e4])
    exponent = {"float16": 14, "float64": 300}.get(dtype, 37)
    values = []
    for i in range(count):
        value = rng.gauss(0, 1)
        if kind == "offset":
            value = offset + value * 2.0 ** -8
        elif kind == "exponents":
            value *= 2.0 ** rng.randint(-exponent, exponent)
        elif kind == "integers":
            value = float(rng.randint(-9, 9))
        elif kind == "signs":  # ties, with a weight to match
            value = rng.choice([-1.0, 1.0])
        elif kind == "tiny":
            value *= 10.0 ** -exponent
        elif kind == "huge":
            value *= LARGEST[dtype] / 8
        elif kind == "special" and rng.random() < 0.01:
            value = rng.choice([math.nan, math.inf, -math.inf])
        elif kind == "constant" and i // row_length % 2 == 0:
            value = offset
        values.append(rounded(value, dtype))
    return values


def packed(values, dtype, order):
    if dtype == "bfloat16":
        halves = [struct.unpack("<I", struct.pack("<f", v))[0] >> 16 for v in values]
        return struct.pack(f"{order}{len(values)}H", *halves)
    return struct.pack(f"{order}{len(values)}{STRUCT[dtype]}", *values)


def fortran(values, shape):
    """Elements in C order as they lie in Fortran order."""
    strides = [math.prod(shape[axis + 1:]) for axis in range(len(shape))]
    result = []
    for position in range(len(values)):
        at = 0
        for extent, stride in zip(shape, strides):
            at += position % extent * stride
            position //= extent
        result.append(values[at])
    return result


def npy(values, dtype, shape, order, in_fortran):
    data = packed(fortran(values, shape) if in_fortran else values, dtype, order)
    header = f"{{'descr': '{order}{NPY[dtype]}', 'fortran_order': {in_fortran}, 'shape': {tuple(shape)}, }}"
    header = header.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def safetensors(values, dtype, shape):
    data = packed(values, dtype, "<")
    header = json.dumps({"x": {"dtype": SAFETENSORS[dtype], "shape": shape, "data_offsets": [0, len(data)]}})
    header += " " * (-len(header) % 8)
    return struct.pack("<Q", len(header)) + header.encode() + data


def as_json(values, dtype, shape):
    if dtype == "bool":
        dtype = "uint8"  # JSON has no booleans that are numbers
    return json.dumps({"shape": shape, "data": [int(v) if v is True or v is False else v for v in values],
                       "dtype": dtype}).encode()


class Case:
    """Some files, and command lines that read them."""

    def __init__(self, number, seed):
        rng = random.Random(seed * 1000003 + number)
        self.files = {}
        self.options = {}  # of a file: how it is to be read
        dtype = DTYPES[number % len(DTYPES)]
        if number % 97 == 50:  # rows that go through in parts
            shape = rng.choice([[1, 400000], [400000, 2]])
            dtype = rng.choice(["float32", "float64"])
        else:
            length = rng.choice([1, 2, 3, 5, 8, 16, 17, 31, 64, 100, 300, 768, 1000])
            shape = [rng.randint(1, 6) for _ in range(rng.randint(0, 2))] + [length]
            rng.shuffle(shape)
        axes = sorted(rng.sample(range(len(shape)), rng.randint(1, len(shape))))
        if rng.random() < 0.5 or math.prod(shape) > 10000:
            axes = [max(range(len(shape)), key=lambda a: shape[a])]
        row_shape = [shape[a] for a in axes]
        row_length = math.prod(row_shape)
        count = math.prod(shape)
        values = elements(rng, dtype, count, row_length)
        x = self.add(rng, "x", values, dtype, shape, number // len(DTYPES))

        formula = ["--axes", ",".join(map(str, axes))]
        formula += rng.choice([[], ["--eps", "0"], ["--eps", "0.001"], ["--eps", "1e-300"]])
        formula += rng.choice([[], [], ["--eps-on", "std"], ["--eps-on", "max"], ["--rms"]])
        if row_length > 1 and rng.random() < 0.3:
            formula.append("--unbiased")
        for option in ("--weight", "--bias"):
            if rng.random() < 0.4:
                term_dtype = rng.choice(FLOATS)
                terms = elements(rng, term_dtype, row_length, row_length)
                name = self.add(rng, option[2:], terms, term_dtype, row_shape, rng.randrange(2))
                formula += [option, name[0]]
                if option == "--weight" and rng.random() < 0.3:
                    formula.append("--zero-centered-weight")
        read = x[1:]
        if "--weight" in formula or "--bias" in formula:
            read = []
            if x[1:]:  # --as is for all of them
                self.files.clear()
                x = self.add(rng, "x", values, dtype, shape, 2)
                for option in ("--weight", "--bias"):
                    if option in formula:
                        at = formula.index(option)
                        formula[at:at + 2] = [option, str(rng.gauss(0, 1))]
        written = rng.choice([[], ["--dtype", rng.choice(FLOATS)]])
        to = rng.choice(["npy", "npy", "safetensors", "json"])
        out = rng.choice([["--to", to], ["-o", f"y.{to}"]])
        save = rng.choice([[], ["--save-mean", "m.npy", "--save-rstd", "r.safetensors"]])
        if "--rms" in formula:
            save = save[2:]
        near = [v + abs(v) * 2.0 ** -rng.randint(6, 26) if math.isfinite(v) else v for v in map(float, values)]
        near_dtype = dtype if dtype in FLOATS else "float64"
        z = self.add(rng, "z", [rounded(v, near_dtype) for v in near], near_dtype, shape, 2)
        dy_dtype = rng.choice(FLOATS)
        dy = self.add(rng, "dy", elements(rng, dy_dtype, count, row_length), dy_dtype, shape, 2)
        backward = list(formula)
        if "--bias" in backward:
            at = backward.index("--bias")
            del backward[at:at + 2]
        self.commands = [
            ["apply", x[0], *read, *formula, *written, *out, *save],
            ["softmax", x[0], *read, "--axes", ",".join(map(str, axes)), *written, *out],
            ["grad", x[0], *read, "--dy", dy[0], *backward, *written, "--dx", f"dx.{to}", "--dweight", "dw.npy",
             "--dbias", "db.json"],
            ["stats", x[0], *read, "--json", *rng.choice([[], ["--softmax"]]), *formula],
            ["compare", x[0], z[0], *read, "--json", "--rtol", "1e-5", *rng.choice([[], ["--max-ulp", "2"]])],
            ["stats", x[0], *x[1:], "--features", "--json", *formula[:2]],
            ["apply", x[0], *read, *formula, "--quantize", rng.choice(["row", "tensor", "group:1"]), "--dtype",
             rng.choice(["int8", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz"]), "--save-scale", "s.npy", "-o", "q.safetensors"],
        ]

    def add(self, rng, name, values, dtype, shape, turn):
        """Writes a tensor; its name, and how it is to be read."""
        kind = turn % 6
        if math.prod(shape) > 10000 and kind > 2:
            kind %= 2
        if kind == 2:
            name += ".safetensors"
            self.files[name] = safetensors(values, dtype, shape)
            return [name]
        if kind == 5:
            name += ".json"
            self.files[name] = as_json(values, dtype, shape)
            return [name]
        order = "<>"[kind % 2] if dtype != "bfloat16" else "<"
        if dtype == "bfloat16" and not name.startswith("x"):
            return self.add(rng, name, values, dtype, shape, 2)
        name += ".npy"
        self.files[name] = npy(values, dtype, shape, order, kind >= 3)
        return [name, "--as", "bfloat16"] if dtype == "bfloat16" else [name]


def outcome(program, words, files):
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            with open(os.path.join(folder, name), "wb") as file:
                file.write(content)
        done = subprocess.run([*program, *words], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=300)
        result = {"exit status": str(done.returncode).encode(), "standard output": done.stdout,
                  "standard error": done.stderr}
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name), "rb") as file:
                result[name] = file.read()
        return result


def kernels_of(program):
    """The kernels that the program has on its machine: its message lists them."""
    listed = subprocess.run([*program, "--kernel", "?"], stdin=subprocess.DEVNULL, capture_output=True).stderr
    return re.search("expected one of (.*)", listed.decode())[1].split(", ")


def check(number, seed, program, other, kernels):
    """How many runs succeeded, and what differs."""
    case = Case(number, seed)
    succeeded, faults = 0, []
    kernel = ["--kernel", kernels[number % len(kernels)]]
    for words in case.commands:
        expected = outcome(program, words, case.files)
        actual = outcome(other, words + kernel if words[0] in ("apply", "grad") else words, case.files)
        succeeded += expected["exit status"] in (b"0", b"1")
        for name in sorted(expected.keys() | actual.keys()):
            a, e = actual.get(name), expected.get(name)
            if a == e:
                continue
            if a is None or e is None:
                fault = f"{name} is there on one side only"
            else:
                at = len(os.path.commonprefix([a, e]))
                fault = f"{name} differs from byte {at}: {a[at:at + 40]!r}, expected {e[at:at + 40]!r}"
            faults.append(f"case {number}: {' '.join(words)}: {fault}")
    return succeeded, faults, case.files


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("program")
    parser.add_argument("other", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    program = [os.path.abspath(arguments.program)]
    other = [os.path.abspath(word) if os.path.exists(word) else word for word in arguments.other]
    kernels = kernels_of(other)
    succeeded, faults = 0, 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(check, number, arguments.seed, program, other, kernels) for number in range(arguments.cases)]
        for number, job in enumerate(jobs):
            good, found, files = job.result()
            succeeded += good
            faults += len(found)
            if found:
                print("\n".join(found))
                folder = os.path.join(tempfile.gettempdir(), f"same_bytes_{number}")
                shutil.rmtree(folder, ignore_errors=True)
                os.mkdir(folder)
                for name, content in files.items():
                    with open(os.path.join(folder, name), "wb") as file:
                        file.write(content)
                print(f"case {number}: its files are in {folder}")
    runs = len(Case(0, 1).commands) * arguments.cases
    print(f"{arguments.cases} tensors, kernels {', '.join(kernels)}, {runs} runs, of which {runs - succeeded} were "
          f"refused, {faults} differ")
    return 1 if faults or succeeded < 0.9 * runs else 0


if __name__ == "__main__":
    sys.exit(main())
