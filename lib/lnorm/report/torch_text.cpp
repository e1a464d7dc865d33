#include "lnorm/report/torch_text.hpp"

#include <algorithm>
#include <utility>

#include "lnorm/core/text.hpp"

namespace lnorm {

namespace {

constexpr std::string_view kPrefix = "tensor(";

// Prints shown elements one after another, and around each what belongs before and behind it.
class Lines {
 public:
  // shape: of what is shown. cut: of each axis, whether something is left out amid it.
  Lines(const Shape& shape, std::vector<bool> cut, std::size_t linewidth,
        const TorchElements& format)
      : shape_(shape), cut_(std::move(cut)), format_(format) {
    const std::size_t rank = shape.size();
    for (std::size_t axis = 0; axis < rank; ++axis) {
      const std::size_t newlines = axis + 1 == rank ? 1 : rank - axis - 1;
      breaks_.push_back(',' + std::string(newlines, '\n') +
                        std::string(kPrefix.size() + axis + 1, ' '));
    }
    const std::size_t indent = kPrefix.size() + rank - 1;
    const std::size_t buffer = linewidth - std::min(linewidth, indent);
    per_line_ = std::max<std::int64_t>(static_cast<std::int64_t>(buffer / (format.width() + 2)), 1);
    // Two breaks on each side of an ellipsis, and brackets.
    most_ = format.buffer() + 2 * breaks_.front().size() + 4 * rank + kPrefix.size() + 16;
  }

  std::string_view print(std::int64_t position, std::span<const std::byte> elements,
                         std::size_t item, std::string& buffer) const {
    buffer.resize(std::max(buffer.size(), most_));
    Shape index = index_of(position, shape_);
    char* to = buffer.data();
    const std::byte* const end = elements.data() + elements.size();
    for (const std::byte* at = elements.data(); at != end; at += item) {
      const auto used = static_cast<std::size_t>(to - buffer.data());
      if (buffer.size() - used < most_) {
        buffer.resize(2 * buffer.size());
        to = buffer.data() + used;
      }
      to = put_before(index, to);
      to = format_.put(at, to);
      to = step(index, to);
    }
    return {buffer.data(), static_cast<std::size_t>(to - buffer.data())};
  }

 private:
  // Between a part of an axis and the one before it. An ellipsis is a part.
  char* put_break(std::size_t axis, std::int64_t part, char* to) const {
    const bool stays_on_line = axis + 1 == shape_.size() && part % per_line_ != 0;
    return put(stays_on_line ? std::string_view(", ") : breaks_[axis], to);
  }

  char* put_before(const Shape& index, char* to) const {
    const std::size_t rank = shape_.size();
    std::size_t axis = rank;  // whose list goes on here; those of the axes behind it begin
    while (axis > 0 && index[axis - 1] == 0) --axis;
    if (axis == 0) return std::fill_n(put(kPrefix, to), rank, '[');
    std::int64_t part = index[--axis];
    if (cut_[axis] && part >= shape_[axis] / 2) {
      if (part == shape_[axis] / 2) {
        to = put_break(axis, part, to);
        to = put(axis + 1 == rank ? " ..." : "...", to);
      }
      ++part;
    }
    return std::fill_n(put_break(axis, part, to), rank - axis - 1, '[');
  }

  // Steps the index; what rolls over closes its list.
  char* step(Shape& index, char* to) const {
    for (std::size_t axis = shape_.size(); axis-- > 0;) {
      if (++index[axis] < shape_[axis]) break;
      index[axis] = 0;
      *to++ = ']';
    }
    return to;
  }

  static char* put(std::string_view text, char* to) {
    return std::copy(text.begin(), text.end(), to);
  }

  const Shape& shape_;
  std::vector<bool> cut_;
  const TorchElements& format_;
  std::vector<std::string> breaks_;  // of each axis, where a line ends
  std::int64_t per_line_;
  std::size_t most_;  // that an element takes
};

}  // namespace

TorchText::TorchText(DType dtype, Shape shape, PrintOptions options)
    : dtype_(dtype),
      shape_(std::move(shape)),
      options_(options),
      count_(element_count(shape_)),
      run_begin_(count_),
      run_end_(count_) {
  options_.precision = std::max(options_.precision, 0);
  options_.linewidth = std::max<std::int64_t>(options_.linewidth, 0);
  if (count_ > options_.threshold && !shape_.empty()) {
    edge_ = std::max<std::int64_t>(options_.edgeitems, 0);
  }
  for (const std::int64_t extent : shape_) {
    shown_shape_.push_back(is_cut(extent) ? 2 * edge_ : extent);
  }
  if (count_ > 0 && edge_ > 0) find_run(0);
}

bool TorchText::is_cut(std::int64_t extent) const { return extent - edge_ > edge_; }

// Finds the first run of shown elements at or after position. A run stays within one row.
void TorchText::find_run(std::int64_t position) {
  std::int64_t stride = 1;
  for (std::size_t axis = shape_.size(); axis-- > 0; stride *= shape_[axis]) {
    const std::int64_t tail = shape_[axis] - edge_;
    const std::int64_t index = position / stride % shape_[axis];
    if (is_cut(shape_[axis]) && index >= edge_ && index < tail) {
      position = (position / stride + tail - index) * stride;
    }
  }
  const std::int64_t row = shape_.empty() ? 1 : shape_.back();
  const std::int64_t index = position % row;
  const std::int64_t stop = is_cut(row) && index < edge_ ? edge_ : row;
  run_begin_ = position;
  run_end_ = position + std::min(stop - index, count_ - position);
}

void TorchText::add(std::span<const std::byte> bytes) {
  const std::size_t item = item_size(dtype_);
  const std::int64_t end =
      position_ + std::min(static_cast<std::int64_t>(bytes.size() / item), count_ - position_);
  while (run_begin_ < end) {
    const std::int64_t stop = std::min(run_end_, end);
    const auto piece = bytes.subspan(static_cast<std::size_t>(run_begin_ - position_) * item,
                                     static_cast<std::size_t>(stop - run_begin_) * item);
    shown_.insert(shown_.end(), piece.begin(), piece.end());
    run_begin_ = stop;
    if (stop == run_end_) find_run(stop);
  }
  position_ = end;
}

bool TorchText::shows_all() const noexcept { return count_ > 0 && shown_shape_ == shape_; }

std::string_view TorchText::print(const TorchElements& format, std::int64_t position,
                                  std::span<const std::byte> elements, std::string& buffer) const {
  if (shape_.empty()) {
    buffer.resize(kPrefix.size() + format.buffer());
    char* const begin = std::copy(kPrefix.begin(), kPrefix.end(), buffer.data());
    return {buffer.data(), format.put(elements.data(), begin)};
  }
  std::vector<bool> cut;
  for (const std::int64_t extent : shape_) cut.push_back(is_cut(extent));
  const Lines lines(shown_shape_, std::move(cut), static_cast<std::size_t>(options_.linewidth),
                    format);
  return lines.print(position, elements, item_size(dtype_), buffer);
}

std::string TorchText::str() const {
  std::string text;
  if (shown_.empty()) {
    text = concat(kPrefix, count_ == 0 ? "[]" : "[...]");
  } else {
    TorchRange range;
    range.add(dtype_, shown_);
    text.resize(print({dtype_, range, options_}, 0, shown_, text).size());
  }
  return text + end(text.size() - (text.rfind('\n') + 1));  // 0 if there is no other line: npos + 1
}

std::string TorchText::end(std::size_t column) const {
  std::vector<std::string> suffixes;
  if (count_ == 0 && shape_.size() != 1) suffixes.push_back("size=" + to_string(shape_));
  const bool evident = dtype_ == DType::float32 ||
                       (count_ > 0 && (dtype_ == DType::int64 || dtype_ == DType::boolean));
  if (!evident) suffixes.push_back(concat("dtype=torch.", name(dtype_)));

  std::string out;
  column += 2;  // PyTorch takes the last line for two characters longer than it is
  for (const std::string& suffix : suffixes) {
    column += suffix.size() + 2;
    if (column > static_cast<std::size_t>(options_.linewidth)) {
      out += ",\n" + std::string(kPrefix.size(), ' ');
      column = kPrefix.size() + suffix.size();
    } else {
      out += ", ";
    }
    out += suffix;
  }
  return out + ')';
}

}  // namespace lnorm
