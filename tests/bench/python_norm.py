#!/usr/bin/env python3
"""lnorm in Python beside PyTorch, in turns, 256 MiB of float32 and half as much of 16 bits: medians, and peak memory.

  PYTHONPATH=$(./bootstrap.sh python | tail -n 1) /usr/bin/python3 tests/bench/python_norm.py     needs python3-torch

With the argument rows it prints those of gradients for ratios.sh.
"""

import resource
import statistics
import sys
import time

import lnorm
import numpy
import torch

ROWS, WIDTH = 87381, 768


def seconds(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def medians(works):
    times = {name: [] for name in works}
    for _ in range(9):
        for name, work in works.items():
            times[name].append(work())
    return {name: 1000 * statistics.median(found) for name, found in times.items()}


def torch_backward(x, dy):
    """The backward pass alone; its forward pass comes before."""
    leaves = [x.detach().requires_grad_(), *torch.ones(2, WIDTH, dtype=x.dtype)]
    leaves[1:] = [leaf.detach().requires_grad_() for leaf in leaves[1:]]
    y = torch.nn.functional.layer_norm(leaves[0], (WIDTH,), leaves[1], leaves[2])
    return seconds(lambda: y.backward(dy))


def gradients():
    """The times of each dtype: lnorm's and torch's, both with the memory of a new dx. NumPy has no bfloat16: torch makes it."""
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        x, dy = (torch.randn(ROWS, WIDTH).to(dtype) for _ in range(2))
        weight = torch.ones(WIDTH)
        works = {
            "lnorm": lambda: seconds(lambda: lnorm.layer_norm_backward(dy, x, weight, out=(torch.empty_like(x), None, None)))
        }
        try:
            torch_backward(x[:1], dy[:1])
            works["torch"] = lambda: torch_backward(x, dy)
        except RuntimeError:  # PyTorch 1.13 has no layer norm of float16 on CPUs
            pass
        yield str(dtype).removeprefix("torch."), medians(works)


if sys.argv[1:] == ["rows"]:
    for name, found in gradients():
        if "torch" in found:
            print(f"gradients in Python of {name},0.5,{found['lnorm']:.0f},{found['torch']:.0f}")
    sys.exit()

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
for name, found in medians({name: lambda work=work: seconds(work) for name, work in works.items()}).items():
    print(f"{name:12} {found:7.1f} ms")
print(f"memory beside input and output: {peak:.0f} MiB")
for name, found in gradients():
    print(f"gradients, {name}:", ", ".join(f"{who} {took:.1f} ms" for who, took in found.items()))
