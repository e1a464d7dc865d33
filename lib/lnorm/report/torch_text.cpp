#include "lnorm/report/torch_text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>

#include "lnorm/core/dtype.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm {

namespace {

constexpr std::string_view kPrefix = "tensor(";

}  // namespace

// The shown elements one after another, as texts padded to one width.
class TorchText::Elements {
 public:
  Elements(DType dtype, std::span<const std::byte> bytes, const PrintOptions& options)
      : dtype_(dtype),
        bytes_(bytes),
        count_(bytes.size() / item_size(dtype)),
        precision_(options.precision) {
    if (is_floating(dtype_)) choose_notation(options.sci_mode);
    for (std::size_t i = 0; i < count_; ++i) {
      if (!is_floating(dtype_) || weighs(number(i))) width_ = std::max(width_, text(i).size());
    }
  }

  std::int64_t width() const { return static_cast<std::int64_t>(width_); }

  std::string next() {
    const std::string bare = text(next_++);
    return std::string(width_ - std::min(width_, bare.size()), ' ') + bare;
  }

 private:
  // How all the floats of a tensor are written: 3. or 3.0000 or 3.0000e+00
  enum class Notation { integral, fixed, scientific };

  static std::string format(double value, Notation notation, int precision) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
    constexpr std::size_t kMostBesidesFraction = std::numeric_limits<double>::max_exponent10 + 8;
    std::string text(kMostBesidesFraction + static_cast<std::size_t>(precision), '\0');
    const auto style =
        notation == Notation::scientific ? std::chars_format::scientific : std::chars_format::fixed;
    const auto result = std::to_chars(text.data(), text.data() + text.size(), value, style,
                                      notation == Notation::integral ? 0 : precision);
    text.resize(static_cast<std::size_t>(result.ptr - text.data()));
    if (notation == Notation::integral) text += '.';
    return text;
  }

  // Zeros, infinities and NaNs have no say in notation and width: they may stick out.
  static bool weighs(double value) { return std::isfinite(value) && value != 0; }

  void choose_notation(PrintOptions::SciMode sci_mode) {
    double smallest = std::numeric_limits<double>::infinity();
    double largest = 0;
    bool integral = true;
    for (std::size_t i = 0; i < count_; ++i) {
      const double value = number(i);
      if (!weighs(value)) continue;
      smallest = std::min(smallest, std::abs(value));
      largest = std::max(largest, std::abs(value));
      integral = integral && value == std::trunc(value);
    }
    if (largest == 0) return;  // PyTorch does not heed sci_mode here
    const bool scientific = sci_mode == PrintOptions::SciMode::automatic
                                ? largest / smallest > 1000 || largest > 1e8 || smallest < 1e-4
                                : sci_mode == PrintOptions::SciMode::on;
    if (scientific) {
      notation_ = Notation::scientific;
    } else if (!integral) {
      notation_ = Notation::fixed;
    }
  }

  template <class T>
  T element(std::size_t index) const {
    T value;
    std::memcpy(&value, bytes_.data() + index * sizeof(T), sizeof(T));
    return value;
  }

  double number(std::size_t index) const {
    return visit(dtype_, [&]<class T>(T) {
      if constexpr (std::is_arithmetic_v<T>) {
        return static_cast<double>(element<T>(index));
      } else {
        return to_double(element<T>(index));
      }
    });
  }

  std::string text(std::size_t index) const {
    if (is_floating(dtype_)) return format(number(index), notation_, precision_);
    if (dtype_ == DType::boolean) return bytes_[index] == std::byte{0} ? "False" : "True";
    return visit(dtype_, [&]<class T>(T) -> std::string {
      if constexpr (std::is_integral_v<T>) return std::to_string(element<T>(index));
      return {};
    });
  }

  DType dtype_;
  std::span<const std::byte> bytes_;
  std::size_t count_;
  int precision_;
  Notation notation_ = Notation::integral;
  std::size_t width_ = 1;
  std::size_t next_ = 0;
};

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

std::string TorchText::str() const {
  std::string out(kPrefix);
  Elements elements(dtype_, shown_, options_);
  if (count_ == 0) {
    out += "[]";
  } else if (shape_.empty()) {
    out += elements.next();
  } else {
    print_axis(0, elements, out);
  }
  print_suffixes(out);
  return out + ')';
}

void TorchText::print_axis(std::size_t axis, Elements& elements, std::string& out) const {
  const bool last = axis + 1 == shape_.size();
  const std::size_t indent = kPrefix.size() + axis;
  std::int64_t per_line = 1;
  if (last) {
    const std::int64_t room = options_.linewidth - static_cast<std::int64_t>(indent);
    per_line = std::max<std::int64_t>(room / (elements.width() + 2), 1);
  }
  const std::size_t newlines = last ? 1 : shape_.size() - axis - 1;
  const std::string line_break = ',' + std::string(newlines, '\n') + std::string(indent + 1, ' ');
  const bool cut = is_cut(shape_[axis]);
  const std::int64_t parts = cut ? 2 * edge_ + 1 : shape_[axis];
  out += '[';
  for (std::int64_t part = 0; part < parts; ++part) {
    if (part > 0) out += part % per_line == 0 ? line_break : ", ";
    if (cut && part == edge_) {
      out += last && edge_ > 0 ? " ..." : "...";
    } else if (last) {
      out += elements.next();
    } else {
      print_axis(axis + 1, elements, out);
    }
  }
  out += ']';
}

void TorchText::print_suffixes(std::string& out) const {
  std::vector<std::string> suffixes;
  if (count_ == 0 && shape_.size() != 1) suffixes.push_back("size=" + to_string(shape_));
  const bool evident = dtype_ == DType::float32 ||
                       (count_ > 0 && (dtype_ == DType::int64 || dtype_ == DType::boolean));
  if (!evident) suffixes.push_back(concat("dtype=torch.", name(dtype_)));

  // PyTorch takes the last line for two characters longer than it is.
  const std::size_t line_begin = out.rfind('\n') + 1;  // 0 if there is no other line: npos + 1
  std::size_t column = out.size() - line_begin + 2;
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
}

}  // namespace lnorm
