#!/usr/bin/python3
"""Makes the files of data/gpt2: what a model of 12 small layers computes, as people dump it.

Run it with Debian 13's python3-torch and python3-numpy:  python3 data/gpt2/make.py
Made by PyTorch 2.6.0 and NumPy 2.2.4.

dump.pt, dump.npz, dump.safetensors and the folder dump/ hold the same: h.N.in, h.N.ln_1.weight, h.N.ln_1.bias,
and h.N.out, their layer norm by PyTorch. acts.npz has h.N.in alone; model.safetensors.index.json has weights in
two shards; ref.pt has, as model.h.N.in, their RMS norm by PyTorch with eps 1e-6.
"""

import json
import os
import struct

import numpy
import torch
from torch.nn import functional

FOLDER = os.path.dirname(os.path.abspath(__file__))
LAYERS = 12
WIDTH = 16


def in_folder(name):
    """Its path."""
    return os.path.join(FOLDER, name)


def arrays(tensors):
    """The same for NumPy."""
    return {name: tensor.numpy() for name, tensor in tensors.items()}


def write_safetensors(name, tensors):
    """One tensor behind the other, as they come."""
    header, data = {}, b""
    for key, array in arrays(tensors).items():
        assert array.dtype == numpy.float32
        begin = len(data)
        data += array.astype("<f4").tobytes()
        header[key] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [begin, len(data)]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(in_folder(name), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)
    return len(data)


def write_shards(tensors):
    """Two files, and which has which."""
    names = list(tensors)
    weight_map, size = {}, 0
    for number, half in enumerate((names[:len(names) // 2], names[len(names) // 2:]), 1):
        shard = f"model-{number:05}-of-00002.safetensors"
        size += write_safetensors(shard, {name: tensors[name] for name in half})
        weight_map.update(dict.fromkeys(half, shard))
    with open(in_folder("model.safetensors.index.json"), "w", encoding="ascii") as file:
        json.dump({"metadata": {"total_size": size}, "weight_map": weight_map}, file, indent=2)
        file.write("\n")


def main():
    """All files."""
    torch.manual_seed(13)
    dump, weights, reference = {}, {}, {}
    for layer in range(LAYERS):
        x = torch.randn(2, 4, WIDTH) * 1.3 ** layer + 0.1 * layer
        weight, bias = 1 + 0.2 * torch.randn(WIDTH), 0.1 * torch.randn(WIDTH)
        scale = 1 + 0.3 * torch.randn(WIDTH)
        dump |= {f"h.{layer}.in": x, f"h.{layer}.ln_1.weight": weight, f"h.{layer}.ln_1.bias": bias,
                 f"h.{layer}.out": functional.layer_norm(x, (WIDTH,), weight, bias)}
        weights[f"model.layers.{layer}.input_layernorm.weight"] = scale
        reference[f"model.h.{layer}.in"] = functional.rms_norm(x, (WIDTH,), scale, 1e-6)
    torch.save(dump, in_folder("dump.pt"))
    numpy.savez(in_folder("dump.npz"), **arrays(dump))
    write_safetensors("dump.safetensors", dump)
    os.makedirs(in_folder("dump"), exist_ok=True)
    for name, array in arrays(dump).items():
        numpy.save(in_folder(f"dump/{name}.npy"), array)
    numpy.savez(in_folder("acts.npz"), **{name: a for name, a in arrays(dump).items() if name.endswith(".in")})
    write_shards(weights)
    torch.save(reference, in_folder("ref.pt"))


if __name__ == "__main__":
    main()
