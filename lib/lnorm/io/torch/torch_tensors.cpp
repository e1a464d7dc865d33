#include "lnorm/io/torch/torch_tensors.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <unordered_set>
#include <utility>

#include "lnorm/core/dtype_table.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/members.hpp"
#include "lnorm/io/tensor_set.hpp"
#include "lnorm/io/torch/pickle_reader.hpp"

namespace lnorm {

namespace {

constexpr std::string_view kRebuild = "torch._utils._rebuild_";
constexpr std::string_view kUntypedStorage = "torch.storage.UntypedStorage";

// What tensors need beside storages, dtypes and the functions that make them.
constexpr std::array<std::string_view, 8> kOtherGlobals{
    kUntypedStorage,
    "torch.Size",
    "torch.serialization._get_layout",
    "torch.per_tensor_affine",
    "torch.per_tensor_symmetric",
    "torch.per_channel_affine",
    "torch.per_channel_symmetric",
    "torch.per_channel_affine_float_qparams",
};

// "float32" of "torch.FloatStorage".
std::optional<std::string_view> storage_dtype(std::string_view global) {
  constexpr std::string_view kTorch = "torch.";
  constexpr std::string_view kStorage = "Storage";
  if (!global.starts_with(kTorch) || !global.ends_with(kStorage)) return std::nullopt;
  global.remove_prefix(kTorch.size());
  global.remove_suffix(kStorage.size());
  if (const DTypeRow* const row = find_dtype(&DTypeRow::torch, global)) return row->name;
  // Of dtypes that lnorm does not have.
  using Storage = std::pair<std::string_view, std::string_view>;
  for (const auto& [name, dtype] :
       {Storage{"ComplexDouble", "complex128"}, Storage{"ComplexFloat", "complex64"},
        Storage{"QInt8", "qint8"}, Storage{"QInt32", "qint32"}, Storage{"QUInt8", "quint8"},
        Storage{"QUInt4x2", "quint4x2"}, Storage{"QUInt2x4", "quint2x4"}}) {
    if (name == global) return dtype;
  }
  return std::nullopt;
}

// "float32" of "torch.float32"; there is a new one every few months.
std::optional<std::string_view> dtype_name(std::string_view global) {
  constexpr std::string_view kTorch = "torch.";
  if (!global.starts_with(kTorch)) return std::nullopt;
  const std::string_view name = global.substr(kTorch.size());
  if (name == "bool") return name;
  for (const std::string_view stem :
       {"float", "bfloat", "int", "uint", "complex", "qint", "quint", "bits"}) {
    const std::string_view rest = name.substr(std::min(stem.size(), name.size()));
    const bool has_size = !rest.empty() && std::isdigit(static_cast<unsigned char>(rest[0])) != 0;
    if (name.starts_with(stem) && has_size) return name;
  }
  return std::nullopt;
}

// What a function makes that makes no tensor lnorm reads, and what to save in its place.
struct UnsupportedTensor {
  std::string_view function;
  std::string_view what;
  std::string_view instead;
};

constexpr std::array kUnsupportedTensors{
    UnsupportedTensor{"torch._utils._rebuild_qtensor", "quantized", "x.dequantize()"},
    UnsupportedTensor{"torch._utils._rebuild_sparse_tensor", "sparse", "x.to_dense()"},
    UnsupportedTensor{"torch._utils._rebuild_nested_tensor", "nested", "x.to_padded_tensor(0)"},
    UnsupportedTensor{"torch._utils._rebuild_meta_tensor_no_storage", "meta",
                      "a tensor that has elements"},
};

// Goes through dicts, lists and tuples.
class Finder {
 public:
  Finder(const Pickle& pickle, const std::string& file) : pickle_(pickle), file_(file) {}

  std::vector<NamedTensor> find() {
    if (const PickleValue& root = pickle_[pickle_.root]; is_object(root)) {
      throw Error(
          concat(printable(file_), ": is an object of ", short_name(pickle_[root.items[0]].text),
                 ", expected tensors: nothing is imported or called"),
          hint_to_save_tensors(file_, pickle_[root.items[0]].text));
    }
    visit(pickle_.root, 0);
    std::unordered_set<std::string_view> names;
    for (const NamedTensor& tensor : found_) {
      if (!names.insert(tensor.name).second) {
        fail(concat("two tensors are called '", short_name(tensor.name), "'"));
      }
    }
    return std::move(found_);
  }

 private:
  // More than any model needs: names and values take less than 64 MiB.
  static constexpr std::size_t kMaxVisits = 1'000'000;
  static constexpr std::size_t kMaxTensors = 100'000;
  static constexpr std::size_t kMaxNameBytes = std::size_t{16} << 20;
  static constexpr int kMaxLevels = 64;

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(concat(printable(file_), ": ", what));
  }

  bool is_tensor(const PickleValue& value) const {
    return value.kind == PickleKind::call && pickle_[value.items[0]].text.starts_with(kRebuild);
  }
  // Of a class that no tensor needs.
  bool is_object(const PickleValue& value) const {
    return value.kind == PickleKind::call && !is_torch_global(pickle_[value.items[0]].text);
  }

  void visit(PickleId id, int level) {
    const PickleValue& value = pickle_[id];
    if (++visits_ > kMaxVisits) {
      fail(concat("the pickle names more than ", kMaxVisits, " values"));
    }
    if (is_tensor(value) || (is_object(value) && has_name_)) {
      if (!has_name_) fail("a tensor stands under a key that is neither a string nor an integer");
      if (found_.size() == kMaxTensors) {
        fail(concat("the pickle names more than ", kMaxTensors, " tensors"));
      }
      name_bytes_ += name_.size();
      if (name_bytes_ > kMaxNameBytes) {
        fail(concat("the names of the tensors take more than ", kMaxNameBytes, " bytes"));
      }
      return found_.push_back({name_, id});
    }
    if (level == kMaxLevels) {
      fail(concat("values nest deeper than ", kMaxLevels, " levels, or a list holds itself"));
    }
    const std::vector<PickleId>& items = value.items;
    if (value.kind == PickleKind::dict) {
      for (std::size_t i = 0; i < items.size(); i += 2) {
        visit_item(key(pickle_[items[i]]), items[i + 1], level);
      }
    } else if (value.kind == PickleKind::list || value.kind == PickleKind::tuple) {
      for (std::size_t i = 0; i < items.size(); ++i) visit_item(std::to_string(i), items[i], level);
    }
  }

  void visit_item(const std::optional<std::string>& part, PickleId id, int level) {
    const std::size_t size_before = name_.size();
    const bool had_name = has_name_;
    if (level > 0) name_ += '.';
    has_name_ = has_name_ && part;
    name_ += part.value_or("");
    visit(id, level + 1);
    name_.resize(size_before);
    has_name_ = had_name;
  }

  static std::optional<std::string> key(const PickleValue& value) {
    if (value.kind == PickleKind::string) return value.text;
    if (value.kind == PickleKind::integer) return std::to_string(value.integer);
    return std::nullopt;
  }

  const Pickle& pickle_;
  const std::string& file_;
  std::vector<NamedTensor> found_;
  std::string name_;      // of the value that is visited
  bool has_name_ = true;  // it has one
  std::size_t visits_ = 0;
  std::size_t name_bytes_ = 0;
};

// Reads the arguments of the function that makes a tensor.
class TensorReader {
 public:
  TensorReader(const Pickle& pickle, const std::string& name, const std::string& file)
      : pickle_(pickle), name_(name), file_(file) {}

  StorageView read(PickleId id) {
    const PickleValue* call = &pickle_[id];
    // The first argument of a Parameter is its tensor, which is no Parameter itself.
    if (function(*call) == "torch._utils._rebuild_parameter" ||
        function(*call) == "torch._utils._rebuild_parameter_with_state") {
      const std::vector<PickleId>& arguments = pickle_[call->items[1]].items;
      if (arguments.empty() || pickle_[arguments[0]].kind != PickleKind::call) {
        fail("the Parameter is of no tensor");
      }
      call = &pickle_[arguments[0]];
    }
    const std::vector<PickleId>& arguments = pickle_[call->items[1]].items;
    const bool has_dtype = function(*call) == "torch._utils._rebuild_tensor_v3";
    if (!has_dtype && function(*call) != "torch._utils._rebuild_tensor_v2") {
      refuse_function(function(*call));
    }
    const std::size_t count = has_dtype ? 7 : 6;
    if (arguments.size() != count && arguments.size() != count + 1) {
      fail(concat("is made of ", arguments.size(), " arguments, expected ", count));
    }
    if (arguments.size() > count) check_metadata(pickle_[arguments[count]]);
    read_storage(pickle_[arguments[0]], has_dtype ? &pickle_[arguments[6]] : nullptr);
    view_.offset = integer(pickle_[arguments[1]], "the offset");
    view_.shape = integers(pickle_[arguments[2]], "the shape", "an extent");
    view_.strides = integers(pickle_[arguments[3]], "the strides", "a stride");
    check_bounds();
    return std::move(view_);
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw Error(concat(printable(name_), ": ", what));
  }
  [[noreturn]] void refuse(std::string_view dtype, std::string_view what,
                           std::string_view instead) const {
    throw UnsupportedDType(std::string(dtype), concat(printable(name_), ": ", what),
                           concat("in Python, save ", instead, " in its place"));
  }
  [[noreturn]] void refuse_dtype(std::string_view dtype, std::string_view instead) const {
    refuse(dtype, concat("dtype ", short_name(dtype), ", expected ", dtype_list(&DTypeRow::name)),
           instead);
  }
  [[noreturn]] void refuse_function(const std::string& function) const {
    for (const auto& [name, what, instead] : kUnsupportedTensors) {
      if (name != function) continue;
      refuse(what, concat("is a ", what, " tensor, expected one of elements"), instead);
    }
    if (!is_torch_global(function)) {
      const bool is_array = function.starts_with("numpy.");
      throw UnsupportedDType(is_array ? "a NumPy array" : short_name(function),
                             concat(printable(name_), ": is an object of ", short_name(function),
                                    ", expected a tensor"),
                             hint_to_save_tensors(file_, function, true));
    }
    refuse("unknown", concat("is made by ", short_name(function), ", which lnorm does not know"),
           "x.detach().clone()");
  }

  const std::string& function(const PickleValue& call) const { return pickle_[call.items[0]].text; }

  // What PyTorch negates or conjugates when it is read.
  void check_metadata(const PickleValue& metadata) const {
    if (metadata.kind == PickleKind::none) return;
    if (metadata.kind == PickleKind::dict && metadata.items.empty()) return;
    refuse("negated", "is a view that PyTorch changes as it reads it",
           "x.resolve_conj().resolve_neg().clone()");
  }

  // dtype: what a storage without a type holds, or null.
  void read_storage(const PickleValue& value, const PickleValue* dtype) {
    // ('storage', torch.FloatStorage, '0', 'cpu', 24)
    if (value.kind != PickleKind::persistent) fail("is of no storage");
    const PickleValue& tuple = pickle_[value.items[0]];
    if (tuple.kind != PickleKind::tuple || tuple.items.size() != 5) fail("is of no known storage");
    const PickleValue& type = pickle_[tuple.items[1]];
    const PickleValue& key = pickle_[tuple.items[2]];
    if (pickle_[tuple.items[0]].text != "storage" || type.kind != PickleKind::global ||
        key.kind != PickleKind::string) {
      fail("is of no known storage");
    }
    view_.storage = key.text;
    const bool is_untyped = type.text == kUntypedStorage;
    const auto name = dtype != nullptr ? dtype_name(dtype->text) : storage_dtype(type.text);
    if (!name || is_untyped != (dtype != nullptr)) fail("is of no known dtype");
    view_.dtype = known_dtype(*name);
    const auto item = static_cast<std::int64_t>(item_size(view_.dtype));
    const std::int64_t length = integer(pickle_[tuple.items[4]], "the length of the storage");
    if (__builtin_mul_overflow(length, is_untyped ? 1 : item, &view_.storage_bytes)) {
      fail(concat("the storage is said to have ", length, " elements"));
    }
  }

  DType known_dtype(std::string_view name) const {
    const auto dtype = parse_dtype(name);
    if (dtype) return *dtype;
    if (name.starts_with("complex")) refuse_dtype(name, "torch.view_as_real(x)");
    if (name.starts_with("float")) refuse_dtype(name, "x.float()");
    if (name.starts_with("q")) refuse_dtype(name, "x.dequantize()");
    refuse_dtype(name, "x.to(torch.int64)");
  }

  std::int64_t integer(const PickleValue& value, std::string_view what) const {
    if (value.kind != PickleKind::integer) fail(concat(what, " is no integer"));
    if (value.integer < 0) fail(concat(what, " is ", value.integer, ", expected 0 or more"));
    return value.integer;
  }

  std::vector<std::int64_t> integers(const PickleValue& value, std::string_view what,
                                     std::string_view what_of_it) const {
    const PickleValue* tuple = &value;
    if (value.kind == PickleKind::call && function(value) == "torch.Size") {
      const std::vector<PickleId>& arguments = pickle_[value.items[1]].items;
      if (arguments.size() == 1) tuple = &pickle_[arguments[0]];
    }
    if (tuple->kind != PickleKind::tuple) fail(concat(what, " is no tuple"));
    if (tuple->items.size() > kMaxDims) {
      fail(concat(what, " has ", tuple->items.size(), " dimensions, expected at most ", kMaxDims));
    }
    std::vector<std::int64_t> result;
    for (const PickleId item : tuple->items) {
      result.push_back(integer(pickle_[item], what_of_it));
    }
    return result;
  }

  void check_bounds() const {
    if (view_.strides.size() != view_.shape.size()) {
      fail(concat("shape ", to_string(view_.shape), " has strides ", to_string(view_.strides)));
    }
    const bool is_empty = std::find(view_.shape.begin(), view_.shape.end(), 0) != view_.shape.end();
    if (is_empty) return;  // PyTorch has such views behind the end
    // The number of the element behind the last one.
    std::int64_t end = view_.offset;
    bool fits = !__builtin_add_overflow(end, 1, &end);
    for (std::size_t axis = 0; fits && axis < view_.shape.size(); ++axis) {
      std::int64_t reach = 0;
      fits = !__builtin_mul_overflow(view_.shape[axis] - 1, view_.strides[axis], &reach) &&
             !__builtin_add_overflow(end, reach, &end);
    }
    const std::int64_t elements =
        view_.storage_bytes / static_cast<std::int64_t>(item_size(view_.dtype));
    if (!fits || end > elements) {
      fail(concat("shape ", to_string(view_.shape), " with strides ", to_string(view_.strides),
                  " from element ", view_.offset, " on goes beyond its storage of ",
                  counted(elements, "element")));
    }
    // An expanded one may have any number of elements, of which reading takes as long.
    constexpr std::int64_t kMaxExpanded = std::int64_t{1} << 32;
    const auto count = checked_product(view_.shape);
    if (count && *count > elements && *count > kMaxExpanded) {
      fail(concat("shape ", to_string(view_.shape), " is expanded from a storage of ",
                  counted(elements, "element"), ", expected at most 2^32 elements"));
    }
  }

  const Pickle& pickle_;
  const std::string& name_;
  const std::string& file_;
  StorageView view_;
};

}  // namespace

bool is_torch_global(std::string_view name) {
  return name.starts_with(kRebuild) || storage_dtype(name) || dtype_name(name) ||
         std::find(kOtherGlobals.begin(), kOtherGlobals.end(), name) != kOtherGlobals.end();
}

std::vector<NamedTensor> find_torch_tensors(const Pickle& pickle, const std::string& file) {
  return Finder(pickle, file).find();
}

StorageView read_torch_tensor(const Pickle& pickle, PickleId value, const std::string& name,
                              const std::string& file) {
  return TensorReader(pickle, name, file).read(value);
}

}  // namespace lnorm
