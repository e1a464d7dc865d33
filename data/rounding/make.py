#!/usr/bin/python3
"""Makes the files of data/rounding: published layers in their order of rounding.

Run it with Debian 12's python3-torch and python3-numpy:  python3 data/rounding/make.py
Made by PyTorch 1.13.0a0 and NumPy 1.24.2.

Each of bfloat16.safetensors and float16.safetensors has x, residual, weight, bias, and what these layers make of
them. Each step is computed in float64 by PyTorch, then rounded to the dtype, so that only the order of rounding is
theirs:

  llama       weight * xhat, where xhat is rounded (transformers, LlamaRMSNorm)
  gemma       (1 + weight) * xhat (transformers, GemmaRMSNorm)
  sum, fused  the rounded x + residual, and llama of it (vLLM, fused_add_rms_norm)
  triton      the layer norm of the unrounded x + residual (flash-attn, layer_norm_fn)
  onnx        LayerNormalization of ONNX with stash_type float64: xhat, its product with weight, and the sum are rounded
"""

import json
import os
import struct

import numpy
import torch

FOLDER = os.path.dirname(os.path.abspath(__file__))
EPS = 1e-6
CODES = {torch.bfloat16: "BF16", torch.float16: "F16"}


def cast(value, dtype):
    """Rounded once. PyTorch takes float64 to float16 by way of float32, which rounds twice."""
    if dtype == torch.float16:
        return torch.from_numpy(value.numpy().astype(numpy.float16))
    return value.to(dtype)


def rms(x):
    """xhat of the RMS norm, in float64."""
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS)


def standardized(x):
    """xhat of the layer norm, in float64."""
    deviation = x - x.mean(-1, keepdim=True)
    return deviation * torch.rsqrt(deviation.pow(2).mean(-1, keepdim=True) + EPS)


def layers(dtype):
    """Inputs and results, by name."""
    generator = torch.Generator().manual_seed(1)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)

    def rounded(value):
        return cast(value, dtype).double()

    tensors = {"x": 3 * draw(24, 80), "residual": draw(24, 80), "weight": draw(80), "bias": draw(80)}
    x, residual, weight, bias = (tensor.double() for tensor in tensors.values())
    total = rounded(x + residual)
    results = {
        "llama": weight * rounded(rms(x)),
        "gemma": (1 + weight) * rms(x),
        "sum": total,
        "fused": weight * rounded(rms(total)),
        "triton": standardized(x + residual) * weight + bias,
        "onnx": rounded(rounded(standardized(x)) * weight) + bias,
    }
    return {**tensors, **{name: cast(value, dtype) for name, value in results.items()}}


def write_safetensors(name, tensors):
    """One tensor behind the other, as they come."""
    header, data = {}, b""
    for key, tensor in tensors.items():
        begin = len(data)
        data += tensor.contiguous().view(torch.int16).numpy().astype("<i2").tobytes()
        header[key] = {"dtype": CODES[tensor.dtype], "shape": list(tensor.shape),
                       "data_offsets": [begin, len(data)]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(FOLDER, name), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


for kind in CODES:
    write_safetensors(str(kind).removeprefix("torch.") + ".safetensors", layers(kind))
