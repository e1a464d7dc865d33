#include "array.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <utility>
#include <vector>

#include "lnorm/core/dtype_table.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm::python {

namespace {

// DLPack 0.x, as every producer gives it that is not asked for more. [dmlc.github.io/dlpack]
struct DLDevice {
  std::int32_t type;
  std::int32_t id;
};
struct DLDataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  std::int32_t ndim;
  DLDataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; null: C order
  std::uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor tensor;
  void* manager;
  void (*deleter)(DLManagedTensor*);
};

struct DLName {
  int code;
  int bits;
  DType dtype;
};
constexpr std::array kDLNames{
    DLName{0, 8, DType::int8},         DLName{0, 16, DType::int16},
    DLName{0, 32, DType::int32},       DLName{0, 64, DType::int64},
    DLName{1, 8, DType::uint8},        DLName{1, 16, DType::uint16},
    DLName{1, 32, DType::uint32},      DLName{1, 64, DType::uint64},
    DLName{2, 16, DType::float16},     DLName{2, 32, DType::float32},
    DLName{2, 64, DType::float64},     DLName{4, 16, DType::bfloat16},
    DLName{6, 8, DType::boolean},      DLName{10, 8, DType::float8_e4m3fn},
    DLName{12, 8, DType::float8_e5m2},
};

[[noreturn]] void fail_dtype(const char* name, const std::string& found) {
  const auto is_any = [](DType dtype) { return dtype != DType::float64_pair; };
  throw py::type_error(concat(name, ": is of dtype ", found, ", expected ", dtype_list(is_any)));
}

const py::object& numpy(const char* attribute) {
  // Kept to the end, when the interpreter may be gone.
  static auto* const found = new std::array<std::pair<std::string, py::object>, 2>{{
      {"asarray", py::module_::import("numpy").attr("asarray")},
      {"dtype", py::module_::import("numpy").attr("dtype")},
  }};
  return (*found)[attribute[0] == 'a' ? 0 : 1].second;
}

// The dtype that NumPy calls so: its own ones by their codes, those of ml_dtypes by the names of their types.
std::optional<DType> dtype_named(const py::dtype& dtype) {
  const std::string code = concat(dtype.kind(), dtype.itemsize());
  if (dtype.kind() != 'V') {
    const DTypeRow* const row = find_dtype(&DTypeRow::npy, code);
    if (row != nullptr && is_npy_dtype(row->dtype)) return row->dtype;
  }
  const auto type = py::str(dtype.attr("type").attr("__name__")).cast<std::string>();
  for (const DTypeRow& row : kDTypes) {
    const bool has_name =
        row.name == type && static_cast<py::ssize_t>(row.size) == dtype.itemsize();
    if (has_name && !is_npy_dtype(row.dtype)) return row.dtype;
  }
  return std::nullopt;
}

std::endian order_of(const py::dtype& dtype) {
  const char order = dtype.byteorder();
  const bool is_big = order == '>' || (order != '<' && std::endian::native == std::endian::big);
  return is_big ? std::endian::big : std::endian::little;
}

// In Fortran order where that is all that keeps elements from lying one after another.
void set_order(Memory& memory) {
  if (is_contiguous(memory)) return;
  memory.info.order = MemoryOrder::fortran;
  if (!is_contiguous(memory)) memory.info.order = MemoryOrder::c;
}

Array from_numpy(const py::array& array, const char* name) {
  const py::dtype numpy_dtype = array.dtype();
  const auto dtype = dtype_named(numpy_dtype);
  if (!dtype) fail_dtype(name, py::str(py::handle(numpy_dtype)).cast<std::string>());
  Array result;
  result.memory.info = {name, *dtype, Shape(array.shape(), array.shape() + array.ndim()),
                        order_of(numpy_dtype)};
  result.memory.strides.assign(array.strides(), array.strides() + array.ndim());
  result.memory.data = static_cast<std::byte*>(const_cast<void*>(array.data()));
  result.owner = array;
  result.dtype = numpy_dtype;
  result.is_writable = array.writeable();
  set_order(result.memory);
  return result;
}

void check_device(const py::handle& object, const char* name) {
  if (!py::hasattr(object, "__dlpack_device__")) return;
  std::pair<int, int> device;
  const py::object found = object.attr("__dlpack_device__")();
  try {
    device = found.cast<std::pair<int, int>>();
  } catch (const py::cast_error&) {
    throw py::type_error(concat(name, ": its __dlpack_device__() is ",
                                py::repr(found).cast<std::string>(), ", expected two integers"));
  }
  // CPU, and memory of CUDA and ROCm that the CPU sees.
  for (const int type : {1, 3, 11, 13}) {
    if (device.first == type) return;
  }
  throw py::type_error(concat(name, ": is on device ",
                              device.first == 2 ? "cuda" : "of DLPack's type ",
                              device.first == 2 ? "" : std::to_string(device.first), ":",
                              device.second, ", expected the CPU"));
}

// A tensor as its maker exports it; none if it does not, but may be an array in another way.
py::object exported(const py::object& object, const char* name) {
  try {
    py::object capsule = object.attr("__dlpack__")();
    if (capsule.is_none() || PyCapsule_IsValid(capsule.ptr(), "dltensor") != 0) return capsule;
    throw py::type_error(concat(name, ": its __dlpack__() is no capsule of a tensor"));
  } catch (py::error_already_set& error) {
    if (!error.matches(PyExc_Exception)) throw;
    if (py::hasattr(object, "__array__") || PyObject_CheckBuffer(object.ptr()) != 0) {
      return py::none();
    }
    throw py::type_error(concat(name, ": its __dlpack__() raised ",
                                py::str(error.type().attr("__name__")).cast<std::string>(), ": ",
                                py::str(error.value()).cast<std::string>()));
  }
}

Array from_dlpack(const py::capsule& capsule, const char* name) {
  auto* const managed =
      static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
  if (managed == nullptr) throw py::error_already_set();
  PyCapsule_SetName(capsule.ptr(), "used_dltensor");
  Array result;
  result.owner = py::capsule(managed, [](void* pointer) {
    auto* const ours = static_cast<DLManagedTensor*>(pointer);
    if (ours->deleter != nullptr) ours->deleter(ours);
  });
  const DLTensor& tensor = managed->tensor;
  const DLName* found = nullptr;
  for (const DLName& row : kDLNames) {
    if (row.code == tensor.dtype.code && row.bits == tensor.dtype.bits) found = &row;
  }
  if (found == nullptr || tensor.dtype.lanes != 1) {
    fail_dtype(name, concat("DLPack's code ", int{tensor.dtype.code}, " with ",
                            int{tensor.dtype.bits}, " bits"));
  }
  Memory& memory = result.memory;
  memory.info = {name, found->dtype, Shape(tensor.shape, tensor.shape + tensor.ndim)};
  memory.data = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  const auto item = static_cast<std::int64_t>(item_size(found->dtype));
  memory.strides.assign(memory.info.shape.size(), item);
  for (std::size_t i = memory.info.shape.size(); i-- > 0;) {
    if (tensor.strides != nullptr) {
      memory.strides[i] = tensor.strides[i] * item;
    } else if (i + 1 < memory.info.shape.size()) {
      memory.strides[i] = memory.strides[i + 1] * memory.info.shape[i + 1];
    }
  }
  result.is_writable = true;  // or it would not have been exported
  set_order(memory);
  return result;
}

bool is_list(const py::handle& object) {
  return PyList_Check(object.ptr()) != 0 || PyTuple_Check(object.ptr()) != 0;
}

// Throws TypeError for an array whose mask would be lost, or a list of such arrays.
void refuse_mask(const py::handle& object, const char* name) {
  if (py::isinstance<py::array>(object) && py::hasattr(object, "mask") &&
      py::hasattr(object, "filled")) {
    throw py::type_error(concat(name,
                                ": is a masked array, whose mask would be lost, expected "
                                "an array: its filled(), or its data"));
  }
  if (!is_list(object)) return;
  PyObject** const items = PySequence_Fast_ITEMS(object.ptr());
  for (py::ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object.ptr()); ++i) {
    if (py::isinstance<py::array>(items[i])) refuse_mask(items[i], name);
  }
}

// Throws for a list, or an int, of which NumPy makes no array of numbers, and says where the fault is. Returns where it finds none.
void check_list(const std::string& name, const py::handle& object, int depth = 0) {
  constexpr int kMostAxes = 64;  // of NumPy, and more than any list has that is not in itself
  if (depth > kMostAxes) return;
  const auto size_of = [&](const py::handle& one) {
    return is_list(one) ? concat("a list of ", PySequence_Size(one.ptr())) : "a number";
  };
  if (!is_list(object)) {
    if (PyLong_Check(object.ptr()) != 0) {
      int overflow = 0;
      PyLong_AsLongLongAndOverflow(object.ptr(), &overflow);
      if (overflow > 0) PyLong_AsUnsignedLongLong(object.ptr());
      const bool is_beyond = overflow < 0 || PyErr_Occurred() != nullptr;
      PyErr_Clear();
      if (!is_beyond) return;
      throw Error(concat(name, ": is beyond the range of 64-bit integers, expected a float"));
    }
    if (PyFloat_Check(object.ptr()) != 0 || PyNumber_Check(object.ptr()) != 0) return;
    throw py::type_error(
        concat(name, ": is a ", Py_TYPE(object.ptr())->tp_name, ", expected a number"));
  }
  const auto items = py::reinterpret_borrow<py::sequence>(object);
  for (std::size_t i = 0; i < items.size(); ++i) {
    const py::object item = items[i];
    const py::object first = items[0];
    if (size_of(item) != size_of(first)) {
      throw Error(concat(name, '[', i, "]: is ", size_of(item), ", expected ", size_of(first),
                         ", as ", name, "[0] is"));
    }
    check_list(concat(name, '[', i, ']'), item, depth + 1);
  }
}

// What is no array yet: the buffer protocol, __array__, numbers and lists of them.
Array from_any(const py::handle& object, const char* name) {
  py::object made;
  try {
    made = numpy("asarray")(object);
  } catch (py::error_already_set& error) {
    if (!error.matches(PyExc_Exception)) throw;
  }
  if (made && py::isinstance<py::array>(made)) {
    const auto array = py::reinterpret_borrow<py::array>(made);
    if (array.dtype().kind() != 'O' || py::hasattr(object, "__array__")) {
      Array found = from_numpy(array, name);
      // A list would not see what is written to the array that was made of it.
      if (array.owndata() && !py::hasattr(object, "__array__")) found.is_writable = false;
      return found;
    }
  }
  if (is_list(object) || PyLong_Check(object.ptr()) != 0) check_list(name, object);
  throw py::type_error(
      concat(name, ": is a ", Py_TYPE(object.ptr())->tp_name,
             ", expected an array, or what has __dlpack__ or the buffer protocol"));
}

}  // namespace

bool has_overlaps(const Memory& memory) {
  std::vector<std::pair<std::int64_t, std::int64_t>> axes;  // by their strides, with their sizes
  for (std::size_t i = 0; i < memory.strides.size(); ++i) {
    if (memory.info.shape[i] == 0) return false;
    if (memory.info.shape[i] > 1) {
      axes.emplace_back(std::abs(memory.strides[i]), memory.info.shape[i]);
    }
  }
  std::sort(axes.begin(), axes.end());
  auto inner = static_cast<std::int64_t>(item_size(memory.info.dtype));  // bytes up to the last one
  return std::any_of(axes.begin(), axes.end(), [&](const auto& axis) {
    const bool overlaps = axis.first < inner;
    inner += axis.first * (axis.second - 1);
    return overlaps;
  });
}

Array array_of(const py::handle& object, const char* name) {
  refuse_mask(object, name);
  if (py::isinstance<py::array>(object)) {
    return from_numpy(py::reinterpret_borrow<py::array>(object), name);
  }
  if (!py::hasattr(object, "__dlpack__")) return from_any(object, name);
  check_device(object, name);
  auto tensor = py::reinterpret_borrow<py::object>(object);
  // What a tensor is as a function of others is not asked for.
  if (py::hasattr(tensor, "detach")) tensor = tensor.attr("detach")();
  // PyTorch exports a view of negated numbers without its signs.
  if (py::hasattr(tensor, "is_neg") && tensor.attr("is_neg")().cast<bool>()) {
    throw py::type_error(concat(name, ": is a negated view, expected its resolve_neg()"));
  }
  const py::object capsule = exported(tensor, name);
  return capsule.is_none() ? from_any(tensor, name) : from_dlpack(capsule, name);
}

Array new_array(const Shape& shape, DType dtype, const Array* like) {
  py::object numpy_dtype;
  if (is_npy_dtype(dtype)) {
    numpy_dtype = numpy("dtype")(std::string(dtype_row(dtype).npy));
  } else if (like != nullptr && like->memory.info.dtype == dtype && like->dtype) {
    numpy_dtype = like->dtype;
  } else {
    try {
      numpy_dtype =
          numpy("dtype")(py::module_::import("ml_dtypes").attr(std::string(name(dtype)).c_str()));
    } catch (py::error_already_set& error) {
      if (!error.matches(PyExc_ImportError)) throw;
      throw py::type_error(
          concat("the result is ", name(dtype),
                 ", which NumPy has only with ml_dtypes, expected dtype=\"float32\" "
                 "or another that NumPy has, or out="));
    }
  }
  const py::array array(py::reinterpret_borrow<py::dtype>(numpy_dtype),
                        std::vector<py::ssize_t>(shape.begin(), shape.end()));
  Array result;
  result.memory.info = {"", dtype, shape};
  result.memory.data = static_cast<std::byte*>(const_cast<void*>(array.data()));
  result.memory.strides.assign(array.strides(), array.strides() + array.ndim());
  // NumPy forgets the type of an unknown dtype of void.
  result.owner =
      array.dtype().is(numpy_dtype) ? py::object(array) : array.attr("view")(numpy_dtype);
  result.dtype = numpy_dtype;
  result.is_writable = true;
  return result;
}

std::pair<std::byte*, std::byte*> extent_of(const Memory& memory) {
  std::byte* first = memory.data;
  std::byte* last = memory.data + item_size(memory.info.dtype);
  for (std::size_t i = 0; i < memory.strides.size(); ++i) {
    if (memory.info.shape[i] == 0) return {first, first};
    const std::int64_t reach = (memory.info.shape[i] - 1) * memory.strides[i];
    (reach < 0 ? first : last) += reach;
  }
  return {first, last};
}

bool overlap(const Memory& a, const Memory& b) {
  const auto [a_first, a_last] = extent_of(a);
  const auto [b_first, b_last] = extent_of(b);
  return a_first < b_last && b_first < a_last;
}

}  // namespace lnorm::python
