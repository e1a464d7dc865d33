#!/usr/bin/env python3
"""lnorm.layer_norm of 256 MiB of float32 beside torch.nn.functional.layer_norm, in turns: medians, and peak memory.

  PYTHONPATH=$(./bootstrap.sh python | tail -n 1) /usr/bin/python3 tests/bench/python_norm.py     needs python3-torch
"""

import resource
import statistics
import time

import numpy
import torch

import lnorm

ROWS, WIDTH = 87381, 768


def seconds(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


x = numpy.random.default_rng(0).normal(size=(ROWS, WIDTH)).astype(numpy.float32)
out = numpy.zeros_like(x)
weight, bias = numpy.ones((2, WIDTH), numpy.float32)
of_torch = [torch.from_numpy(array) for array in (x, weight, bias)]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
works = {
    "lnorm, out=": lambda: lnorm.layer_norm(x, weight, bias, out=out),
    "lnorm": lambda: lnorm.layer_norm(x, weight, bias),
    "torch": lambda: torch.nn.functional.layer_norm(of_torch[0], (WIDTH,), of_torch[1], of_torch[2]),
}
works["lnorm, out="]()
peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
times = {name: [] for name in works}
for _ in range(9):
    for name, work in works.items():
        times[name].append(seconds(work))
for name, found in times.items():
    print(f"{name:12} {1000 * statistics.median(found):7.1f} ms")
print(f"memory beside input and output: {peak:.0f} MiB")
