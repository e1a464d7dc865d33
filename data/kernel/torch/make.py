#!/usr/bin/python3
"""Makes the files of data/kernel/torch: PyTorch's own layer norm in every dtype, for the script of docs/kernel-authors.md.

Run it with Debian 12's python3-torch and python3-numpy:  python3 data/kernel/torch/make.py
Made by PyTorch 1.13.0a0 and NumPy 1.24.2 on a CPU.

DTYPE.safetensors has x, weight and bias in that dtype, and y, what torch.nn.functional.layer_norm makes of them in
that dtype. PyTorch 1.13 has no float16 layer norm on CPUs: its y is the float32 one of the same inputs, rounded. So
is that of bfloat16_float32.safetensors, while PyTorch 1.13 itself rounds mean and rstd to bfloat16.
"""

import json
import os
import struct

import numpy
import torch
from torch.nn import functional

FOLDER = os.path.dirname(os.path.abspath(__file__))
ROWS, WIDTH = 16, 768
CODES = {torch.float16: "F16", torch.bfloat16: "BF16", torch.float32: "F32", torch.float64: "F64"}
NUMPY_CODES = {2: "<i2", 4: "<f4", 8: "<f8"}


def inputs():
    """Hard, but fair: deviations from 0.1 to 10, means up to three of them, one outlier among zeros, and a bias that
    cancels half of row 0."""
    torch.manual_seed(15)
    x = torch.randn(ROWS, WIDTH, dtype=torch.float64) * 10 ** torch.linspace(-1, 1, ROWS).double()[:, None]
    x += x.std(-1, keepdim=True) * torch.linspace(3, -3, ROWS).double()[:, None]
    x[5], x[5, 3] = 0, 1
    weight = 1 + 0.3 * torch.randn(WIDTH, dtype=torch.float64)
    bias = 0.5 * torch.randn(WIDTH, dtype=torch.float64)
    bias[::2] = -(weight * functional.layer_norm(x, (WIDTH,))[0])[::2]
    return {"x": x, "weight": weight, "bias": bias}


def layer_norm(x, weight, bias):
    """PyTorch's."""
    return functional.layer_norm(x, (WIDTH,), weight, bias)


def write_safetensors(name, tensors):
    """One tensor behind the other, as they come."""
    header, data = {}, b""
    for key, tensor in tensors.items():
        begin = len(data)
        size = tensor.element_size()
        array = tensor.view(torch.int16).numpy() if size == 2 else tensor.numpy()
        data += array.astype(NUMPY_CODES[size]).tobytes()
        header[key] = {"dtype": CODES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [begin, len(data)]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(FOLDER, name + ".safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def cast(value, dtype):
    """Rounded once. PyTorch takes float64 to float16 by way of float32, which rounds twice."""
    if dtype == torch.float16:
        return torch.from_numpy(value.numpy().astype(numpy.float16))
    return value.to(dtype)


def main():
    """All files."""
    exact = inputs()
    for dtype in CODES:
        name = str(dtype).removeprefix("torch.")
        tensors = {key: cast(value, dtype) for key, value in exact.items()}
        rounded = layer_norm(*(tensor.float() for tensor in tensors.values())).to(dtype)
        own = rounded if dtype == torch.float16 else layer_norm(*tensors.values())
        write_safetensors(name, {**tensors, "y": own})
        if dtype == torch.bfloat16:
            write_safetensors(name + "_float32", {**tensors, "y": rounded})


if __name__ == "__main__":
    main()
