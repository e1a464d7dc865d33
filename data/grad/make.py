#!/usr/bin/python3
"""Makes the files of data/grad: gradients of layer normalization by PyTorch's autograd in float64.

Run it with Debian's python3-torch and python3-numpy:  /usr/bin/python3 data/grad/make.py
Made by PyTorch 1.13.0 and NumPy 1.24.2.

A folder is a case: x.npy, dy.npy and weight.npy, what they are computed from, and dx.npy, dweight.npy and dbias.npy
in float64. Inputs are float64, or float32 that PyTorch computes with as float64.

    one_axis      torch.nn.functional.layer_norm over the last axis, with weight and bias
    two_axes      over the last two
    rms           x / sqrt(mean(x^2) + 1e-6) * weight in operations of PyTorch
    float32       layer_norm of float32 x, dy and weight
    far           layer_norm of x about 1e4, in float32
    eps_on_std    weight * (x - mean) / (std + 1e-6) + bias, std of n - 1, as in the Annotated Transformer
    saved         native_layer_norm_backward, with mean.npy and rstd.npy of the forward pass in float32
"""

import os

import numpy
import torch

FOLDER = os.path.dirname(os.path.abspath(__file__))


def save(case, **tensors):
    """One folder."""
    folder = os.path.join(FOLDER, case)
    os.makedirs(folder, exist_ok=True)
    for name, tensor in tensors.items():
        numpy.save(os.path.join(folder, name + ".npy"), tensor.detach().numpy())


def differentiate(case, normalize, x, dy, weight):
    """The case of y = normalize(x, weight, bias)."""
    inputs = [tensor.double().requires_grad_() for tensor in (x, weight, torch.zeros_like(weight))]
    normalize(*inputs).backward(dy.double())
    dx, dweight, dbias = (tensor.grad for tensor in inputs)
    save(case, x=x, dy=dy, weight=weight, dx=dx, dweight=dweight, dbias=dbias)


def layer_norm(x, weight, bias):
    """By PyTorch."""
    return torch.nn.functional.layer_norm(x, weight.shape, weight, bias, 1e-5)


def rms_norm(x, weight, bias):
    """As models write it; the bias is there for its gradient."""
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * weight + bias


def eps_on_std(x, weight, bias):
    """As the Annotated Transformer writes it."""
    return weight * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-6) + bias


def saved():
    """Gradients of what a forward pass in float32 saved."""
    x, dy = torch.randn(6, 24) * 3 + 50, torch.randn(6, 24)
    weight = 1 + 0.3 * torch.randn(24)
    _, mean, rstd = torch.ops.aten.native_layer_norm(x, (24,), weight, None, 1e-5)
    dx, dweight, dbias = torch.ops.aten.native_layer_norm_backward(
        dy.double(), x.double(), (24,), mean.double(), rstd.double(), weight.double(),
        torch.zeros(24).double(), (True, True, True))
    save("saved", x=x, dy=dy, weight=weight, mean=mean, rstd=rstd, dx=dx, dweight=dweight, dbias=dbias)


def main():
    """All cases."""
    torch.manual_seed(14)
    double = {"dtype": torch.float64}
    differentiate("one_axis", layer_norm, torch.randn(2, 5, 16, **double), torch.randn(2, 5, 16, **double),
                  1 + 0.3 * torch.randn(16, **double))
    differentiate("two_axes", layer_norm, torch.randn(3, 4, 10, **double) * 2 - 1,
                  torch.randn(3, 4, 10, **double), 1 + 0.3 * torch.randn(4, 10, **double))
    differentiate("rms", rms_norm, torch.randn(2, 5, 16, **double), torch.randn(2, 5, 16, **double),
                  1 + 0.3 * torch.randn(16, **double))
    differentiate("float32", layer_norm, torch.randn(4, 33), torch.randn(4, 33), 1 + 0.3 * torch.randn(33))
    differentiate("far", layer_norm, torch.randn(4, 33) + 1e4, torch.randn(4, 33), 1 + 0.3 * torch.randn(33))
    differentiate("eps_on_std", eps_on_std, torch.randn(4, 12, **double), torch.randn(4, 12, **double),
                  1 + 0.3 * torch.randn(12, **double))
    saved()


if __name__ == "__main__":
    main()
