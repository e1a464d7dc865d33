"""Layer norm and RMS norm by PyTorch, forward and backward, for lnorm check: a file a dtype.

Made by Debian 13's python3-torch (2.6):  python3 data/kernel/torch26/make.py data/kernel/torch26
"""
import sys

import torch
from torch.nn import functional

ROWS, COLUMNS = 37, 96


def main(folder):
    torch.set_num_threads(1)
    for name in ("float32", "float16", "bfloat16"):
        dtype = getattr(torch, name)
        generator = torch.Generator().manual_seed(26)

        def normal(*shape):
            return torch.randn(*shape, generator=generator)

        x = (2 * normal(ROWS, COLUMNS) + 0.5).to(dtype).requires_grad_()
        weight = (1 + 0.3 * normal(COLUMNS)).to(dtype).requires_grad_()
        bias = (0.3 * normal(COLUMNS)).to(dtype).requires_grad_()
        dy = normal(ROWS, COLUMNS).to(dtype)
        y = functional.layer_norm(x, (COLUMNS,), weight, bias)
        y.backward(dy)
        rms = functional.rms_norm(x, (COLUMNS,), weight, 1e-5)
        tensors = {"x": x, "weight": weight, "bias": bias, "dy": dy, "y": y, "rms": rms,
                   "dx": x.grad, "dweight": weight.grad, "dbias": bias.grad}
        torch.save({key: tensor.detach().clone() for key, tensor in tensors.items()},
                   f"{folder}/{name}.pt")


main(sys.argv[1])
