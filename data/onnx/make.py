#!/usr/bin/env python3
"""Makes the files of this folder: TensorProtos, as x.pb, and their elements, as x.npy (bfloat16 as its bits, uint16).

Made by Debian 12's python3-onnx 1.12.0 and python3-numpy 1.24.2. The tests need neither.
"""

import pathlib

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

here = pathlib.Path(__file__).parent


def save(name, tensor, elements):
    onnx.save_tensor(tensor, here / f"{name}.pb")
    numpy.save(here / f"{name}.npy", elements)


dtypes = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()
for dtype in dtypes:
    elements = numpy.array([[0, 1, 100], [3, 7, 1]]).astype(dtype)
    if numpy.dtype(dtype).kind in "if":
        elements[1, 1] = -7
    save(f"raw_{dtype}", numpy_helper.from_array(elements, f"h.0/{dtype}"), elements)
    # The typed fields; make_tensor packs float16 into int32_data.
    kind = numpy_helper.from_array(elements).data_type
    save(f"typed_{dtype}", helper.make_tensor("typed", kind, elements.shape, elements.flatten().tolist()), elements)

bits = numpy.array([0x3F80, 0xC000, 0x7F80], dtype=numpy.uint16)
save("raw_bfloat16", helper.make_tensor("b", TensorProto.BFLOAT16, [3], bits.tobytes(), raw=True), bits)
save("typed_bfloat16", helper.make_tensor("b", TensorProto.BFLOAT16, [3], [1.0, -2.0, float("inf")]), bits)
save("scalar", numpy_helper.from_array(numpy.float32(2.5), "scalar"), numpy.float32(2.5))
empty = numpy.zeros((2, 0, 3), dtype=numpy.float32)
save("empty", numpy_helper.from_array(empty, ""), empty)

value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", [value],
                          [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])])
onnx.save(helper.make_model(graph, producer_name="make.py"), here / "model.onnx")
onnx.save(helper.make_model(graph), here / "model_without_producer.onnx")
