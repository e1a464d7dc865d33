#!/usr/bin/env python3
"""What a call of the Python package costs, in microseconds: layer_norm(x, out=y) of a NumPy (4, 64) float32, and others.

  PYTHONPATH=$(./bootstrap.sh python | tail -n 1) /usr/bin/python3 tests/bench/python_call.py [OTHER]

OTHER is the folder of another version of the package, as for PYTHONPATH: it is measured in turns with this one. The least of
many runs counts, so that a busy machine matters less.
"""

import os
import subprocess
import sys

TURNS = 5
CODE = """
import sys, timeit
import lnorm, numpy as np
x = np.random.default_rng(0).normal(size=(4, 64)).astype("f4")
y, w, wide = np.empty_like(x), np.ones(64, "f4"), np.empty((4, 128), "f4")[:, ::2]
right = lnorm.layer_norm(x)
for name, call in [
    ("out=", lambda: lnorm.layer_norm(x, out=y)),
    ("a new array", lambda: lnorm.layer_norm(x)),
    ("weight, bias, out=", lambda: lnorm.layer_norm(x, w, w, out=y)),
    ("axes, eps, out=", lambda: lnorm.layer_norm(x, axes=-1, eps=1e-6, out=y)),
    ("strided out=", lambda: lnorm.layer_norm(x, out=wide)),
    ("a list", lambda: lnorm.layer_norm([1.0, 2.0, 3.0])),
    ("with statistics", lambda: lnorm.layer_norm_with_stats(x, out=y)),
    ("backward", lambda: lnorm.layer_norm_backward(x, x, w)),
    ("check", lambda: lnorm.check(x, right)),
]:
    number = 20 if name == "check" else 500
    print(f"{name},{min(timeit.repeat(call, number=number, repeat=5)) / number * 1e6}")
"""


def measured(folder):
    environment = {**os.environ, "PYTHONPATH": folder}
    lines = subprocess.run([sys.executable, "-c", CODE], check=True, capture_output=True, text=True, env=environment).stdout
    return {name: float(microseconds) for name, microseconds in (line.rsplit(",", 1) for line in lines.splitlines())}


HERE = os.environ.get("PYTHONPATH", "")
folders = [HERE, *sys.argv[1:2]]
least = [{} for _ in folders]
for _ in range(TURNS):
    for found, folder in zip(least, folders):
        for name, microseconds in measured(folder).items():
            found[name] = min(microseconds, found.get(name, microseconds))
for name in least[0]:
    print(f"{name:20}", *(f"{found[name]:8.1f} us" for found in least))
