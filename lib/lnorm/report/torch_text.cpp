#include "lnorm/report/torch_text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include "lnorm/core/decimal.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm {

namespace {

template <class T>
T element_at(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

template <class T>
double number_at(const std::byte* bytes) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(element_at<T>(bytes));
  } else {
    return to_double(element_at<T>(bytes));
  }
}

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

class TextSink final : public TensorSink {
 public:
  TextSink(ByteSink& bytes, const TensorInfo& info, const PrintOptions& options)
      : bytes_(bytes), text_(info.dtype, info.shape, options) {}

  void write(std::span<const std::byte> encoded) override { text_.add(encoded); }

  void finish() override {
    bytes_.write(text_.str());
    bytes_.write("\n");
  }

 private:
  ByteSink& bytes_;
  TorchText text_;
};

// Prints a tensor that is not to be held.
class LongTextSink final : public TensorSink {
 public:
  LongTextSink(ByteSink& bytes, const TensorInfo& info, const PrintOptions& options)
      : bytes_(bytes),
        dtype_(info.dtype),
        options_(options),
        text_(info.dtype, info.shape, options) {}

  bool needs_prescan() const noexcept override { return true; }
  void prescan(std::span<const std::byte> elements) override {
    TorchRange range;
    range.add(dtype_, elements);
    const std::lock_guard lock(mutex_);
    range_.add(range);
  }
  void begin_writing() override { format_.emplace(dtype_, range_, options_); }

  std::span<const std::byte> encode(std::int64_t position, std::span<const std::byte> elements,
                                    std::string& buffer) const override {
    return std::as_bytes(std::span(text_.print(*format_, position, elements, buffer)));
  }

  void write(std::span<const std::byte> encoded) override {
    bytes_.write(encoded);
    const std::string_view text(reinterpret_cast<const char*>(encoded.data()), encoded.size());
    const std::size_t line = text.rfind('\n');
    column_ = line == text.npos ? column_ + text.size() : text.size() - line - 1;
  }

  void finish() override {
    bytes_.write(text_.end(column_));
    bytes_.write("\n");
  }

 private:
  ByteSink& bytes_;
  DType dtype_;
  PrintOptions options_;
  TorchText text_;
  std::mutex mutex_;
  TorchRange range_;
  std::optional<TorchElements> format_;
  std::size_t column_ = 0;  // of what is written, in its last line
};

}  // namespace

template <class T>
void TorchRange::add_floats(std::span<const std::byte> elements) {
  Sizes above = sizes_[0];
  Sizes below = sizes_[1];
  const std::byte* const end = elements.data() + elements.size();
  for (const std::byte* at = elements.data(); at != end; at += sizeof(T)) {
    const double value = number_at<T>(at);
    const double size = std::fabs(value);
    const bool is_above = value > 0 && value < kInfinity;
    const bool is_below = value < 0 && value > -kInfinity;
    above.smallest = std::min(above.smallest, is_above ? value : kInfinity);
    above.largest = std::max(above.largest, is_above ? value : 0.0);
    below.smallest = std::min(below.smallest, is_below ? size : kInfinity);
    below.largest = std::max(below.largest, is_below ? size : 0.0);
    if (integral_ && (is_above || is_below)) integral_ = value == std::trunc(value);
  }
  sizes_ = {above, below};
}

template <class T>
void TorchRange::add_integers(std::span<const std::byte> elements) {
  T least = std::numeric_limits<T>::max();
  T most = std::numeric_limits<T>::min();
  const std::byte* const end = elements.data() + elements.size();
  for (const std::byte* at = elements.data(); at != end; at += sizeof(T)) {
    const auto value = element_at<T>(at);
    least = std::min(least, value);
    most = std::max(most, value);
  }
  if (elements.empty()) return;
  least_ = std::min<Int128>(least_, least);
  most_ = std::max<Int128>(most_, most);
}

void TorchRange::add(DType dtype, std::span<const std::byte> elements) {
  if (dtype == DType::boolean) return add_integers<std::uint8_t>(elements);
  visit(dtype, [&]<class T>(T) {
    if constexpr (std::is_integral_v<T>) {
      add_integers<T>(elements);
    } else {
      add_floats<T>(elements);
    }
  });
}

void TorchRange::add(const TorchRange& other) {
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    sizes_[i].smallest = std::min(sizes_[i].smallest, other.sizes_[i].smallest);
    sizes_[i].largest = std::max(sizes_[i].largest, other.sizes_[i].largest);
  }
  integral_ = integral_ && other.integral_;
  least_ = std::min(least_, other.least_);
  most_ = std::max(most_, other.most_);
}

TorchElements::TorchElements(DType dtype, const TorchRange& range, const PrintOptions& options)
    : dtype_(dtype), precision_(std::max(options.precision, 0)) {
  if (is_floating(dtype_)) choose_notation(range, options.sci_mode);
  choose_width(range);
  constexpr std::size_t kMaxBesidesFraction = std::numeric_limits<double>::max_exponent10 + 8;
  const bool is_long = is_floating(dtype_) && notation_ != Notation::scientific;
  const std::size_t most =
      (is_long ? kMaxBesidesFraction : 32) + static_cast<std::size_t>(precision_);
  room_ = std::max(width_, most);
}

void TorchElements::choose_notation(const TorchRange& range, PrintOptions::SciMode sci_mode) {
  const double smallest = std::min(range.sizes_[0].smallest, range.sizes_[1].smallest);
  const double largest = std::max(range.sizes_[0].largest, range.sizes_[1].largest);
  if (largest == 0) return;  // PyTorch does not heed sci_mode here
  const bool scientific = sci_mode == PrintOptions::SciMode::automatic
                              ? largest / smallest > 1000 || largest > 1e8 || smallest < 1e-4
                              : sci_mode == PrintOptions::SciMode::on;
  if (scientific) {
    notation_ = Notation::scientific;
  } else if (!range.integral_) {
    notation_ = Notation::fixed;
  }
}

// Among numbers of one sign, one farther from zero has as many characters or more, but for exponents, which are longest at
// either end.
void TorchElements::choose_width(const TorchRange& range) {
  const auto take = [&](std::size_t width) { width_ = std::max(width_, width); };
  if (is_floating(dtype_)) {
    for (const double sign : {1.0, -1.0}) {
      const auto& [smallest, largest] = range.sizes_[sign > 0 ? 0 : 1];
      if (largest == 0) continue;
      take(text(sign * smallest).size());
      take(text(sign * largest).size());
    }
  } else if (range.least_ > range.most_) {
    return;
  } else if (dtype_ == DType::boolean) {
    take(range.least_ == 0 ? 5 : 4);  // False, True
  } else {
    for (const Int128 end : {range.least_, range.most_}) {
      take(end < 0 ? std::to_string(static_cast<std::int64_t>(end)).size()
                   : std::to_string(static_cast<std::uint64_t>(end)).size());
    }
  }
}

std::string TorchElements::text(double value) const {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  constexpr std::size_t kMaxBesidesFraction = std::numeric_limits<double>::max_exponent10 + 8;
  std::string text(kMaxBesidesFraction + static_cast<std::size_t>(precision_), '\0');
  const auto style =
      notation_ == Notation::scientific ? std::chars_format::scientific : std::chars_format::fixed;
  const auto result = std::to_chars(text.data(), text.data() + text.size(), value, style,
                                    notation_ == Notation::integral ? 0 : precision_);
  text.resize(static_cast<std::size_t>(result.ptr - text.data()));
  if (notation_ == Notation::integral) text += '.';
  return text;
}

char* TorchElements::put_padded(std::string_view text, char* to) const {
  to = std::fill_n(to, width_ - std::min(width_, text.size()), ' ');
  return std::copy(text.begin(), text.end(), to);
}

// The blanks and the sign of a number of so many characters without it.
char* TorchElements::put_sign(double value, std::size_t length, char* to) const {
  const bool negative = std::signbit(value);
  length += negative ? 1 : 0;
  to = std::fill_n(to, width_ - std::min(width_, length), ' ');
  if (negative) *to++ = '-';
  return to;
}

char* TorchElements::put_fixed(double value, char* to) const {
  const int behind_point = notation_ == Notation::integral ? 0 : precision_;
  const auto number = rounded_multiple(std::abs(value), behind_point);
  if (!number) return put_padded(text(value), to);
  const bool has_point = behind_point > 0 || notation_ == Notation::integral;
  const int digits = std::max(digits_of(*number), behind_point + 1);
  to = put_sign(value, static_cast<std::size_t>(digits) + (has_point ? 1 : 0), to);
  to = put_with_point(*number, digits, behind_point, to);
  if (notation_ == Notation::integral) *to++ = '.';
  return to;
}

char* TorchElements::put_scientific(double value, char* to) const {
  const auto number = rounded_decimal(std::abs(value), precision_ + 1);
  if (!number) return put_padded(text(value), to);
  const int exponent = number->exponent + precision_;  // of the first digit
  const int length = precision_ + (precision_ > 0 ? 2 : 1) + (std::abs(exponent) < 100 ? 4 : 5);
  to = put_sign(value, static_cast<std::size_t>(length), to);
  return put_exponent(exponent, put_with_point(number->digits, precision_ + 1, precision_, to));
}

char* TorchElements::put_float(double value, char* to) const {
  if (!std::isfinite(value)) return put_padded(text(value), to);
  if (notation_ != Notation::scientific) return put_fixed(value, to);
  return value == 0 ? put_padded(text(value), to) : put_scientific(value, to);
}

char* TorchElements::put(const std::byte* element, char* to) const {
  return visit(dtype_, [&]<class T>(T) {
    if constexpr (std::is_same_v<T, bool>) {
      return put_padded(*element == std::byte{0} ? "False" : "True", to);
    } else if constexpr (std::is_integral_v<T>) {
      std::array<char, 24> text;
      const char* const end =
          std::to_chars(text.data(), text.data() + text.size(), element_at<T>(element)).ptr;
      return put_padded({text.data(), static_cast<std::size_t>(end - text.data())}, to);
    } else {
      return put_float(number_at<T>(element), to);
    }
  });
}

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

std::unique_ptr<TensorSink> make_text_sink(ByteSink& bytes, const TensorInfo& info,
                                           const PrintOptions& options) {
  constexpr std::int64_t kMaxHeld = std::int64_t{1} << 18;  // elements
  const bool is_long = element_count(info.shape) > kMaxHeld;
  if (is_long && TorchText(info.dtype, info.shape, options).shows_all()) {
    return std::make_unique<LongTextSink>(bytes, info, options);
  }
  return std::make_unique<TextSink>(bytes, info, options);
}

}  // namespace lnorm
