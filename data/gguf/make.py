#!/usr/bin/env python3
"""Makes the files of this folder by Python's standard library alone, after ggml's docs/gguf.md and with gguf-py's layout.

dtypes.gguf has a tensor of every dtype that lnorm reads, random but for their first elements, and every kind of metadata;
dtypes.safetensors has the same bytes. version2.gguf is a small one of version 2 with another alignment. model.gguf is what
a converter makes of ../gpt2/model.safetensors.index.json where the model multiplies by 1 + weight: the weights of its
norms + 1, beside matrices of three quantized types.
"""

import json
import pathlib
import random
import struct

HERE = pathlib.Path(__file__).parent
U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
CODES = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "?", U64: "Q", I64: "q", F64: "d"}
# Name: ggml's number, elements of a block, bytes of a block.
TYPES = {"F32": (0, 1, 4), "F16": (1, 1, 2), "Q8_0": (8, 32, 34), "Q4_K": (12, 256, 144), "Q6_K": (14, 256, 210),
         "I8": (24, 1, 1), "I16": (25, 1, 2), "I32": (26, 1, 4), "I64": (27, 1, 8), "F64": (28, 1, 8), "BF16": (30, 1, 2)}


def string(text):
    """A string of u64 length."""
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def value(kind, content):
    """A value behind its type. An array is (kind, values)."""
    if kind == STRING:
        return string(content)
    if kind == ARRAY:
        item, values = content
        return struct.pack("<IQ", item, len(values)) + b"".join(value(item, each) for each in values)
    return struct.pack("<" + CODES[kind], content)


def padded(data, alignment):
    """With zeros up to a multiple."""
    return data + bytes(-len(data) % alignment)


def write(name, pairs, tensors, version=3, alignment=32):
    """tensors: (name, NumPy's shape, type, bytes)."""
    header = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(pairs))
    for key, kind, content in pairs:
        header += string(key) + struct.pack("<I", kind) + value(kind, content)
    data = b""
    for tensor, shape, kind, content in tensors:
        number, elements, size = TYPES[kind]
        count = 1
        for extent in shape:
            count *= extent
        assert len(content) == count // elements * size
        header += string(tensor) + struct.pack("<I", len(shape))
        header += b"".join(struct.pack("<Q", extent) for extent in reversed(shape))
        header += struct.pack("<IQ", number, len(data))
        data += padded(content, alignment)
    (HERE / name).write_bytes(padded(header, alignment) + data)


def write_dtypes(draw):
    """Finite floats of all exponents, any integers."""
    pairs = [("general.architecture", STRING, "llama"), ("general.name", STRING, "é"), ("empty", STRING, "")]
    pairs += [(f"of.{kind}", kind, 1) for kind in CODES]
    pairs += [("tokens", ARRAY, (STRING, [f"token {i}" for i in range(300)])), ("scores", ARRAY, (F32, [0.5] * 300)),
              ("nested", ARRAY, (ARRAY, [(U16, [1, 2]), (ARRAY, [(ARRAY, [(STRING, ["deep"])])]), (BOOL, [])]))]
    exponents = {"F32": (4, 0x7F800000), "F16": (2, 0x7C00), "BF16": (2, 0x7F80), "F64": (8, 0x7FF << 52)}
    tensors = []
    for kind, (_, elements, size) in TYPES.items():
        if elements > 1:
            continue
        shape = [2, 3, 5]
        content = b"".join(struct.pack("<f", i) for i in range(3)) if kind == "F32" else bytes(size)
        while len(content) < 30 * size:
            bits = draw.getrandbits(8 * size)
            mask = exponents.get(kind, (0, 0))[1]
            if mask == 0 or bits & mask != mask:
                content += bits.to_bytes(size, "little")
        tensors.append((f"blk.0.{kind}", shape, kind, content))
    tensors.append(("scalar", [], "F64", struct.pack("<d", 1.5)))
    tensors.append(("empty", [0, 4], "F32", b""))
    write("dtypes.gguf", pairs, tensors)
    entries, data = {}, b""
    for tensor, shape, kind, content in tensors:
        entries[tensor] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(entries).encode()
    (HERE / "dtypes.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)


def model_weights():
    """The weights of the norms, by the number of the layer."""
    folder = HERE.parent / "gpt2"
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    for name, shard in index["weight_map"].items():
        data = (folder / shard).read_bytes()
        size, = struct.unpack_from("<Q", data)
        begin, end = json.loads(data[8:8 + size])[name]["data_offsets"]
        yield int(name.split(".")[2]), struct.unpack(f"<{(end - begin) // 4}f", data[8 + size + begin:8 + size + end])


def write_model(draw):
    """Quantized blocks are random bytes."""
    tensors = [("token_embd.weight", [2, 256], "Q6_K", draw.randbytes(420))]
    for layer, weight in sorted(model_weights()):
        tensors.append((f"blk.{layer}.attn_norm.weight", [16], "F32", struct.pack("<16f", *(1 + w for w in weight))))
        if layer == 0:
            tensors.append(("blk.0.attn_q.weight", [2, 32], "Q8_0", draw.randbytes(68)))
            tensors.append(("blk.0.ffn_up.weight", [1, 256], "Q4_K", draw.randbytes(144)))
    write("model.gguf", [("general.architecture", STRING, "gemma"), ("general.alignment", U32, 32)], tensors)


write_dtypes(random.Random(1))
write_model(random.Random(2))
write("version2.gguf", [("general.alignment", U32, 8)],
      [("x", [2, 2], "F16", struct.pack("<4e", 1, 2, 4, 8)), ("y", [1], "I8", b"\xff")], version=2, alignment=8)
