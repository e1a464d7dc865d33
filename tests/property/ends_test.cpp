// Operands at the ends of each dtype's range, through every kernel: all give the bits of the reference, whose integers have no
// range. LNORM_CALLS=100000 lnorm_kernel_tests "[ends]" tries more of them.

#include <cstdlib>
#include <sstream>

#include "lnorm/kernel/moments.hpp"
#include "lnorm/kernel/parameter_gradients.hpp"
#include "property/gradient_case.hpp"
#include "support/pace.hpp"

namespace {

using namespace property;
using lnorm::Backend;
using lnorm::DType;
using lnorm::Formula;

int calls() {
  const char* const given = std::getenv("LNORM_CALLS");
  return given != nullptr ? std::atoi(given) : support::share(2000);
}

template <std::size_t n>
int one_of(Random& random, const int (&choices)[n]) {
  return choices[random() % n];
}

// Exponents about which something ends: a dtype, a factor that can be split, a square, what a bound admits.
int any_exponent(Random& random, DType dtype) {
  const int most = std::ilogb(largest_finite(dtype));
  const int least = std::ilogb(smallest_positive(dtype));
  const int jitter = static_cast<int>(random() % 5) - 2;
  switch (random() % 4) {
    case 0:
      return most - std::abs(jitter);
    case 1:
      return least + std::abs(jitter);
    default:
      constexpr int kMarks[] = {0,   14,  24,  53,  60,  104, 127, 150, 166, 200,
                                300, 400, 450, 498, 512, 850, 900, 968, 996, 1022};
      const int mark = one_of(random, kMarks) * (random() % 2 == 0 ? 1 : -1);
      return std::clamp(mark + jitter, least, most);
  }
}

Recipe any_ends(Random& random, DType dtype) {
  const int exponent = any_exponent(random, dtype);
  const int spread = one_of(random, {0, 0, 1, 2, 30, 60, 2100});
  const int bits = one_of(random, {0, 1, 3, 24, 53});
  const bool has_outlier = random() % 6 == 0;
  const bool has_zeros = random() % 4 == 0;
  const bool are_same = random() % 6 == 0;
  const bool have_signs = random() % 3 != 0;
  const std::uint64_t seed = random();
  return {"ends", [=](Random& r, DType d, int i, int) {
            if (has_outlier && i == 0) return largest_finite(d);
            Random same(seed);
            Random& draw = are_same ? same : r;
            if (has_zeros && r() % 2 == 0) return 0.0;
            const double fraction = std::ldexp(static_cast<double>(draw() >> 11), bits - 53);
            const double size = std::ldexp(std::floor(fraction), -bits) + 1;
            const int down = static_cast<int>(draw() % static_cast<std::uint64_t>(spread + 1));
            return std::ldexp(have_signs && draw() % 2 == 0 ? -size : size, exponent - down);
          }};
}

Data any_ends(Random& random, DType dtype, std::int64_t count) {
  return floats(dtype, any_ends(random, dtype), static_cast<int>(count), random);
}

DType any_float(Random& random) {
  if (random() % 8 == 0) return kFloat8s[random() % kFloat8s.size()];
  return kFloats[random() % kFloats.size()];
}

Formula any_formula_at_ends(Random& random, std::int64_t length) {
  constexpr std::array kEps{0.0, 1e-5, 1e-300, 0x1p-1074, 1e300, 1e38};
  Formula formula = any_formula(random, length);
  formula.eps = kEps[random() % kEps.size()];
  return formula;
}

// Of every element, or one for all, or none.
lnorm::AffineTerm any_term_at_ends(Random& random, std::int64_t length) {
  if (random() % 3 == 0) return {};
  return term(any_ends(random, any_float(random), random() % 4 == 0 ? 1 : length),
              random() % 4 == 0);
}

// As they can be pasted.
std::string text_of(const Data& data) {
  std::ostringstream out;
  out << std::hexfloat << lnorm::name(data.dtype);
  for (const oracle::Number& number : data.numbers) out << ' ' << number.value;
  return out.str();
}

std::int64_t any_length(Random& random) {
  return random() % 20 == 0 ? 70 : 1 + static_cast<std::int64_t>(random() % 12);
}

// Some rows, and the dtype of what they become.
struct Rows {
  std::int64_t count;
  std::int64_t length;
  DType dtype;
  Data x;
  DType out;

  Rows(Random& random, std::int64_t most)
      : count(1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most))),
        length(any_length(random)),
        dtype(any_float(random)),
        x(any_ends(random, dtype, count * length)),
        out(random() % 2 == 0 ? dtype : any_float(random)) {}

  lnorm::RowsIn in() const { return rows_in(x, count); }
};

// Calls see(random, rows) for up to most rows at a time.
template <class See>
void for_each_call(std::uint64_t seed, std::int64_t most, See see) {
  Random random(seed);
  for (int call = 0; call < calls(); ++call) {
    const Rows rows(random, most);
    INFO(text_of(rows.x));
    CAPTURE(call, lnorm::name(rows.out), rows.count, rows.length);
    see(random, rows);
  }
}

// Holds what see(backend) gives, numbers, against those of the reference.
template <class See>
void check_backends(See see) {
  const std::vector<double> expected = see(lnorm::find_backend("reference"));
  for (const Backend& backend : lnorm::backends()) {
    if (backend.table == nullptr) continue;
    INFO(backend.name);
    check_same(see(backend), expected);
  }
}

void append(std::vector<double>& numbers, std::span<const double> more) {
  numbers.insert(numbers.end(), more.begin(), more.end());
}

// dx, dweight and dbias of rows.
std::vector<double> gradients(const Backend& backend, const lnorm::RowsIn& x,
                              const lnorm::RowsIn& dy, DType out, const lnorm::AffineTerm& weight,
                              const Formula& formula,
                              const std::vector<lnorm::SavedStatistics>& saved) {
  const auto saved_from = [&](std::int64_t r) {
    return saved.empty() ? nullptr : saved.data() + r;
  };
  std::vector<std::byte> dx(static_cast<std::size_t>(x.rows * x.row_length) *
                            lnorm::item_size(out));
  lnorm::ColumnGradients columns(x.row_length);
  lnorm::layer_norm_backward(backend, x, dy, {dx.data(), out}, weight, formula, saved_from(0),
                             &columns);
  lnorm::RowReplay again;
  again.for_each_row = [&](const auto& see) {
    for (std::int64_t r = 0; r < x.rows; ++r) {
      see(
          0,
          [&](const auto& part) {
            part({row_of(x, r), row_of(dy, r)});
          },
          saved_from(r));
    }
  };
  const lnorm::ParameterGradients of_columns =
      lnorm::parameter_gradients({backend, x.dtype, dy.dtype, out, x.row_length, weight, formula},
                                 columns, {.dtype = out}, again);
  std::vector<double> result = read_all(dx, out);
  append(result, of_columns.dweight);
  append(result, of_columns.dbias);
  return result;
}

}  // namespace

TEST_CASE("gradients of operands at the ends of the range are those of the reference", "[ends]") {
  for_each_call(1, 3, [](Random& random, const Rows& rows) {
    const DType of_dy = random() % 2 == 0 ? rows.dtype : any_float(random);
    const Data dy = any_ends(random, of_dy, rows.count * rows.length);
    const lnorm::AffineTerm weight = any_term_at_ends(random, rows.length);
    const Formula formula = any_formula_at_ends(random, rows.length);
    std::ostringstream text;
    text << std::hexfloat << text_of(dy) << "; rms " << formula.rms << ", eps " << formula.eps;
    std::vector<lnorm::SavedStatistics> saved;
    if (random() % 5 == 0) {
      const Data mean = any_ends(random, DType::float64, rows.count);
      const Data rstd = any_ends(random, DType::float64, rows.count);
      for (std::size_t r = 0; r < mean.numbers.size(); ++r) {
        saved.push_back({{mean.numbers[r].value, 0}, {std::fabs(rstd.numbers[r].value), 0}});
        text << ", mean " << saved.back().mean.high << ", rstd " << saved.back().rstd.high;
      }
    }
    INFO(text.str());
    CAPTURE(weight.empty());
    check_backends([&](const Backend& backend) {
      return gradients(backend, rows.in(), rows_in(dy, rows.count), rows.out, weight, formula,
                       saved);
    });
  });
}

TEST_CASE("operands at the ends of the range are normalized as by the reference", "[ends]") {
  for_each_call(2, 9, [](Random& random, const Rows& rows) {
    lnorm::AffineTerm weight = any_term_at_ends(random, rows.length);
    const lnorm::Affine affine(std::move(weight), any_term_at_ends(random, rows.length));
    const Formula formula = any_formula_at_ends(random, rows.length);
    const bool wants_statistics = random() % 2 == 0;
    CAPTURE(formula.rms, formula.eps, affine.weight().empty(), wants_statistics);
    check_backends([&](const Backend& backend) {
      std::vector<double> mean(static_cast<std::size_t>(rows.count));
      std::vector<double> rstd(mean.size());
      lnorm::RowNumbersOut statistics;
      if (wants_statistics) statistics = {mean.data(), rstd.data()};
      std::vector<double> result =
          read_all(normalized(backend, rows.in(), rows.out, affine, formula, statistics), rows.out);
      append(result, mean);
      append(result, rstd);
      return result;
    });
  });
}

TEST_CASE("softmax of operands at the ends of the range is that of the reference", "[ends]") {
  for_each_call(3, 9, [](Random&, const Rows& rows) {
    check_backends([&](const Backend& backend) {
      return read_all(softmax(rows.in(), rows.out, backend), rows.out);
    });
  });
}

TEST_CASE("moments of operands at the ends of the range are those of the reference", "[ends]") {
  for_each_call(4, 9, [](Random&, const Rows& rows) {
    check_backends([&](const Backend& backend) {
      std::vector<lnorm::Moments> moments(static_cast<std::size_t>(rows.count));
      lnorm::measure_moments(rows.in(), rows.length > 1 ? 1 : 0, moments.data(), backend);
      std::vector<double> result;
      for (const lnorm::Moments& m : moments) {
        append(result, std::array{m.sum, m.mean, m.variance, m.min, m.max});
      }
      return result;
    });
  });
}

// Times a power of two that takes the other dy near 1 it would lose bits, and the weight would show that.
TEST_CASE("dx of a dy far below another is right", "[backward][ends]") {
  GradientCase c{doubles({1, 1}), doubles({0.3, -1.7e308}), doubles({-6.53e296, 0})};
  c.formula.rms = true;
  check(c);
}

// Products of double-doubles split a factor from 2^996 on into infinities.
TEST_CASE("dx of factors that cannot be split is right", "[backward][ends]") {
  GradientCase c{doubles({0.3, 0.1, 0.7}), doubles({1e-300, 1e-300, 1e-300}),
                 doubles({1e305, 1e305, 1e305})};
  check(c);
  std::swap(c.dy, c.weight);
  check(c);
}

// The others' error takes the float of an element, whose dx is 0, beyond the range.
TEST_CASE("dx beside elements whose dx overflows is right", "[backward][ends]") {
  const auto of = [](std::vector<double> values) { return floats(DType::float32, values); };
  GradientCase c{of({1.4060792, 0, 0}), of({1, 1e38, 9999.36}),
                 of({-2.0496345e17, -2.0496345e17, -2.0496345e17})};
  c.formula.eps = 0;
  c.dx = GENERATE(DType::float16, DType::bfloat16, DType::float32);
  check(c);
}
