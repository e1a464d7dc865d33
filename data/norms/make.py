#!/usr/bin/python3
"""Makes data/norms/torch.npz: group, instance and batch norm by PyTorch in float64, with their gradients by autograd.

Run it with Debian's python3-torch and python3-numpy:  /usr/bin/python3 data/norms/make.py
Made by PyTorch 1.13.0 and NumPy 1.24.2.

    x, dy, weight, bias, mean, variance    (2, 6, 3, 4), and six of each of the last four
    CASE.y, CASE.dx, CASE.dweight, CASE.dbias
        group_1, group_2, group_3, group_6    torch.nn.functional.group_norm
        instance                              instance_norm
        training                              batch_norm by the statistics of the batch
        evaluation                            batch_norm by mean and variance
"""

import os

import numpy
import torch
from torch.nn import functional

torch.manual_seed(36)
X = torch.randn(2, 6, 3, 4, dtype=torch.float64) * 2 + 1
DY = torch.randn_like(X)
WEIGHT, BIAS, MEAN = (torch.randn(6, dtype=torch.float64) for _ in range(3))
VARIANCE = torch.rand(6, dtype=torch.float64) + 0.5
ARRAYS = {"x": X, "dy": DY, "weight": WEIGHT, "bias": BIAS, "mean": MEAN, "variance": VARIANCE}


def differentiate(case, normalize):
    """The case of y = normalize(x, weight, bias)."""
    x, weight, bias = (tensor.clone().requires_grad_() for tensor in (X, WEIGHT, BIAS))
    y = normalize(x, weight, bias)
    y.backward(DY)
    found = {"y": y, "dx": x.grad, "dweight": weight.grad, "dbias": bias.grad}
    ARRAYS.update({case + "." + name: tensor for name, tensor in found.items()})


for groups in (1, 2, 3, 6):
    differentiate(
        "group_%d" % groups, lambda x, w, b, g=groups: functional.group_norm(x, g, w, b)
    )
differentiate("instance", lambda x, w, b: functional.instance_norm(x, None, None, w, b))
differentiate("training", lambda x, w, b: functional.batch_norm(x, None, None, w, b, True))
differentiate("evaluation", lambda x, w, b: functional.batch_norm(x, MEAN, VARIANCE, w, b, False))
numpy.savez(
    os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch.npz"),
    **{name: tensor.detach().numpy() for name, tensor in ARRAYS.items()},
)
