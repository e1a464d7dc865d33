"""Writes a 2-d float32 .npy as a .pt that torch.save would write: make_pt.py X.npy X.pt"""

import pickle
import re
import sys
import types
import zipfile
from collections import OrderedDict

source, target = sys.argv[1:]
with open(source, "rb") as file:
    header = file.read(128).decode("latin-1")
    data = file.read()
rows, length = (int(n) for n in re.search(r"\((\d+), (\d+)\)", header).groups())

# Names for the pickler: what PyTorch calls its own.
torch = types.ModuleType("torch")
utils = types.ModuleType("torch._utils")


class FloatStorage:
    pass


def _rebuild_tensor_v2():
    pass


for thing, module in ((FloatStorage, torch), (_rebuild_tensor_v2, utils)):
    thing.__module__ = module.__name__
    thing.__qualname__ = thing.__name__
    setattr(module, thing.__name__, thing)
sys.modules.update({"torch": torch, "torch._utils": utils})


class Storage:
    pass


class Tensor:
    def __reduce__(self):
        return _rebuild_tensor_v2, (Storage(), 0, (rows, length), (length, 1), False, OrderedDict())


class Pickler(pickle.Pickler):
    def persistent_id(self, thing):
        return ("storage", FloatStorage, "0", "cpu", rows * length) if isinstance(thing, Storage) else None


with zipfile.ZipFile(target, "w") as archive:
    with archive.open("a/data.pkl", "w") as file:
        Pickler(file, protocol=2).dump({"x": Tensor()})
    archive.writestr("a/byteorder", "little")
    archive.writestr("a/data/0", data)
    archive.writestr("a/version", "3\n")
