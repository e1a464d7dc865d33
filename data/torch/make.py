#!/usr/bin/python3
"""Makes the files of data/torch, as torch.save writes them, each with its elements in an .npz beside it.

Run it with the python3-torch and python3-numpy of Debian 13, then of Debian 12:  python3 data/torch/make.py
Made by PyTorch 2.6.0 and NumPy 2.2.4 of Debian 13, and checkpoint_1_13.pt by PyTorch 1.13.0 of Debian 12, which
writes no other file.

FILE.npz has the tensors of FILE.pt in their order, under their names joined by dots, C-contiguous; the tensor
of a file that is a tensor alone is called "alone" there. bfloat16 is two bytes without a meaning, a float8 one.
"""

import os
import sys
from unittest import mock

import numpy
import torch

FOLDER = os.path.dirname(os.path.abspath(__file__))
DTYPES = ["float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "uint16",
          "uint32", "uint64", "bool"]


def elements(tensor):
    """The tensor as a C-contiguous array."""
    tensor = tensor.detach().contiguous()
    if tensor.dtype == torch.bfloat16:
        return numpy.array(tensor.view(torch.int16).numpy(), order="C").view("V2")
    if tensor.dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        return numpy.array(tensor.view(torch.uint8).numpy(), order="C").view("V1")
    return numpy.array(tensor.numpy(), order="C")


def named(value, name=""):
    """Every tensor within a value, with its name."""
    if isinstance(value, torch.Tensor):
        yield name or "alone", value
    elif isinstance(value, (dict, list, tuple)):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from named(item, f"{name}.{key}" if name else str(key))


def save(file, value, expected=None, **options):
    """FILE.pt and FILE.npz."""
    path = os.path.join(FOLDER, file)
    torch.save(value, path + ".pt", **options)
    expected = value if expected is None else expected
    numpy.savez(path + ".npz", **{name: elements(tensor) for name, tensor in named(expected)})


def checkpoint():
    """A small model with its optimizer, and other things that people keep beside them."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.LayerNorm(4), torch.nn.Linear(4, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model(torch.arange(12.0).reshape(3, 4).sin()).square().sum().backward()
    optimizer.step()
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3, "steps": 1 << 40,
            "seed": 1 << 70, "loss": 0.25, "name": "caf\u00e9", "best": None, "done": False,
            "layers": [model[0].weight, (torch.ones(2), -1, [torch.zeros(1)])], "size": torch.Size([2, 3]),
            "dtype": torch.float16, 7: torch.tensor([7.0])}


def views():
    """What strides can say."""
    x = torch.arange(60.0).reshape(3, 4, 5) / 7
    m = x[0]
    save("contiguous", x)
    save("transposed", {"matrix": m.t(), "reversed": x.permute(2, 1, 0), "last": x.transpose(1, 2),
                        "first": x.transpose(0, 1), "kept": torch.ones(1, 5, 1).expand(1, 5, 1)})
    save("sliced", {"columns": x[:, :, ::2], "rows": x[:, 1::2], "outer": x[::2], "box": x[1:, 1:3, 2:4],
                    "column": x[..., -1], "one": x[1, 2, 3], "diagonal": m.diagonal(),
                    "windows": torch.arange(8.0).unfold(0, 3, 1), "both": x.permute(2, 0, 1)[1::3, :, ::2],
                    "end": x[2:]})
    save("expanded", {"rows": torch.tensor([1.0, 2.0, 3.0]).expand(4, 3),
                      "columns": torch.tensor([[1.0], [2.0]]).expand(2, 5),
                      "number": torch.tensor(0.5).expand(3, 2), "middle": x[:, :1, :2].expand(3, 4, 2)})
    save("shared", {"whole": x, "end": x[2], "flat": x.view(-1), "again": x, "numbers": m[1:, 2]})
    save("empty", {"none": torch.zeros(0), "some": torch.zeros(2, 0, 3), "transposed": torch.zeros(0, 3).t(),
                   "number": torch.tensor(-0.0), "whole": torch.tensor(5, dtype=torch.int64), "slice": x[3:]})


def dtypes():
    """Every dtype that lnorm has, and others."""
    special = torch.tensor([0.0, -0.0, 1.5, -2.75, float("inf"), float("-inf"), float("nan"), 1e-7])
    whole = torch.tensor([0, 1, 100, 127])
    known = {name: getattr(torch, name) for name in DTYPES}
    save("dtypes", {name: (special if dtype.is_floating_point else whole).to(dtype)
                    for name, dtype in known.items()})
    grid = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    negated = torch.tensor([1 + 2j]).conj().imag
    save("foreign", {"first": grid, "negated": negated, "complex": grid.to(torch.complex64),
                     "float8": grid.to(torch.float8_e4m3fnuz),
                     "sparse": grid.to_sparse(), "csr": grid.to_sparse_csr(),
                     "quantized": torch.quantize_per_tensor(grid, 0.1, 10, torch.quint8), "last": grid.t()},
         expected={"first": grid, "last": grid.t()})
    parameter = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
    parameter.note = "kept"
    save("parameter", {"plain": torch.nn.Parameter(grid), "noted": parameter,
                       "frozen": torch.nn.Parameter(grid[1], requires_grad=False)})


def float8():
    """Every number of the dtypes of 8 bits, and views of them."""
    for name in ("float8_e4m3fn", "float8_e5m2"):
        codes = torch.arange(256, dtype=torch.uint8).view(getattr(torch, name)).reshape(16, 16)
        save(name, {"codes": codes, "transposed": codes.t(), "box": codes[1:3, 4:8], "number": codes[3, 8]})


def writers():
    """The same tensors, as other options of torch.save write them."""
    value = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor([1, -2, 300], dtype=torch.int16)}
    for protocol in (3, 4, 5):
        save(f"protocol{protocol}", value, pickle_protocol=protocol)
    torch.serialization.set_crc32_options(False)
    save("no_crc", value)
    torch.serialization.set_crc32_options(True)
    swapped = {name: torch.from_numpy(tensor.numpy().byteswap()) for name, tensor in value.items()}
    with mock.patch.object(sys, "byteorder", "big"):  # PyTorch writes no other byte order than the machine's
        save("big_endian", swapped, expected=value)
    loaded = torch.load(os.path.join(FOLDER, "big_endian.pt"))
    assert all(torch.equal(loaded[name], value[name]) for name in value)
    torch.save(value, os.path.join(FOLDER, "legacy.pt"), _use_new_zipfile_serialization=False)
    torch.jit.save(torch.jit.script(torch.nn.LayerNorm(2)), os.path.join(FOLDER, "script.pt"))


def main():
    """All files."""
    version = "_".join(torch.__version__.split(".")[:2])
    save(f"checkpoint_{version}", checkpoint())
    if version == "1_13":
        return
    views()
    dtypes()
    float8()
    writers()


if __name__ == "__main__":
    main()
