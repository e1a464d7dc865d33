#!/usr/bin/env python3
# What a float16 layer norm kernel and its backward pass write, for docs/kernel-authors.md. PyTorch 1.13.0, NumPy 1.24.2.
# Both compute in float32 and round at the end, as a fused kernel does. One gradient is wrong as kernels are: dweight_half
# adds up the rows in float16.
import numpy
import torch

torch.manual_seed(14)
rows, width, eps = 256, 96, 1e-5
x = (3 * torch.randn(rows, width) + 1).half()
dy = torch.randn(rows, width).half()
weight = (1 + 0.2 * torch.randn(width)).half()
bias = (0.1 * torch.randn(width)).half()

wide = x.float()
mean = wide.mean(1, keepdim=True)
rstd = 1 / torch.sqrt(((wide - mean) ** 2).mean(1, keepdim=True) + eps)
xhat = (wide - mean) * rstd
y = xhat * weight.float() + bias.float()
g = dy.float() * weight.float()
dx = rstd * (g - g.mean(1, keepdim=True) - xhat * (g * xhat).mean(1, keepdim=True))
terms = dy.float() * xhat
dweight_half = torch.zeros(width).half()
for term in terms.half():
    dweight_half += term

tensors = {"x": x, "dy": dy, "weight": weight, "bias": bias, "mean": mean, "rstd": rstd, "y": y.half(), "dx": dx.half(),
           "dweight": terms.sum(0).half(), "dbias": dy.float().sum(0).half(), "dweight_half": dweight_half}
for name, tensor in tensors.items():
    numpy.save(f"{name}.npy", tensor.numpy())
