#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <optional>
#include <string>

#include "memory_tensor.hpp"

namespace lnorm::python {

namespace py = pybind11;

// An array of Python where it lies: NumPy's, what has __dlpack__ or the buffer protocol, or what numpy.asarray makes an
// array of. Keeps it alive.
struct Array {
  Memory memory;
  py::object owner;
  py::object dtype;  // of NumPy; none if the array is not NumPy's
  bool is_writable = false;
};

// name: for messages. Throws TypeError for what is no array, is on another device, or has a dtype that we do not read.
Array array_of(const py::handle& object, const char* name);

// A new array in C order. like: an array whose dtype, if it is the same one, knows what NumPy calls it.
Array new_array(const Shape& shape, DType dtype, const Array* like);

// The first and one past the last byte that an array may have.
std::pair<std::byte*, std::byte*> extent_of(const Memory& memory);
bool overlap(const Memory& a, const Memory& b);
// Whether elements of one array may share bytes, as those of a broadcast one do.
bool has_overlaps(const Memory& memory);

}  // namespace lnorm::python
