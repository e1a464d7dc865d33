#include "lnorm/io/json/json_numbers.hpp"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lnorm/core/pool.hpp"
#include "lnorm/io/json/json_number.hpp"

namespace lnorm {

namespace {

// What the cache holds of text, index and elements.
constexpr std::size_t kSlice = std::size_t{128} << 10;

// How often characters that give the text its structure are there. Outside of strings each comma comes before an
// element, if no list is empty.
struct Marks {
  std::int64_t commas = 0;
  std::int64_t opened = 0;
  std::int64_t closed = 0;
};

Marks count_marks(std::string_view text) {
  constexpr std::size_t kBlock = 128;  // what a byte can count, and a compiler makes vectors of
  Marks marks;
  const auto count = [&](const char* block) {
    std::uint8_t commas = 0;
    std::uint8_t opened = 0;
    std::uint8_t closed = 0;
    for (std::size_t i = 0; i < kBlock; ++i) {
      commas = static_cast<std::uint8_t>(commas + (block[i] == ','));
      opened = static_cast<std::uint8_t>(opened + (block[i] == '['));
      closed = static_cast<std::uint8_t>(closed + (block[i] == ']'));
    }
    marks.commas += commas;
    marks.opened += opened;
    marks.closed += closed;
  };
  for (; text.size() >= kBlock; text.remove_prefix(kBlock)) count(text.data());
  std::array<char, kBlock> last{};
  std::copy(text.begin(), text.end(), last.begin());
  count(last.data());
  return marks;
}

// Elements of a list at each depth, the whole text first, 1 last: what the first list of each depth has. Empty if
// that is no tensor of so many elements.
std::vector<std::int64_t> list_sizes(std::string_view text, std::int64_t elements) {
  const std::string_view opening = text.substr(0, text.find_first_not_of("[ \t\r\n"));
  const auto ndim = static_cast<std::size_t>(std::count(opening.begin(), opening.end(), '['));
  if (ndim > kMaxDims) return {};
  std::vector<std::int64_t> sizes(ndim + 1, 1);
  sizes[0] = elements;
  std::int64_t depth = 0;
  std::int64_t passed = 1;
  for (std::size_t known = ndim; known > 1;) {
    const std::size_t end = text.find(']');
    if (end == text.npos) return {};
    const Marks marks = count_marks(text.substr(0, end));
    passed += marks.commas;
    depth += marks.opened - 1;
    text.remove_prefix(end + 1);
    if (depth < 0) return {};
    if (static_cast<std::size_t>(depth) < known) {
      sizes[--known] = passed;
    }
  }
  for (std::size_t i = 0; i < ndim; ++i) {
    if (sizes[i] % sizes[i + 1] != 0) return {};
  }
  return sizes;
}

// Between two commas, or an end. As many lists as its depth are open at its start.
struct Slice {
  std::string_view text;
  std::int64_t first = 0;  // of its elements
  std::int64_t depth = 0;
};

std::vector<Slice> cut(std::string_view text) {
  std::vector<Slice> slices;
  slices.reserve(text.size() / kSlice + 1);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(',', kSlice), text.size());
    slices.push_back({text.substr(0, end)});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return slices;
}

// Says where the slices begin, and how many elements there are; false if lists do not close.
bool place(std::vector<Slice>& slices, const InParallel& in_parallel, std::int64_t& elements) {
  std::vector<Marks> marks(slices.size());
  in_parallel(std::ssize(slices), [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    marks[at] = count_marks(slices[at].text);
  });
  elements = 0;
  std::int64_t depth = 0;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    slices[i].first = elements;
    slices[i].depth = depth;
    elements += marks[i].commas + 1;
    depth += marks[i].opened - marks[i].closed;
    if (depth < 0 || (depth == 0) != (i + 1 == slices.size())) return false;
  }
  return true;
}

// How many lists are open before an element of a tensor.
std::int64_t depth_before(std::int64_t element, std::span<const std::int64_t> sizes) {
  return std::count_if(sizes.begin(), sizes.end() - 1,
                       [&](std::int64_t size) { return element % size != 0; });
}

// Reads one slice after another: as a text of its own, in which the lists open at its start and its end are
// completed.
class SliceReader {
 public:
  SliceReader(DType dtype, std::span<const std::int64_t> sizes)
      : dtype_(dtype), item_(item_size(dtype)), sizes_(sizes) {}

  // to: a buffer for the elements from slice.first to next.first. Whether all are there, each list as long as the others
  // of its depth.
  bool read(const Slice& slice, const Slice& next, std::span<std::byte> to) {
    text_.assign(static_cast<std::size_t>(slice.depth), '[');
    text_ += slice.text;
    text_.append(static_cast<std::size_t>(next.depth), ']');
    const std::size_t size = text_.size();
    text_.append(simdjson::SIMDJSON_PADDING, ' ');
    first_ = position_ = slice.first;
    end_ = next.first;
    open_at_end_ = next.depth;
    to_ = to;
    simdjson::ondemand::document document;
    simdjson::ondemand::array list;
    const char* rest = nullptr;
    return parser_.iterate(text_.data(), size, text_.size()).get(document) == simdjson::SUCCESS &&
           document.get_array().get(list) == simdjson::SUCCESS && read_list(list, 0) &&
           position_ == end_ && document.current_location().get(rest) == simdjson::OUT_OF_BOUNDS;
  }

 private:
  bool read_list(simdjson::ondemand::array& list, std::size_t depth) {
    const std::int64_t size = sizes_[depth];
    const std::int64_t begin = position_ - position_ % size;
    if (position_ != begin && position_ != first_) return false;
    if (depth + 2 == sizes_.size()) {
      const auto count = read_json_list(list, dtype_, to_);
      if (!count) return false;
      to_ = to_.subspan(*count * item_);
      position_ += static_cast<std::int64_t>(*count);
    } else {
      for (auto result : list) {
        simdjson::ondemand::array inner;
        if (result.get_array().get(inner) != simdjson::SUCCESS || !read_list(inner, depth + 1)) {
          return false;
        }
      }
    }
    const bool goes_on = position_ == end_ && static_cast<std::int64_t>(depth) < open_at_end_;
    return goes_on ? position_ - begin < size : position_ - begin == size;
  }

  DType dtype_;
  std::size_t item_;
  std::span<const std::int64_t> sizes_;
  simdjson::ondemand::parser parser_;
  std::string text_;
  std::span<std::byte> to_;
  std::int64_t first_ = 0;
  std::int64_t position_ = 0;
  std::int64_t end_ = 0;
  std::int64_t open_at_end_ = 0;
};

}  // namespace

bool read_json_numbers(std::string_view list, JsonTensor& tensor, const InParallel& in_parallel) {
  if (list.size() < kSlice || list.front() != '[') return false;
  std::vector<Slice> slices = cut(list);
  std::int64_t count = 0;
  if (!place(slices, in_parallel, count)) return false;
  const std::vector<std::int64_t> sizes = list_sizes(list, count);
  if (sizes.empty()) return false;
  for (const Slice& slice : slices) {
    if (slice.depth != depth_before(slice.first, sizes)) return false;
  }
  slices.push_back({{}, count, 0});

  const DType dtype = tensor.info.dtype;
  const std::size_t item = item_size(dtype);
  RawBytes elements(static_cast<std::size_t>(count) * item);
  Pool<SliceReader> readers;
  std::atomic<bool> all_read = true;
  in_parallel(std::ssize(slices) - 1, [&](std::int64_t i) {
    if (!all_read) return;
    auto reader = readers.take([&] { return std::make_unique<SliceReader>(dtype, sizes); });
    const Slice& slice = slices[static_cast<std::size_t>(i)];
    const Slice& next = slices[static_cast<std::size_t>(i) + 1];
    const auto buffer =
        std::span(elements).subspan(static_cast<std::size_t>(slice.first) * item,
                                    static_cast<std::size_t>(next.first - slice.first) * item);
    if (!reader->read(slice, next, buffer)) all_read = false;
    readers.give(std::move(reader));
  });
  if (!all_read) return false;
  tensor.info.shape.clear();
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
    tensor.info.shape.push_back(sizes[i] / sizes[i + 1]);
  }
  tensor.elements = std::move(elements);
  return true;
}

}  // namespace lnorm
