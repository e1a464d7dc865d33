#include "lnorm/io/torch/torch.hpp"

#include <algorithm>
#include <numeric>

#include "fuzz/in_memory.hpp"
#include "fuzz/targets.hpp"
#include "lnorm/io/raw_tensor.hpp"
#include "lnorm/io/torch/pickle_reader.hpp"
#include "lnorm/io/torch/torch_tensors.hpp"
#include "support/pickle.hpp"
#include "support/sets.hpp"

namespace {

using namespace fuzz;

// The storages '0', '1', ... of every archive that is made here, in bytes.
constexpr std::size_t kStorageSizes[] = {24, 96, 8, 0, 240};
// Views of few elements may say that they are many.
constexpr std::int64_t kMaxElements = 4096;
constexpr std::size_t kMaxMembers = 16;

std::vector<std::string> storages() {
  std::vector<std::string> result;
  for (const std::size_t size : kStorageSizes) {
    std::string& storage = result.emplace_back(size, '\0');
    std::iota(storage.begin(), storage.end(), static_cast<char>(result.size()));
  }
  return result;
}

// What is neither refused nor of a kind that lnorm does not read.
struct Found {
  std::string name;
  lnorm::StorageView view;
};

// Nothing where the pickle is refused; without views of other dtypes.
std::optional<std::vector<Found>> find(std::string_view pickle) {
  return unless_refused([&] {
    const lnorm::Pickle values = lnorm::read_pickle(pickle, "x");
    std::vector<Found> result;
    for (const auto& tensor : lnorm::find_torch_tensors(values, "x")) {
      try {
        result.push_back({tensor.name, lnorm::read_torch_tensor(values, tensor.value, "x", "x")});
      } catch (const lnorm::UnsupportedDType&) {
        continue;
      }
    }
    return result;
  });
}

// The elements of a view, one by one, in C order or with the first index going fastest.
std::string elements_of(const lnorm::StorageView& view, lnorm::MemoryOrder order,
                        std::string_view storage) {
  lnorm::Shape shape = view.shape;
  std::vector<std::int64_t> strides = view.strides;
  if (order == lnorm::MemoryOrder::fortran) {
    std::reverse(shape.begin(), shape.end());
    std::reverse(strides.begin(), strides.end());
  }
  const std::size_t item = lnorm::item_size(view.dtype);
  std::string elements;
  for (std::int64_t i = 0; i < lnorm::element_count(shape); ++i) {
    const lnorm::Shape index = lnorm::index_of(i, shape);
    const std::int64_t from =
        std::inner_product(index.begin(), index.end(), strides.begin(), view.offset);
    elements += storage.substr(static_cast<std::size_t>(from) * item, item);
  }
  return elements;
}

void check_elements(const lnorm::TensorSet& set, std::size_t index, const lnorm::StorageView& view,
                    std::string_view storage) {
  const auto source = set.open(index);
  const std::string expected = elements_of(view, source->info().order, storage);
  const auto whole = lnorm::read_all(*source);
  require(support::text_of(whole) == expected, "a view has the elements that its strides say");
  for (const std::size_t piece : {5U, 64U}) {
    const auto pieces = support::read_in_pieces(*set.open(index), expected.size(), piece);
    require(support::text_of(pieces) == expected, "positions have the same elements");
  }
}

// As many as are few enough to be read.
bool is_small(const lnorm::Shape& shape) {
  const auto count = lnorm::checked_product(shape);
  return count && *count <= kMaxElements;
}

std::unique_ptr<lnorm::TensorSet> open_set(std::string_view file) {
  const auto set = [&] {
    const auto archive = std::make_shared<const lnorm::ZipArchive>(memory_source(file));
    return lnorm::is_torch(*archive) ? lnorm::open_torch(archive) : nullptr;
  };
  return unless_refused(set).value_or(nullptr);
}

// Any bytes as the pickle of an archive.
void check_as_pickle(std::string_view bytes) {
  const auto found = find(bytes);
  const auto content = storages();
  const std::string file = support::torch_file(std::string(bytes), content);
  const auto set = open_set(file);
  require(found || !set, "a pickle that is refused is refused in an archive, too");
  if (!set) return;
  std::size_t next = 0;
  for (std::size_t i = 0; i < std::min(set->size(), kMaxMembers); ++i) {
    if (!set->describe(i).shape) continue;
    const auto& [name, view] = (*found)[next++];
    require(set->tensor_name(i) == name, "tensors are listed in their order");
    require(set->info(i).shape == view.shape, "they are listed with their shapes");
    if (!is_small(view.shape)) continue;
    check_elements(*set, i, view, content.at(static_cast<std::size_t>(std::stoi(view.storage))));
  }
}

void check_torch_file(std::string_view bytes) {
  const auto set = open_set(bytes);
  if (!set) return;
  for (std::size_t i = 0; i < std::min(set->size(), kMaxMembers); ++i) {
    const lnorm::Member listed = set->describe(i);
    if (!listed.shape || !is_small(*listed.shape)) continue;
    // It is refused if its sum is not right.
    const auto whole = unless_refused([&] { return lnorm::read_all(*set->open(i)); });
    require(!whole || std::ssize(*whole) == listed.bytes, "all elements are read");
  }
}

}  // namespace

int fuzz_torch(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = bytes_of(data, size);
  if (bytes.starts_with("PK")) {
    check_torch_file(bytes);
  } else {
    check_as_pickle(bytes);
  }
  return 0;
}
