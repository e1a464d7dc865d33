#include "support/emulated_kernel.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>

namespace emulated {

namespace {

using lnorm::DType;

struct Format {
  int precision;
  int least;  // exponent of the smallest subnormal
  double greatest;
};

Format format_of(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return {11, -24, 65504};
    case DType::bfloat16:
      return {8, -133, std::ldexp(255.0, 120)};
    case DType::float32:
      return {24, -149, std::numeric_limits<float>::max()};
    default:
      return {53, -1074, std::numeric_limits<double>::max()};
  }
}

double rounded_to(double value, const Format& format) {
  if (format.precision == 53 || value == 0 || !std::isfinite(value)) return value;
  const int exponent = std::max(std::ilogb(value) - format.precision + 1, format.least);
  const double result = std::ldexp(std::nearbyint(std::ldexp(value, -exponent)), exponent);
  return std::fabs(result) > format.greatest ? std::copysign(INFINITY, value) : result;
}

// A number of the arithmetic. Double has more than twice the digits of the others, so that rounding twice is rounding once.
template <int precision, int least>
class Narrow {
 public:
  Narrow() = default;
  explicit Narrow(double value) : value_(rounded_to(value, kFormat)) {}
  explicit operator double() const { return value_; }
  friend Narrow operator+(Narrow a, Narrow b) { return Narrow(a.value_ + b.value_); }
  friend Narrow operator-(Narrow a, Narrow b) { return Narrow(a.value_ - b.value_); }
  friend Narrow operator*(Narrow a, Narrow b) { return Narrow(a.value_ * b.value_); }
  friend Narrow operator/(Narrow a, Narrow b) { return Narrow(a.value_ / b.value_); }
  friend Narrow root(Narrow a) { return Narrow(std::sqrt(a.value_)); }

 private:
  static constexpr Format kFormat{precision, least, precision == 11 ? 65504.0 : 0x1.fep127};
  double value_ = 0;
};
using Half = Narrow<11, -24>;
using Brain = Narrow<8, -133>;
float root(float a) { return std::sqrt(a); }
double root(double a) { return std::sqrt(a); }

template <class F>
F to(double value) {
  return static_cast<F>(value);
}

// By other formulas than the library's.
const std::map<std::string, double (*)(double)>& activations() {
  static const std::map<std::string, double (*)(double)> kAll{
      {"relu", [](double y) { return y > 0 ? y : 0; }},
      {"gelu", [](double y) { return 0.5 * y * (1 + std::erf(y / std::sqrt(2.0))); }},
      {"gelu-tanh",
       [](double y) {
         return 0.5 * y * (1 + std::tanh(0.7978845608028654 * (y + 0.044715 * std::pow(y, 3))));
       }},
      {"silu", [](double y) { return y * std::exp(y) / (1 + std::exp(y)); }},
      {"sigmoid", [](double y) { return 0.5 + 0.5 * std::tanh(y / 2); }},
      {"tanh", [](double y) { return 1 - 2 / (std::exp(2 * y) + 1); }}};
  return kAll;
}

template <class F>
F sum_of(const std::vector<F>& terms, const Order& order) {
  switch (order.kind) {
    case Order::Kind::pairwise: {
      std::vector<F> level = terms;
      while (level.size() > 1) {
        std::vector<F> next;
        for (std::size_t i = 0; i < level.size(); i += 2) {
          next.push_back(i + 1 < level.size() ? level[i] + level[i + 1] : level[i]);
        }
        level = std::move(next);
      }
      return level.empty() ? to<F>(0.0) : level[0];
    }
    case Order::Kind::blocks: {
      // As many sums as a block has lanes, which are added up in the end.
      std::vector<F> lanes(static_cast<std::size_t>(order.block), to<F>(0.0));
      for (std::size_t i = 0; i < terms.size(); ++i) {
        F& lane = lanes[i % lanes.size()];
        lane = lane + terms[i];
      }
      return sum_of(lanes, {Order::Kind::pairwise});
    }
    default: {
      F sum(0.0);
      for (const F& term : terms) sum = sum + term;
      return sum;
    }
  }
}

// The terms and their sums rounded to a narrower dtype, pairwise.
template <class Narrower, class F>
F sum_in(const std::vector<F>& terms) {
  std::vector<Narrower> narrow;
  for (const F& term : terms) narrow.push_back(Narrower(static_cast<double>(term)));
  return to<F>(static_cast<double>(sum_of(narrow, {Order::Kind::pairwise})));
}

template <class F>
F row_sum(const std::vector<F>& terms, const Kernel& kernel) {
  if (kernel.wrong == "float16-sums") return sum_in<Half>(terms);
  if (kernel.wrong == "bfloat16-sums") return sum_in<Brain>(terms);
  return sum_of(terms, kernel.order);
}

template <class F>
struct Statistics {
  F mean{};
  F variance{};
};

// What an id of padding says: sums that go on to so many elements.
struct Padding {
  std::int64_t to = 0;
  bool reads_on = false;
  double with = 0;
  bool in_mean = false;      // the mean takes it in
  bool in_variance = false;  // so does the variance
  bool mean_by = false;      // the mean is divided by their number
  bool variance_by = false;
};

Padding padding_of(const std::string& id) {
  const auto has = [&](const char* part) { return id.find(part) != std::string::npos; };
  Padding p;
  if (!has("padded-") && !has("unmasked-") && !has("reads-on-")) return p;
  p.to = std::stoll(id.substr(id.find_first_of("0123456789")));
  p.reads_on = has("reads-on-");
  p.with = has("-ones-") ? 1 : 0;
  const bool is_padded = has("padded-");
  const bool is_unmasked = has("unmasked");
  p.in_mean = is_padded || p.reads_on;
  p.in_variance = (is_padded && !has("-masked")) || is_unmasked;
  const bool by = has("-by-");
  p.mean_by = is_padded || (p.reads_on && by);
  p.variance_by = is_padded || (is_unmasked && by);
  return p;
}

template <class F>
Statistics<F> statistics(const std::vector<F>& x, std::int64_t divisor, const Kernel& kernel) {
  Statistics<F> result;
  const bool is_rms = kernel.formula.rms != (kernel.wrong == "rms" || kernel.wrong == "layer-norm");
  const F n = to<F>(static_cast<double>(std::ssize(x)));
  const F freedom = to<F>(static_cast<double>(divisor));
  std::vector<F> terms = x;
  if (kernel.order.kind == Order::Kind::welford && !is_rms) {
    F squares(0.0);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const F before = x[i] - result.mean;
      result.mean = result.mean + before / to<F>(static_cast<double>(i + 1));
      squares = squares + before * (x[i] - result.mean);
    }
    result.variance = squares / freedom;
    return result;
  }
  if (!is_rms) result.mean = row_sum(terms, kernel) / n;
  const F about = kernel.wrong == "mean-in-variance" ? to<F>(0.0) : result.mean;
  for (F& term : terms) term = (term - about) * (term - about);
  result.variance = row_sum(terms, kernel) / freedom;
  constexpr std::string_view kFactor = "variance-factor=";
  if (kernel.wrong.starts_with(kFactor)) {
    result.variance = result.variance * to<F>(std::stod(kernel.wrong.substr(kFactor.size())));
  }
  if (kernel.wrong == "one-pass") {
    std::vector<F> squares = x;
    for (F& square : squares) square = square * square;
    result.variance = sum_of(squares, kernel.order) / n - result.mean * result.mean;
    if (static_cast<double>(result.variance) < 0) result.variance = to<F>(0.0);
  }
  return result;
}

bool starts(const std::string& text, const char* with) { return text.rfind(with, 0) == 0; }

std::int64_t number_in(const std::string& id) {
  return std::stoll(id.substr(id.find_first_of("0123456789")));
}

template <class F>
std::vector<F> shifted(std::vector<F> numbers) {
  std::rotate(numbers.begin(), numbers.begin() + 1, numbers.end());
  return numbers;
}

template <class F>
class Emulation {
 public:
  Emulation(const Kernel& kernel, const Tensor& x, const std::vector<double>& weight,
            const std::vector<double>& bias)
      : k_(kernel), x_(x), has_weight_(!weight.empty()), has_bias_(!bias.empty()) {
    for (std::int64_t i = 0; i < x.n; ++i) {
      weight_.push_back(to<F>(has_weight_ ? weight[static_cast<std::size_t>(i)] : 1));
      bias_.push_back(to<F>(has_bias_ ? bias[static_cast<std::size_t>(i)] : 0));
    }
    change_affine();
    if (k_.wrong == "eps-on-std") k_.formula.eps_on = lnorm::EpsOn::std;
    if (k_.wrong == "eps-on-max") k_.formula.eps_on = lnorm::EpsOn::max;
    if (k_.wrong == "eps-on-variance") k_.formula.eps_on = lnorm::EpsOn::variance;
    if (starts(k_.wrong, "eps-") && !starts(k_.wrong, "eps-on") && k_.wrong != "eps-twice" &&
        k_.wrong != "eps-sum" && k_.wrong != "eps-max") {
      k_.formula.eps = std::stod(k_.wrong.substr(4));
    }
    if (k_.wrong == "float16-x" || k_.wrong == "bfloat16-x") {
      for (double& number : x_.numbers) number = rounded(number, narrow_dtype());
    }
    if (k_.wrong == "ddof-1") k_.formula.ddof = 1;
    if (k_.wrong == "ddof-0") k_.formula.ddof = 0;
  }

  Tensor run() {
    Tensor y{x_.rows, x_.n, std::vector<double>(x_.numbers.size())};
    for (std::int64_t r = 0; r < x_.rows; ++r) {
      const std::vector<F> of = row(r);
      for (std::int64_t i = 0; i < x_.n; ++i) {
        y.numbers[static_cast<std::size_t>(r * x_.n + i)] =
            last_rounding(static_cast<double>(of[static_cast<std::size_t>(i)]));
      }
    }
    return moved(std::move(y));
  }

 private:
  double last_rounding(double value) const {
    if (k_.wrong == "other-dtype") return rounded(value, other());
    const double nearest = rounded(value, k_.output);
    if (k_.wrong != "truncated" && k_.wrong != "away") return nearest;
    const bool is_away = std::fabs(nearest) >= std::fabs(value);
    if (nearest == value || is_away == (k_.wrong == "away")) return nearest;
    const Format format = format_of(k_.output);
    const double ulp =
        std::ldexp(1.0, std::max(std::ilogb(value) - format.precision + 1, format.least));
    return rounded(nearest + (is_away ? -1 : 1) * std::copysign(ulp, value), k_.output);
  }

  // Of an id that begins with it.
  DType narrow_dtype() const { return k_.wrong[0] == 'f' ? DType::float16 : DType::bfloat16; }

  DType other() const { return k_.output == DType::float16 ? DType::bfloat16 : DType::float16; }

  void change_affine() {
    const std::string& id = k_.wrong;
    if (id == "no-weight") weight_.assign(weight_.size(), to<F>(1.0));
    if (id == "no-bias") bias_.assign(bias_.size(), to<F>(0.0));
    if (id == "weight-twice") {
      for (F& w : weight_) w = w * w;
    }
    if (id == "bias-twice") {
      for (F& b : bias_) b = b + b;
    }
    if (id == "swapped-affine") weight_.swap(bias_);
    if (id == "weight-plus-one") {
      for (F& w : weight_) w = w + to<F>(1.0);
    }
    if (id == "weight-plus-two") {
      for (F& w : weight_) w = w + to<F>(2.0);
    }
    if (id == "float16-weight" || id == "bfloat16-weight") {
      for (F& w : weight_) w = to<F>(rounded(static_cast<double>(w), narrow_dtype()));
    }
    if (starts(id, "weight-first-") || starts(id, "bias-first-")) {
      std::vector<F>& numbers = starts(id, "weight") ? weight_ : bias_;
      const auto block = static_cast<std::size_t>(number_in(id));
      for (std::size_t i = block; i < numbers.size(); ++i) numbers[i] = numbers[i % block];
    }
    if (id == "weight-reversed") std::reverse(weight_.begin(), weight_.end());
    if (id == "bias-reversed") std::reverse(bias_.begin(), bias_.end());
    if (id == "weight-shifted") weight_ = shifted(weight_);
    if (id == "bias-shifted") bias_ = shifted(bias_);
    if (id == "weight-every-second") {
      for (std::size_t i = 1; i < weight_.size(); i += 2) weight_[i] = to<F>(1.0);
    }
  }

  std::vector<F> elements(std::int64_t r) const {
    std::vector<F> row;
    for (std::int64_t i = 0; i < x_.n; ++i) {
      const double x = x_.at(r, i);
      row.push_back(to<F>(k_.wrong == "byte-order-x" ? bytes_swapped(x, k_.input) : x));
    }
    return row;
  }

  Statistics<F> statistics_of(std::int64_t r) const {
    const std::string& id = k_.wrong;
    std::vector<F> x = elements(r);
    const std::int64_t n = x_.n;
    if (starts(id, "no-tail-")) x.resize(static_cast<std::size_t>(n - n % number_in(id)));
    const bool is_first = starts(id, "first-") && id != "first-row";
    if (is_first) x.resize(static_cast<std::size_t>(number_in(id)));
    if (starts(id, "warp-")) {
      std::vector<F> some;
      for (std::int64_t i = 0; i < n; ++i) {
        if (i % number_in(id) < 32) some.push_back(x[static_cast<std::size_t>(i)]);
      }
      return padded_statistics(r, some, {});
    }
    if (id.ends_with("-by-n")) return padded_statistics(r, x, {});
    if (const Padding p = padding_of(id); p.to > n) return padded_statistics(r, x, p);
    if (id == "max-left-out") {
      x.erase(std::max_element(x.begin(), x.end(), [](F a, F b) {
        return static_cast<double>(a) < static_cast<double>(b);
      }));
    }
    return statistics(x, std::ssize(x) - k_.formula.ddof, k_);
  }

  Statistics<F> padded_statistics(std::int64_t r, const std::vector<F>& own,
                                  const Padding& p) const {
    std::vector<F> all = own;
    for (std::int64_t i = x_.n; i < p.to; ++i) {
      const std::int64_t at = r * x_.n + i;
      const bool is_there = at < std::ssize(x_.numbers);
      all.push_back(to<F>(!p.reads_on ? p.with
                          : is_there  ? x_.numbers[static_cast<std::size_t>(at)]
                                      : 0));
    }
    const auto n = static_cast<double>(x_.n);
    const auto padded = static_cast<double>(p.to);
    Statistics<F> result;
    if (!k_.formula.rms) {
      result.mean = row_sum(p.in_mean ? all : own, k_) / to<F>(p.mean_by ? padded : n);
    }
    std::vector<F> terms = p.in_variance ? all : own;
    for (F& term : terms) term = (term - result.mean) * (term - result.mean);
    result.variance = row_sum(terms, k_) /
                      to<F>((p.variance_by ? padded : n) - static_cast<double>(k_.formula.ddof));
    return result;
  }

  std::vector<F> row(std::int64_t r) const {
    const std::string& id = k_.wrong;
    std::int64_t of = r;
    if (id == "neighbor-row") of = std::max<std::int64_t>(r - 1, 0);
    if (id == "next-row") of = std::min(r + 1, x_.rows - 1);
    if (id == "first-row") of = 0;
    if (id == "last-row") of = x_.rows - 1;
    Statistics<F> s = statistics_of(of);
    if (id == "all-rows") {
      std::vector<F> all;
      for (const double number : x_.numbers) all.push_back(to<F>(number));
      s = statistics(all, std::ssize(all) - k_.formula.ddof, k_);
    }
    if (id == "row-pairs") {
      s.mean = (s.mean + statistics_of(r ^ 1).mean) / to<F>(2.0);
    }
    if (id == "other-mean") s = about(elements(r), statistics_of((r + 1) % x_.rows).mean, s);
    if (id == "float16-mean" || id == "bfloat16-mean") {
      s.mean = to<F>(rounded(static_cast<double>(s.mean), narrow_dtype()));
      s = about(elements(r), s.mean, s);
    }
    if (id == "no-reduction") s = {to<F>(0.0), to<F>(0.0)};
    const F eps = to<F>(k_.formula.eps);
    const lnorm::EpsOn place = k_.formula.eps_on;
    F s_of_row = root(place == lnorm::EpsOn::variance ? s.variance + eps : s.variance);
    if (place == lnorm::EpsOn::std) s_of_row = s_of_row + eps;
    const bool is_less = static_cast<double>(s_of_row) < static_cast<double>(eps);
    if (place == lnorm::EpsOn::max && is_less) s_of_row = eps;
    F rstd = to<F>(1.0) / s_of_row;
    if (id == "eps-on-both") rstd = to<F>(1.0) / (root(s.variance + eps) + eps);
    if (id == "eps-twice") rstd = to<F>(1.0) / root(s.variance + eps + eps);
    const F n = to<F>(static_cast<double>(x_.n));
    if (id == "eps-sum") rstd = to<F>(1.0) / root(s.variance + eps / n);
    if (id == "eps-max") {
      double size = 0;
      for (const F& element : elements(r)) {
        size = std::max(size, std::fabs(static_cast<double>(element)));
      }
      const F most = to<F>(size);
      rstd = to<F>(1.0) / root(s.variance + eps * most * most);
    }
    if (id == "eps-on-norm") rstd = to<F>(1.0) / (root(s.variance) + eps / root(n));
    if (id == "divide-by-variance") rstd = to<F>(1.0) / (s.variance + eps);
    if (id == "divide-by-variance-squared") {
      rstd = to<F>(1.0) / ((s.variance + eps) * (s.variance + eps));
    }
    if (id == "no-division") rstd = to<F>(1.0);
    if (id == "float16-rstd" || id == "bfloat16-rstd") {
      rstd = to<F>(rounded(static_cast<double>(rstd), narrow_dtype()));
    }
    if (id == "float16-statistics" || id == "bfloat16-statistics") {
      s.mean = to<F>(rounded(static_cast<double>(s.mean), narrow_dtype()));
      rstd = to<F>(rounded(static_cast<double>(rstd), narrow_dtype()));
    }
    std::vector<F> y = elements(r);
    if (id == "clipped") {
      for (F& x : y) {
        const double mean = static_cast<double>(s.mean);
        const double reach = 3 * std::sqrt(static_cast<double>(s.variance));
        x = to<F>(std::clamp(static_cast<double>(x), mean - reach, mean + reach));
      }
    }
    if (id == "identity") return y;
    if (id == "zeros") return std::vector<F>(y.size(), to<F>(0.0));
    if (id == "softmax") return softmax(y);
    if (starts(id, "x-first-")) {
      for (std::size_t i = 0; i < y.size(); ++i) {
        y[i] = y[i % static_cast<std::size_t>(number_in(id))];
      }
    }
    if (starts(id, "blocks-")) return blocks(y, static_cast<std::size_t>(number_in(id)));
    const std::vector<F> x = y;
    if (id == "norm-of-xhat") {
      for (F& one : y) one = (one - s.mean) * rstd;
      s = statistics(y, x_.n - k_.formula.ddof, k_);
      rstd = to<F>(1.0) / root(s.variance + eps);
    }
    finish(y, s.mean, rstd, r);
    for (std::size_t i = 0; id == "plus-input" && i < y.size(); ++i) y[i] = y[i] + x[i];
    if (id == "twice") {
      const Statistics<F> again = statistics(y, x_.n - k_.formula.ddof, k_);
      finish(y, again.mean, to<F>(1.0) / root(again.variance + eps), r);
    }
    return y;
  }

  std::vector<F> blocks(const std::vector<F>& x, std::size_t length) const {
    std::vector<F> y;
    for (std::size_t first = 0; first < x.size(); first += length) {
      const auto begin = x.begin() + static_cast<std::ptrdiff_t>(first);
      const auto end = x.begin() + static_cast<std::ptrdiff_t>(std::min(first + length, x.size()));
      const std::vector<F> block(begin, end);
      const Statistics<F> s = statistics(block, std::ssize(block), k_);
      std::vector<F> all = x;
      finish(all, s.mean, to<F>(1.0) / root(s.variance + to<F>(k_.formula.eps)), 0);
      y.insert(y.end(), all.begin() + (begin - x.begin()), all.begin() + (end - x.begin()));
    }
    return y;
  }

  Statistics<F> about(const std::vector<F>& x, F mean, const Statistics<F>& own) const {
    std::vector<F> terms = x;
    for (F& term : terms) term = (term - mean) * (term - mean);
    return {own.mean, sum_of(terms, k_.order) / to<F>(static_cast<double>(x_.n - k_.formula.ddof))};
  }

  std::vector<F> softmax(const std::vector<F>& x) const {
    std::vector<F> y;
    double max = -INFINITY;
    for (const F& value : x) max = std::max(max, static_cast<double>(value));
    for (const F& value : x) y.push_back(to<F>(std::exp(static_cast<double>(value) - max)));
    const F sum = sum_of(y, k_.order);
    for (F& value : y) value = value / sum;
    return y;
  }

  void finish(std::vector<F>& row, F mean, F rstd, std::int64_t number) const {
    const std::string& id = k_.wrong;
    if (id == "variance-only") mean = to<F>(0.0);
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::size_t by_row = static_cast<std::size_t>(number) % row.size();
      const std::size_t of_weight = id == "weight-by-row" ? by_row : i;
      const std::size_t of_bias = id == "bias-by-row" ? by_row : i;
      F d = row[i] - mean;
      if (id == "mean-twice") d = d - mean;
      F y = k_.folds_mean ? row[i] * rstd + (to<F>(0.0) - mean * rstd) : d * rstd;
      if (id == "rounded-xhat") y = to<F>(rounded(static_cast<double>(y), k_.output));
      if (id == "bias-first") {
        y = (y + bias_[i]) * weight_[i];
      } else {
        if (has_weight_ || id == "swapped-affine") y = y * weight_[of_weight];
        if (id == "rounded-product") y = to<F>(rounded(static_cast<double>(y), k_.output));
        if (has_bias_ || id == "swapped-affine") y = y + bias_[of_bias];
      }
      if (id == "negated") y = to<F>(0.0) - y;
      if (id == "float16-y" || id == "bfloat16-y") {
        y = to<F>(rounded(static_cast<double>(y), narrow_dtype()));
      }
      if (id == "tf32-y")
        y = to<F>(std::ldexp(std::nearbyint(std::ldexp(static_cast<double>(y),
                                                       10 - std::ilogb(static_cast<double>(y)))),
                             std::ilogb(static_cast<double>(y)) - 10));
      if (const auto of = activations().find(id); of != activations().end()) {
        y = to<F>(of->second(static_cast<double>(y)));
      }
      if (id == "cube-root") y = to<F>(std::cbrt(static_cast<double>(y)));
      if (id == "fixed-point") {
        y = to<F>(std::ldexp(std::nearbyint(std::ldexp(static_cast<double>(y), 5)), -5));
      }
      if (id == "sign-of-column" && i == row.size() / 2) y = to<F>(0.0) - y;
      row[i] = y;
    }
    if (id == "sorted") {
      std::sort(row.begin(), row.end(),
                [](F a, F b) { return static_cast<double>(a) < static_cast<double>(b); });
    }
  }

  // What becomes of the whole output.
  Tensor moved(Tensor y) const {
    const std::string& id = k_.wrong;
    const auto n = static_cast<std::ptrdiff_t>(y.n);
    if (id == "shifted-rows")
      std::rotate(y.numbers.begin(), y.numbers.begin() + n, y.numbers.end());
    if (id == "shifted-columns") {
      for (auto row = y.numbers.begin(); row != y.numbers.end(); row += n) {
        std::rotate(row, row + 1, row + n);
      }
    }
    if (id == "unwritten-rows") {
      for (std::int64_t r = 3; r < y.rows; r += 7) {
        std::fill_n(y.numbers.begin() + r * n, n, 0.0);
      }
    }
    if (id == "unwritten-tail") {
      const auto lost = std::max<std::ptrdiff_t>(1, std::ssize(y.numbers) / 8);
      std::fill(y.numbers.end() - lost, y.numbers.end(), 0.0);
    }
    for (double& number : y.numbers) {
      if (id == "byte-order") number = bytes_swapped(number, k_.output);
      if (id == "other-dtype") {
        number = reread(number, other(), k_.output);
      }
    }
    return y;
  }

  Kernel k_;
  Tensor x_;
  bool has_weight_;
  bool has_bias_;
  std::vector<F> weight_;
  std::vector<F> bias_;
};

std::uint64_t bits_of(double value, DType dtype) {
  if (dtype == DType::float64) return std::bit_cast<std::uint64_t>(value);
  if (dtype == DType::float32) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if (dtype == DType::bfloat16) {
    return std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16;
  }
  const std::uint64_t sign = std::signbit(value) ? 0x8000 : 0;
  const double size = std::fabs(value);
  if (std::isnan(value)) return sign | 0x7e00;
  if (std::isinf(value)) return sign | 0x7c00;
  if (size < 0x1p-14) return sign | static_cast<std::uint64_t>(std::ldexp(size, 24));
  const int exponent = std::ilogb(size);
  const auto fraction = static_cast<std::uint64_t>(std::ldexp(size, 10 - exponent)) - 1024;
  return sign | static_cast<std::uint64_t>(exponent + 15) << 10 | fraction;
}

double value_of(std::uint64_t bits, DType dtype) {
  if (dtype == DType::float64) return std::bit_cast<double>(bits);
  if (dtype == DType::float32) return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  if (dtype == DType::bfloat16) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits << 16));
  }
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  const int exponent = static_cast<int>(bits >> 10 & 31);
  const auto fraction = static_cast<double>(bits & 1023);
  if (exponent == 31) return fraction != 0 ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

}  // namespace

double rounded(double value, DType dtype) { return rounded_to(value, format_of(dtype)); }

double reread(double value, DType dtype, DType as) { return value_of(bits_of(value, dtype), as); }

double bytes_swapped(double value, DType dtype) {
  const int bytes = dtype == DType::float64 ? 8 : dtype == DType::float32 ? 4 : 2;
  const std::uint64_t bits = bits_of(value, dtype);
  std::uint64_t swapped = 0;
  for (int i = 0; i < bytes; ++i) swapped = swapped << 8 | (bits >> (8 * i) & 255);
  return value_of(swapped, dtype);
}

Tensor run(const Kernel& kernel, const Tensor& x, const std::vector<double>& weight,
           const std::vector<double>& bias) {
  switch (kernel.arithmetic) {
    case DType::float16:
      return Emulation<Half>(kernel, x, weight, bias).run();
    case DType::bfloat16:
      return Emulation<Brain>(kernel, x, weight, bias).run();
    case DType::float32:
      return Emulation<float>(kernel, x, weight, bias).run();
    default:
      return Emulation<double>(kernel, x, weight, bias).run();
  }
}

namespace {

struct InputKind {
  const char* name;
  double (*number)(std::int64_t r, std::int64_t i, std::int64_t n, double normal);
};
constexpr InputKind kInputs[] = {
    {"ordinary", [](auto, auto, auto, double z) { return z; }},
    {"mean 3", [](auto, auto, auto, double z) { return z + 3; }},
    {"mean of 100 deviations", [](auto, auto, auto, double z) { return z + 100; }},
    {"mean of 10000 deviations", [](auto, auto, auto, double z) { return z + 10000; }},
    {"deviation 0.003", [](auto, auto, auto, double z) { return 0.003 * z; }},
    {"deviation 1e-6", [](auto, auto, auto, double z) { return 1e-6 * z; }},
    {"deviation 100", [](auto, auto, auto, double z) { return 100 * z; }},
    {"outlier",
     [](auto, std::int64_t i, std::int64_t n, double z) { return i == n / 3 ? 300 + z : z; }},
    {"constant", [](std::int64_t r, auto, auto, double) { return 1.5 + static_cast<double>(r); }},
    {"nearly constant", [](auto, std::int64_t i, auto, double) { return i == 0 ? 1.0625 : 1; }},
    {"zeros and ones", [](auto, auto, auto, double z) { return z > 0 ? 1.0 : 0.0; }},
    {"denormals", [](auto, auto, auto, double z) { return 0x1p-130 * z; }},
    {"rows that differ a lot",
     [](std::int64_t r, auto, auto, double z) { return std::ldexp(z, static_cast<int>(r % 8)); }},
    {"half zeros", [](auto, auto, auto, double z) { return z > 0 ? z : 0; }},
    {"numbers that rise", [](std::int64_t r, std::int64_t i, std::int64_t n,
                             double) { return static_cast<double>(r * n + i) / 7; }},
    {"numbers that rise from -1 to 1",
     [](std::int64_t, std::int64_t i, std::int64_t n, double) {
       return 2 * static_cast<double>(i) / static_cast<double>(n) - 1;
     }},
    {"rising, far from 0",
     [](std::int64_t, std::int64_t i, std::int64_t n, double z) {
       return 1000 + static_cast<double>(i) / static_cast<double>(n) + z / 1024;
     }},
};

}  // namespace

std::string name_of_input(int kind) {
  return kind < static_cast<int>(std::size(kInputs)) ? kInputs[kind].name : "";
}

Tensor input(int kind, std::int64_t rows, std::int64_t n, DType dtype, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  Tensor x{rows, n, {}};
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t i = 0; i < n; ++i) {
      x.numbers.push_back(rounded(kInputs[kind].number(r, i, n, normal(random)), dtype));
    }
  }
  return x;
}

Affine affine(int kind, std::int64_t n, DType dtype, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  Affine result;
  if (kind == 0) return result;
  for (std::int64_t i = 0; i < n; ++i) {
    const double w = normal(random);
    const double b = normal(random);
    result.weight.push_back(rounded(kind == 1   ? 0.3 + w
                                    : kind == 2 ? 1
                                    : kind == 3 ? 50 * w
                                                : 0.001 * w,
                                    dtype));
    result.bias.push_back(rounded(kind == 1   ? 0.3 + b
                                  : kind == 2 ? 0
                                  : kind == 3 ? -50 * w
                                              : b,
                                  dtype));
  }
  return result;
}

}  // namespace emulated
