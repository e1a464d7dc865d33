#include "property/data.hpp"

#include <iomanip>

#include "lnorm/core/dtype_table.hpp"
#include "lnorm/kernel/softmax.hpp"
#include "support/narrowed.hpp"

namespace property {

using lnorm::DType;

double uniform(Random& random) { return std::uniform_real_distribution<double>(-1, 1)(random); }
double normal(Random& random) { return std::normal_distribution<double>()(random); }

double largest_finite(DType dtype) { return lnorm::float_format(dtype).greatest; }

double smallest_positive(DType dtype) {
  return std::ldexp(1.0, lnorm::float_format(dtype).least_exponent);
}

double ulp_of_1(DType dtype) { return std::ldexp(1.0, 1 - lnorm::float_format(dtype).precision); }

const std::vector<Recipe>& float_recipes() {
  static const std::vector<Recipe> recipes{
      {"normal", [](Random& r, DType, int, int) { return normal(r); }},
      {"uniform 1e-3", [](Random& r, DType, int, int) { return 1e-3 * uniform(r); }},
      {"large mean, small deviation",
       [](Random& r, DType d, int, int) {
         return (d == DType::float16 || d == DType::bfloat16 ? 1e3
                 : d == DType::float32                       ? 1e4
                                                             : 1e8) +
                normal(r);
       }},
      {"mean in the last places",
       [](Random& r, DType, int, int) { return 1 + 0x1p-22 * normal(r); }},
      {"1e30", [](Random& r, DType, int, int) { return 1e30 * uniform(r); }},
      {"near the largest",
       [](Random& r, DType d, int, int) { return largest_finite(d) * uniform(r); }},
      {"at the largest",
       [](Random&, DType d, int i, int) { return largest_finite(d) * (i % 3 == 0 ? -1 : 1); }},
      {"subnormal", [](Random& r, DType d, int,
                       int) { return smallest_positive(d) * std::round(500 * uniform(r)); }},
      {"from subnormal to the largest",
       [](Random& r, DType d, int, int) {
         const double exponent = (uniform(r) + 1) / 2;
         return std::pow(smallest_positive(d), exponent) *
                std::pow(largest_finite(d), 1 - exponent) * (uniform(r) < 0 ? -1 : 1);
       }},
      {"constant", [](Random&, DType, int, int) { return 0.1; }},
      {"constant zero", [](Random&, DType, int, int) { return 0.0; }},
      {"all but one constant",
       [](Random&, DType, int i, int n) { return i == n / 2 ? 0.25 : 0.1; }},
      {"one outlier", [](Random& r, DType, int i, int) { return i == 0 ? 1e4 : normal(r); }},
      {"alternating signs", [](Random&, DType, int i, int) { return i % 2 == 0 ? 3.0 : -3.0; }},
      {"alternating about a mean",
       [](Random&, DType, int i, int) { return i % 2 == 0 ? 1025 : 1023; }},
      {"rising", [](Random&, DType, int i, int) { return 0.37 * i; }},
  };
  return recipes;
}

const Recipe kNormal{"normal", [](Random& r, DType, int, int) { return normal(r); }};
const Recipe kEnds{"ends", [](Random& r, DType d, int, int) {
                     return r() % 2 == 0 ? largest_finite(d) * uniform(r)
                                         : 100 * smallest_positive(d) * uniform(r);
                   }};

const Recipe& recipe(const std::string& name) {
  return *std::find_if(float_recipes().begin(), float_recipes().end(),
                       [&](const Recipe& recipe) { return recipe.name == name; });
}

void append_rounded(Data& data, double value) {
  lnorm::visit(data.dtype, [&]<class T>(T) {
    if constexpr (!std::is_integral_v<T>) append(data, support::narrowed<T>(value));
  });
}

void append(Data& data, const Data& more) {
  data.bytes.insert(data.bytes.end(), more.bytes.begin(), more.bytes.end());
  data.numbers.insert(data.numbers.end(), more.numbers.begin(), more.numbers.end());
}

Data floats(DType dtype, std::span<const double> values) {
  Data data{dtype, {}, {}};
  for (const double value : values) append_rounded(data, value);
  return data;
}

Data floats(DType dtype, const Recipe& recipe, int length, Random& random) {
  Data data{dtype, {}, {}};
  const double most = largest_finite(dtype);
  for (int i = 0; i < length; ++i) {
    append_rounded(data, std::clamp(recipe.element(random, dtype, i, length), -most, most));
  }
  return data;
}

Data doubles(const std::vector<double>& values) { return floats(DType::float64, values); }

Data constant_but_for_one(DType dtype, int length, double value) {
  std::vector<double> values(static_cast<std::size_t>(length), value);
  values[values.size() / 2] = value == 0 ? smallest_positive(dtype) : value * (1 + ulp_of_1(dtype));
  return floats(dtype, values);
}

const std::vector<std::vector<double>> kRootRows{{-1, 1},      {0, 2, 0, 2}, {-3, 3, -3, 3, 3, -3},
                                                 {1, 2, 3, 4}, {0, 0, 1},    {1, 1, 1, 5}};

Data integers(DType dtype, std::span<const lnorm::Int128> values) {
  Data data{dtype, {}, {}};
  lnorm::visit(dtype, [&](auto element) {
    using T = decltype(element);
    for (const lnorm::Int128 value : values) {
      if constexpr (std::is_same_v<T, bool>) {
        append(data, (value & 1) != 0);
      } else if constexpr (std::is_integral_v<T>) {
        append(data, static_cast<T>(value));
      }
    }
  });
  return data;
}

Data integers(DType dtype, int length, int spread_bits, Random& random) {
  const auto base = random();
  std::vector<lnorm::Int128> values;
  for (int i = 0; i < length; ++i) {
    values.push_back(static_cast<lnorm::Int128>(base + (random() >> (64 - spread_bits))));
  }
  return integers(dtype, values);
}

lnorm::RowsIn rows_in(const Data& data, std::int64_t rows) {
  const std::size_t elements = data.bytes.size() / lnorm::item_size(data.dtype);
  return {data.bytes.data(), data.dtype, std::endian::native, rows,
          static_cast<std::int64_t>(elements) / rows};
}

lnorm::AffineTerm term(const Data& data, bool plus_one) {
  const auto length = static_cast<std::int64_t>(data.numbers.size());
  if (length == 0) return {};
  return {lnorm::TensorInfo{"term", data.dtype, {length}}, data.bytes, plus_one};
}

std::vector<std::byte> normalized(const lnorm::Backend& backend, const lnorm::RowsIn& rows,
                                  DType out, const lnorm::Affine& affine,
                                  const lnorm::Formula& formula,
                                  const lnorm::RowNumbersOut& stats) {
  std::vector<std::byte> y(static_cast<std::size_t>(rows.rows * rows.row_length) *
                           lnorm::item_size(out));
  backend.layer_norm(rows, {y.data(), out}, affine, formula, stats);
  return y;
}

std::vector<std::byte> softmax(const lnorm::RowsIn& rows, DType out,
                               const lnorm::Backend& backend) {
  std::vector<std::byte> y(static_cast<std::size_t>(rows.rows * rows.row_length) *
                           lnorm::item_size(out));
  lnorm::softmax(rows, {y.data(), out}, 1, backend);
  return y;
}

lnorm::RowsIn some_rows(const lnorm::RowsIn& x, std::int64_t first, std::int64_t count) {
  lnorm::RowsIn rows = row_of(x, first);
  rows.rows = count;
  return rows;
}

void check_same(std::span<const double> actual, std::span<const double> expected) {
  REQUIRE(actual.size() == expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (same_number(actual[i], expected[i])) continue;
    FAIL(std::setprecision(17) << "element " << i << " of " << actual.size() << " is " << actual[i]
                               << ", expected " << expected[i]);
  }
}

void check_kernels(const Data& x, const lnorm::RowsOut& out, const lnorm::Affine& affine,
                   const lnorm::Formula& formula, const std::vector<double>& y,
                   const oracle::Row& exact) {
  const bool has_numbers = exact.is_finite() && exact.is_defined();
  for (const lnorm::Backend& backend : lnorm::backends()) {
    if (backend.table == nullptr && y.size() > 60'000) continue;  // takes as long as the oracle
    for (const bool with_stats : {false, true}) {
      INFO(backend.name << (with_stats ? ", with statistics" : ""));
      std::vector<std::byte> bytes(y.size() * lnorm::item_size(out.dtype));
      lnorm::RowsOut to = out;
      to.data = bytes.data();
      double mean = -1;
      double rstd = -1;
      backend.layer_norm(rows_in(x), to, affine, formula,
                         with_stats ? lnorm::RowNumbersOut{&mean, &rstd} : lnorm::RowNumbersOut{});
      check_same(read_all(bytes, out.dtype), y);
      if (!with_stats) continue;
      CHECK(same_number(mean, exact.is_finite() ? exact.mean() : kNan));
      CHECK(same_number(rstd, has_numbers ? exact.rstd() : kNan));
    }
  }
}

lnorm::EpsOn any_place(Random& random) {
  constexpr std::array kOthers{lnorm::EpsOn::std, lnorm::EpsOn::max};
  return random() % 3 == 0 ? kOthers[random() % kOthers.size()] : lnorm::EpsOn::variance;
}

lnorm::Formula any_formula(Random& random, std::int64_t length) {
  constexpr std::array kEps{1e-5, 1e-5, 0.0, 1e-12, 1.0, 1e-300, 1e-320};
  lnorm::Formula formula;
  formula.eps = kEps[random() % kEps.size()];
  formula.eps_on = any_place(random);
  formula.ddof = length > 1 ? static_cast<std::int64_t>(random() % 2) : 0;
  formula.rms = random() % 5 == 0;
  return formula;
}

double read(const std::byte* from, DType dtype) {
  return lnorm::visit(dtype, [&]<class T>(T element) {
    std::memcpy(&element, from, sizeof element);
    return static_cast<double>(support::widened(element));
  });
}

std::vector<double> read_all(std::span<const std::byte> from, DType dtype) {
  std::vector<double> values;
  for (std::size_t i = 0; i < from.size(); i += lnorm::item_size(dtype)) {
    values.push_back(read(from.data() + i, dtype));
  }
  return values;
}

std::vector<std::byte> swapped(std::span<const std::byte> bytes, DType dtype) {
  return support::swapped(bytes, lnorm::item_size(dtype));
}

}  // namespace property
