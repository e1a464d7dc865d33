// dweight and dbias by every kernel against exact arithmetic, however the rows are dealt out to threads.

#include "lnorm/kernel/column_gradients.hpp"

#include "lnorm/kernel/row_gradient.hpp"
#include "property/gradient_case.hpp"
#include "support/pace.hpp"

namespace {

using namespace property;
using lnorm::DType;
using lnorm::EpsOn;
using lnorm::Formula;

struct Rows {
  std::int64_t count;
  std::int64_t length;
  Data x;
  Data dy;
  Formula formula = {};
  std::vector<lnorm::SavedStatistics> saved = {};  // of every row, or of none
};

// Rows are dealt out in blocks to objects, which are merged in their order or from the last one on.
struct Way {
  std::int64_t block = 1;
  std::size_t objects = 1;
  bool is_reversed = false;
  bool has_dx = false;
  std::endian byte_order = std::endian::native;
};

lnorm::ParameterGradients gradients(const lnorm::Backend& backend, const Rows& rows,
                                    const lnorm::RequestedColumns& requested, const Way& way) {
  const bool is_swapped = way.byte_order != std::endian::native;
  const auto bytes = [&](const Data& data) {
    return is_swapped ? swapped(data.bytes, data.dtype) : data.bytes;
  };
  const std::vector<std::byte> x = bytes(rows.x);
  const std::vector<std::byte> dy = bytes(rows.dy);
  const lnorm::RowsIn all_x{x.data(), rows.x.dtype, way.byte_order, rows.count, rows.length};
  const lnorm::RowsIn all_dy{dy.data(), rows.dy.dtype, way.byte_order, rows.count, rows.length};
  const auto saved_from = [&](std::int64_t row) {
    return rows.saved.empty() ? nullptr : rows.saved.data() + row;
  };
  const lnorm::AffineTerm weight;
  std::vector<std::unique_ptr<lnorm::ColumnGradients>> gathered;
  for (std::size_t i = 0; i < way.objects; ++i) {
    gathered.push_back(std::make_unique<lnorm::ColumnGradients>(rows.length));
  }
  std::vector<double> dx(static_cast<std::size_t>(way.block * rows.length));
  in_calls(all_x, way.block, [&](const lnorm::RowsIn& some, std::int64_t first) {
    lnorm::layer_norm_backward(
        backend, some, some_rows(all_dy, first, some.rows),
        {way.has_dx ? reinterpret_cast<std::byte*>(dx.data()) : nullptr, DType::float64}, weight,
        rows.formula, saved_from(first),
        gathered[static_cast<std::size_t>(first / way.block) % way.objects].get());
  });
  if (way.is_reversed) std::reverse(gathered.begin(), gathered.end());
  for (std::size_t i = 1; i < gathered.size(); ++i) gathered[0]->merge(*gathered[i]);

  lnorm::RowReplay again;
  again.slots = 2;
  again.for_each_row = [&](const auto& see) {
    for (std::int64_t at = 0; at < rows.count; ++at) {
      const std::int64_t r = way.is_reversed ? rows.count - 1 - at : at;
      const lnorm::RowsIn row_of_x = row_of(all_x, r);
      const lnorm::RowsIn row_of_dy = row_of(all_dy, r);
      const lnorm::ReadGradientRow read_row = [&](const auto& see_part) {
        const std::int64_t half = rows.length / 2;
        see_part({lnorm::part_of(row_of_x, half, rows.length - half),
                  lnorm::part_of(row_of_dy, half, rows.length - half), half});
        if (half == 0) return;
        see_part({lnorm::part_of(row_of_x, 0, half), lnorm::part_of(row_of_dy, 0, half), 0});
      };
      see(static_cast<std::size_t>(r % 2), read_row, saved_from(r));
    }
  };
  return lnorm::parameter_gradients(
      {backend, rows.x.dtype, rows.dy.dtype, DType::float64, rows.length, weight, rows.formula},
      *gathered[0], requested, again);
}

oracle::GradientRow oracle_of(const Rows& rows, std::int64_t r) {
  const auto at = static_cast<std::size_t>(r * rows.length);
  const auto length = static_cast<std::size_t>(rows.length);
  std::optional<oracle::Saved> saved;
  if (!rows.saved.empty()) {
    const lnorm::SavedStatistics& of = rows.saved[static_cast<std::size_t>(r)];
    saved = oracle::Saved{{of.mean.high}, {of.rstd.high}};
  }
  return {std::span(rows.x.numbers).subspan(at, length),
          std::span(rows.dy.numbers).subspan(at, length),
          {},
          false,
          rows.formula,
          saved};
}

void compare(const lnorm::ParameterGradients& actual, const lnorm::ParameterGradients& expected) {
  {
    INFO("dweight");
    check_same(actual.dweight, expected.dweight);
  }
  INFO("dbias");
  check_same(actual.dbias, expected.dbias);
}

lnorm::ParameterGradients expected_gradients(const oracle::Columns& columns, std::int64_t count,
                                             DType dtype) {
  lnorm::ParameterGradients expected;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    expected.dweight.push_back(columns.dweight(i, dtype));
    expected.dbias.push_back(columns.dbias(i, dtype));
  }
  return expected;
}

// Holds every kernel's gradients against the exact ones.
void check(const Rows& rows, DType dtype) {
  for (const bool is_uniform : {false, true}) {
    oracle::Columns columns(static_cast<std::size_t>(rows.length), is_uniform);
    for (std::int64_t r = 0; r < rows.count; ++r) columns.add(oracle_of(rows, r));
    const lnorm::RequestedColumns requested{.uniform = is_uniform, .dtype = dtype};
    const lnorm::ParameterGradients expected =
        expected_gradients(columns, is_uniform ? 1 : rows.length, dtype);
    for (const lnorm::Backend& backend : lnorm::backends()) {
      for (const Way& way : {Way{.block = rows.count}, Way{.block = 2,
                                                       .objects = 3,
                                                       .is_reversed = true,
                                                       .has_dx = true,
                                                       .byte_order = kOtherByteOrder}}) {
        CAPTURE(backend.name, is_uniform, lnorm::name(dtype), way.block);
        compare(gradients(backend, rows, requested, way), expected);
      }
    }
  }
}

// Rows of -1 and 1 with eps = 0, which are their own x-hat, and dy, whose two columns are alike.
Rows rows_of_signs(const std::vector<double>& dy) {
  std::vector<double> x;
  std::vector<double> both;
  for (const double value : dy) {
    x.insert(x.end(), {1, -1});
    both.insert(both.end(), {value, value});
  }
  return {static_cast<std::int64_t>(dy.size()), 2, doubles(x), doubles(both), {.eps = 0}};
}

}  // namespace

TEST_CASE("dweight and dbias are correctly rounded", "[backward]") {
  const int length = GENERATE(1, 2, 7, 33);
  Random random(static_cast<std::uint64_t>(length) + 60);
  for (const DType dtype : kFloats) {
    for (const Recipe& of_x : float_recipes()) {
      if (length > 2 && random() % 4 != 0) continue;
      const int count = length > 7 ? 3 : 1 + static_cast<int>(random() % 12);
      const Recipe& of_dy =
          random() % 2 == 0 ? kNormal : float_recipes()[random() % float_recipes().size()];
      Rows rows{count, length, floats(dtype, of_x, count * length, random),
                floats(kFloats[random() % kFloats.size()], of_dy, count * length, random)};
      rows.formula = any_formula(random, length);
      for (int r = 0; random() % 4 == 0 && r < count; ++r) {
        rows.saved.resize(static_cast<std::size_t>(count), {{0, 0}, {0.7, 0}});
        if (!rows.formula.rms) rows.saved[static_cast<std::size_t>(r)].mean.high = normal(random);
      }
      INFO("x " << lnorm::name(dtype) << ' ' << of_x.name << ", dy " << of_dy.name << ", " << count
                << " x " << length << ", eps " << rows.formula.eps << " on std "
                << (rows.formula.eps_on == EpsOn::std) << ", ddof " << rows.formula.ddof << ", rms "
                << rows.formula.rms << ", saved " << rows.saved.size());
      check(rows, kFloats[random() % kFloats.size()]);
    }
  }
}

TEST_CASE("dweight and dbias of integers are correctly rounded", "[backward]") {
  const DType dtype = GENERATE(DType::int8, DType::uint16, DType::int64, DType::uint64);
  Random random(61);
  for (const int spread_bits : {1, 17, 60}) {
    CAPTURE(lnorm::name(dtype), spread_bits);
    const Data x = integers(dtype, 5 * 9, spread_bits, random);
    check({5, 9, x, floats(DType::float32, kNormal, 5 * 9, random)}, DType::float32);
    check({5, 9, x, integers(dtype, 5 * 9, spread_bits, random)}, DType::float64);
  }
}

TEST_CASE("columns that cancel are exactly 0", "[backward]") {
  // Every row comes again with -dy, once as a multiple of itself with the same x-hat.
  const DType dtype = GENERATE(DType::float16, DType::float32, DType::float64);
  constexpr int kLength = 5;
  Random random(62);
  std::vector<double> x;
  std::vector<double> dy;
  for (int pair = 0; pair < 20; ++pair) {
    std::vector<double> row;
    std::vector<double> gradient;
    for (int i = 0; i < kLength; ++i) {
      row.push_back(static_cast<double>(random() % 100) + i);
      gradient.push_back(std::round(normal(random) * 100) / 64);
    }
    for (const double sign : {1.0, -1.0}) {
      for (const double value : row) x.push_back(sign > 0 ? value : value * 3);
      for (const double value : gradient) dy.push_back(sign * value);
    }
  }
  Rows rows{40, kLength, floats(dtype, x), floats(dtype, dy), {.eps = 0}};
  check(rows, dtype);
  const std::vector<double> zeros(kLength, 0.0);
  for (const lnorm::Backend& backend : lnorm::backends()) {
    CAPTURE(backend.name);
    compare(gradients(backend, rows, {.dtype = DType::float64}, {.block = 7, .objects = 2}),
            {zeros, zeros});
  }
  // With eps it is no longer the same x-hat.
  rows.formula.eps = 1e-200;
  check(rows, DType::float64);
}

TEST_CASE("what truncation leaves of columns that cancel is the result", "[backward]") {
  // dy is 1, 1, -2 and x-hat irrational: twice a truncated term may be less than the truncated double.
  const std::vector<double> row{1, 2, 4, 9, 6};
  std::vector<double> x;
  std::vector<double> dy;
  for (const double value : {1.0, 1.0, -2.0}) {
    x.insert(x.end(), row.begin(), row.end());
    dy.insert(dy.end(), row.size(), value);
  }
  const Rows rows{3, 5, doubles(x), doubles(dy)};
  check(rows, DType::float64);
  const lnorm::ParameterGradients actual =
      gradients(lnorm::backends().front(), rows, {.dtype = DType::float64}, {.block = 3});
  const auto is_residue = [](double value) {
    return value != 0 && std::fabs(value) <= 0x1p-158 &&
           std::exp2(std::ilogb(value)) == std::fabs(value);
  };
  CHECK(std::any_of(actual.dweight.begin(), actual.dweight.end(), is_residue));
}

TEST_CASE("columns that come to a tie go to even, unless a term says more", "[backward]") {
  const DType dtype = GENERATE(from_range(kFloats));
  const double half = ulp_of_1(dtype) / 2;
  for (const double tail :
       {0.0, 0x1p-100, 0x1p-158, 0x1p-159, 0x1p-160, 0x1p-161, 0x1p-170, 0x1p-1000}) {
    for (const double sign : {1.0, -1.0}) {
      CAPTURE(tail, sign);
      check(rows_of_signs({1, half, sign * tail}), dtype);
      check(rows_of_signs({-1, -half, sign * tail}), dtype);
      check(rows_of_signs({tail, 1, 2 * half, sign * half, -tail / 2}), dtype);
    }
  }
}

TEST_CASE("a term below the truncation counts in dbias, but not in dweight", "[backward]") {
  const Rows rows = rows_of_signs({1, 0x1p-24, 0x1p-161});
  for (const lnorm::Backend& backend : lnorm::backends()) {
    CAPTURE(backend.name);
    const lnorm::ParameterGradients actual = gradients(backend, rows, {}, {});
    CHECK(actual.dweight == std::vector<double>{1, -1});
    CHECK(actual.dbias == std::vector<double>{1 + 0x1p-23, 1 + 0x1p-23});
  }
}

TEST_CASE("columns at the ends of the range overflow and become subnormal rightly", "[backward]") {
  for (const DType dtype : kFloats) {
    const double most = largest_finite(dtype);
    const double least = smallest_positive(dtype);
    CAPTURE(lnorm::name(dtype));
    check(rows_of_signs({most, most}), dtype);
    check(rows_of_signs({most, most, -most}), dtype);  // not by way of an infinity
    check(rows_of_signs({most, std::ldexp(most, -13), least}), dtype);
    check(rows_of_signs({least, least, -least}), dtype);
    check(rows_of_signs({least / 2, least / 4}), dtype);
    check(rows_of_signs({3 * (least / 2), most, -most}), dtype);
  }
}

TEST_CASE("products below the normal numbers lose no digit of a column", "[backward]") {
  Random random(39);
  // Elements of all sizes below, some 0.
  const auto small = [&](double most) {
    std::vector<double> numbers(6 * 5);
    for (double& number : numbers) {
      const double exponent = (most - 323 + uniform(random) * (most + 323)) / 2;
      number = random() % 8 == 0 ? 0 : normal(random) * std::pow(10.0, exponent);
    }
    return doubles(numbers);
  };
  for (int round = 0; round < support::share(30); ++round) {
    Rows rows{6, 5, small(round % 2 == 0 ? 0 : -305), small(round % 3 == 0 ? -300 : 3)};
    rows.formula.rms = round % 5 < 3;
    if (round % 4 < 2) {
      for (std::int64_t r = 0; r < rows.count; ++r) {
        rows.saved.push_back({{0, 0}, {2 + uniform(random), 0}});
      }
    }
    CAPTURE(round);
    check(rows, DType::float64);
  }
}

TEST_CASE("sums over 100,000 rows are exact where float32 has lost half of its digits",
          "[backward][long]") {
  // Every x is there 50 times, in any order: with dy near 1 in the first half, near -1 in the second.
  constexpr std::int64_t kLength = 8;
  constexpr int kTimes = 25;
  const int distinct = support::share(2000);
  const std::int64_t count = 2 * kTimes * distinct;
  Random random(63);
  std::vector<double> x;
  std::vector<double> dy;
  oracle::Columns columns(kLength);
  oracle::Columns uniform(kLength, true);
  std::vector<std::size_t> halves[2];
  std::vector<Data> rows_of_x;
  std::vector<Data> rows_of_dy;
  for (int i = 0; i < distinct; ++i) {
    std::vector<double> row;
    for (int k = 0; k < kLength; ++k) row.push_back(k + normal(random));
    for (const int half : {0, 1}) {
      std::vector<double> gradient;
      for (int k = 0; k < kLength; ++k) gradient.push_back(1 - 2 * half + 1e-3 * normal(random));
      halves[half].insert(halves[half].end(), kTimes, rows_of_x.size());
      rows_of_x.push_back(floats(DType::float32, row));
      rows_of_dy.push_back(floats(DType::float32, gradient));
      const oracle::GradientRow exact(rows_of_x.back().numbers, rows_of_dy.back().numbers, {},
                                      false, {});
      columns.add(exact, kTimes);
      uniform.add(exact, kTimes);
    }
  }
  Rows rows{count, kLength, {DType::float32, {}, {}}, {DType::float32, {}, {}}};
  std::vector<float> plain(kLength);
  for (std::vector<std::size_t>& half : halves) {
    std::shuffle(half.begin(), half.end(), random);
    for (const std::size_t i : half) {
      const Data& of_x = rows_of_x[i];
      const Data& of_dy = rows_of_dy[i];
      append(rows.x, of_x);
      append(rows.dy, of_dy);
      for (std::size_t k = 0; k < kLength; ++k) {
        plain[k] += static_cast<float>(of_dy.numbers[k].value);
      }
    }
  }
  double most_lost = 0;
  for (std::size_t k = 0; k < kLength; ++k) {
    const double exact = columns.dbias(k, DType::float64);
    most_lost = std::max(most_lost, std::fabs((static_cast<double>(plain[k]) - exact) / exact));
  }
  CHECK(most_lost > 0x1p-12);
  for (const DType dtype : {DType::float32, DType::float64}) {
    const lnorm::ParameterGradients expected = expected_gradients(columns, kLength, dtype);
    const Way way = dtype == DType::float32 ? Way{.block = 1000, .objects = 7}
                                            : Way{.block = 33, .is_reversed = true};
    for (const lnorm::Backend& backend : lnorm::backends()) {
      if (backend.table == nullptr) continue;  // takes its time
      CAPTURE(backend.name, lnorm::name(dtype));
      compare(gradients(backend, rows, {.dtype = dtype}, way), expected);
    }
  }
  compare(gradients(lnorm::backends().front(), rows, {.uniform = true}, {.block = 1000}),
          expected_gradients(uniform, 1, DType::float32));
}

TEST_CASE("columns of rows of every kind are correctly rounded together", "[backward]") {
  const DType dtype = GENERATE(from_range(kFloats));
  constexpr int kLength = 5;
  Random random(68);
  Rows rows{0, kLength, {dtype, {}, {}}, {dtype, {}, {}}};
  const auto append_row = [&](Data& data, const Recipe& of) {
    append(data, floats(dtype, of, kLength, random));
  };
  for (int i = 0; i < 30; ++i) {
    const Recipe& of_x = float_recipes()[random() % float_recipes().size()];
    append_row(rows.x, of_x);
    append_row(rows.dy, kNormal);
    ++rows.count;
    // Ordinary ones after it, with dy that takes most of the sum back.
    append_row(rows.x, kNormal);
    append_row(rows.dy, {"of one size", [](Random& r, DType, int, int) {
                           return (r() % 2 == 0 ? 1 : -1) + 1e-3 * normal(r);
                         }});
    ++rows.count;
  }
  check(rows, DType::float32);
  check(rows, DType::float64);
}

// A block of rows has one center, unless they are far from each other.
TEST_CASE("columns of rows about means far from each other are correctly rounded", "[backward]") {
  const int length = GENERATE(1, 8, 10, 16, 32, 40);
  const DType of_x = GENERATE(DType::float32, DType::bfloat16);
  const DType of_dy = GENERATE(DType::float32, DType::float16, DType::bfloat16);
  Random random(static_cast<std::uint64_t>(length));
  Rows rows{0, length, {of_x, {}, {}}, {of_dy, {}, {}}};
  double mean = 0;
  for (rows.count = 0; rows.count < 43; ++rows.count) {
    mean = rows.count < 20 ? mean + normal(random) : (random() % 3 == 0 ? 30 : 2) * normal(random);
    append(
        rows.x,
        floats(of_x, {"about a mean", [&](Random& r, DType, int, int) { return mean + normal(r); }},
               length, random));
    append(rows.dy, floats(of_dy, kNormal, length, random));
  }
  check(rows, DType::float32);
}

TEST_CASE("columns of a row in parts are those of the whole row", "[backward]") {
  constexpr std::int64_t kLength = 2500;
  Random random(64);
  const Data x = floats(DType::float32, kNormal, kLength, random);
  const Data dy = floats(DType::float32, kNormal, kLength, random);
  const lnorm::AffineTerm weight;
  const Formula formula;
  oracle::Columns columns(kLength);
  columns.add(oracle::GradientRow(x.numbers, dy.numbers, {}, false, formula));
  const lnorm::ParameterGradients expected = expected_gradients(columns, kLength, DType::float32);
  for (const lnorm::Backend& backend : lnorm::backends()) {
    const lnorm::GradientSetting setting{backend, DType::float32, DType::float32, DType::float32,
                                         kLength, weight,         formula,        true};
    const lnorm::ReadGradientRow read_row = [&](const auto& see) {
      for (const std::int64_t first : {0, 1024, 2049}) {
        const std::int64_t count =
            std::min(first == 0 ? 1024 : std::int64_t{1025}, kLength - first);
        const auto part = [&](const Data& of) { return part_of(rows_in(of), first, count); };
        see({part(x), part(dy), first});
      }
    };
    lnorm::RowGradient row(setting, lnorm::sample_of(part_of(rows_in(x), 0, 1024)), nullptr,
                           read_row);
    row.sum_up();
    lnorm::ColumnGradients gathered(kLength);
    read_row([&](const lnorm::GradientPart& part) {
      row.write(part, {nullptr, DType::float32}, &gathered);
    });
    CAPTURE(backend.name);
    compare(lnorm::parameter_gradients(setting, gathered, {},
                                       {1, [&](const auto& see) { see(0, read_row, nullptr); }}),
            expected);
  }
}

TEST_CASE("without rows dweight and dbias are 0", "[backward]") {
  for (const lnorm::Backend& backend : lnorm::backends()) {
    for (const bool is_uniform : {false, true}) {
      const std::vector<double> zeros(is_uniform ? 1 : 3, 0.0);
      compare(gradients(backend, {0, 3, doubles({}), doubles({})}, {.uniform = is_uniform}, {}),
              {zeros, zeros});
    }
  }
}

TEST_CASE("what is not finite makes its column NaN, in x every dweight", "[backward]") {
  const double bad = GENERATE(as<double>{}, kNan, kInfinity, -kInfinity);
  const std::int64_t length = GENERATE(2, 17);
  Random random(65);
  const auto count = static_cast<int>(6 * length);
  for (const DType dtype : kFloats) {
    const Data finite = floats(dtype, kNormal, count, random);
    std::vector<double> broken = read_all(finite.bytes, dtype);
    broken[static_cast<std::size_t>(2 * length + length / 2)] = bad;
    CAPTURE(lnorm::name(dtype), bad, length);
    check({6, length, finite, floats(dtype, broken)}, dtype);
    check({6, length, floats(dtype, broken), finite}, dtype);
    // dy of 0 does not make up for it.
    check({6, length, floats(dtype, broken),
           floats(dtype, std::vector<double>(static_cast<std::size_t>(count), 0))},
          dtype);
    Rows rows{6, length, finite, finite};
    rows.saved.resize(6, {{0, 0}, {1, 0}});
    rows.saved[3].mean.high = bad;
    check(rows, dtype);
  }
}

TEST_CASE("a constant row is NaN in dweight where x-hat is 0/0, and 0 where it is 0",
          "[backward]") {
  Random random(66);
  Rows rows{3, 4, doubles({1, 2, 3, 4, 5, 5, 5, 5, 0, 0, 0, 1}),
            floats(DType::float64, kNormal, 12, random)};
  check(rows, DType::float64);
  rows.formula.eps_on = EpsOn::std;
  check(rows, DType::float64);
  const lnorm::Backend& backend = lnorm::backends().front();
  CHECK(std::isfinite(gradients(backend, rows, {}, {}).dweight[0]));
  rows.formula.eps = 0;
  check(rows, DType::float64);
  CHECK(std::isnan(gradients(backend, rows, {}, {}).dweight[0]));
  CHECK(std::isfinite(gradients(backend, rows, {}, {}).dbias[0]));
}

TEST_CASE("one of dweight and dbias alone is what it is beside the other", "[backward]") {
  Random random(67);
  const Rows rows{20, 9, floats(DType::float32, kNormal, 180, random),
                  floats(DType::float32, kNormal, 180, random)};
  for (const lnorm::Backend& backend : lnorm::backends()) {
    const lnorm::ParameterGradients both = gradients(backend, rows, {}, {});
    CHECK(gradients(backend, rows, {.dbias = false}, {}).dweight == both.dweight);
    CHECK(gradients(backend, rows, {.dweight = false}, {}).dbias == both.dbias);
  }
}
