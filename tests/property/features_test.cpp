// sum_features against long doubles, by every kernel.

#include "lnorm/kernel/features.hpp"

#include "property/data.hpp"

namespace {

using namespace property;
using lnorm::DType;
using lnorm::FeatureSums;

FeatureSums expected_sums(const Data& x, std::int64_t rows, std::int64_t length,
                          std::int64_t feature, std::int64_t first_row) {
  FeatureSums sums;
  std::vector<long double> finite;
  for (std::int64_t r = 0; r < rows; ++r) {
    const oracle::Number& number = x.numbers[static_cast<std::size_t>(r * length + feature)];
    const double element = number.is_integer ? static_cast<double>(number.integer) : number.value;
    if (std::isfinite(element)) {
      finite.push_back(element);
      sums.absmax = std::max(sums.absmax, std::fabs(element));
      sums.zeros += element == 0 ? 1 : 0;
    } else if (sums.non_finite++ == 0) {
      sums.first_non_finite = first_row + r;
    }
  }
  sums.finite = std::ssize(finite);
  if (finite.empty()) return sums;
  long double sum = 0;
  for (const long double element : finite) sum += element;
  const long double mean = sum / static_cast<long double>(sums.finite);
  long double squares = 0;
  long double rest = 0;  // as the mean is rounded
  for (const long double element : finite) {
    squares += (element - mean) * (element - mean);
    rest += element - mean;
  }
  squares -= rest * rest / static_cast<long double>(sums.finite);
  sums.mean = static_cast<double>(mean);
  sums.squares = static_cast<double>(squares);
  return sums;
}

void check_one(const FeatureSums& sums, const FeatureSums& expected) {
  CHECK(sums.non_finite == expected.non_finite);
  CHECK(sums.first_non_finite == expected.first_non_finite);
  CHECK(sums.finite == expected.finite);
  CHECK(sums.zeros == expected.zeros);
  CHECK(sums.absmax == expected.absmax);
  const auto n = static_cast<double>(std::max<std::int64_t>(1, expected.finite));
  const double size = std::hypot(expected.mean, std::sqrt(expected.squares / n));
  CHECK(std::fabs(sums.mean - expected.mean) <= 1e-12 * size);
  if (std::isinf(expected.squares)) {
    CHECK(std::isinf(sums.squares));
  } else {
    CHECK(std::fabs(sums.squares - expected.squares) <= 1e-12 * expected.squares);
  }
}

// By every kernel, which give the same bits; and in the other byte order.
void check(const Data& x, std::int64_t rows, std::int64_t length) {
  lnorm::RowsIn in = rows_in(x, rows);
  in.first_row = 40;
  const auto sums_of = [&](const lnorm::RowsIn& of, const lnorm::Backend& backend) {
    std::vector<FeatureSums> sums(static_cast<std::size_t>(length));
    lnorm::sum_features(of, sums.data(), backend);
    return sums;
  };
  const std::vector<FeatureSums> sums = sums_of(in, lnorm::backends().front());
  for (std::int64_t i = 0; i < length; ++i) {
    CAPTURE(i);
    check_one(sums[static_cast<std::size_t>(i)], expected_sums(x, rows, length, i, 40));
  }
  static_assert(sizeof(FeatureSums) == 10 * 8, "no padding");
  const auto same = [&](const std::vector<FeatureSums>& other) {
    return std::memcmp(sums.data(), other.data(), sums.size() * sizeof sums[0]) == 0;
  };
  for (const lnorm::Backend& backend : lnorm::backends()) {
    CAPTURE(backend.name);
    CHECK(same(sums_of(in, backend)));
  }
  const std::vector<std::byte> other = swapped(x.bytes, x.dtype);
  in.data = other.data();
  in.byte_order = kOtherByteOrder;
  CHECK(same(sums_of(in, lnorm::backends().front())));
}

constexpr std::int64_t kShapes[][2] = {{1, 1},  {3, 2},    {7, 5},   {8, 16},  {9, 31},
                                       {21, 1}, {30, 255}, {13, 64}, {33, 257}};

Data columns(DType dtype, std::int64_t rows, std::int64_t length, Random& random) {
  Data x{dtype, {}, {}};
  for (std::int64_t i = 0; i < rows * length; ++i) {
    const std::int64_t column = i % length;
    append_rounded(x, column % 3 == 0 && random() % 4 == 0 ? 0
                      : column % 5 == 1                    ? 100 + normal(random)
                                                           : normal(random));
  }
  return x;
}

}  // namespace

TEST_CASE("the sums of features are the exact ones but for 1e-12, by every kernel", "[features]") {
  Random random(5);
  for (const auto& [rows, length] : kShapes) {
    CAPTURE(rows, length);
    for (const DType dtype : kFloats) {
      CAPTURE(name(dtype));
      check(columns(dtype, rows, length, random), rows, length);
    }
    for (const DType dtype : {DType::int8, DType::uint16, DType::int32, DType::uint64}) {
      CAPTURE(name(dtype));
      check(integers(dtype, static_cast<int>(rows * length), 7, random), rows, length);
    }
  }
  check(columns(DType::float8_e4m3fn, 40, 33, random), 40, 33);
}

TEST_CASE("features leave out what is not finite, and name its first row", "[features]") {
  Random random(6);
  constexpr double kSpecial[] = {kNan, kInfinity, -kInfinity};
  for (const auto& [rows, length] : kShapes) {
    CAPTURE(rows, length);
    for (const DType dtype : {DType::float16, DType::float32, DType::float64}) {
      CAPTURE(name(dtype));
      Data some{dtype, {}, {}};
      Data triangle = some;  // as masked scores of attention
      Data all = some;
      for (std::int64_t i = 0; i < rows * length; ++i) {
        const double element = 1000 + normal(random);
        append_rounded(some, random() % 9 == 0 ? kSpecial[random() % 3] : element);
        append_rounded(triangle, i / length < i % length ? -kInfinity : element);
        append_rounded(all, kNan);
      }
      check(some, rows, length);
      check(triangle, rows, length);
      check(all, rows, length);
    }
  }
}

TEST_CASE("features have a mean where squares are beyond the range of doubles", "[features]") {
  Random random(7);
  Data x{DType::float64, {}, {}};
  for (std::int64_t i = 0; i < 40 * 21; ++i) {
    const std::int64_t column = i % 21;
    append_rounded(x, column == 3   ? 1e200 * uniform(random)
                      : column == 4 ? (i % 2 == 0 ? 1.7e308 : -1.7e308)
                      : column == 5 ? (i == 5 ? kNan : 1e160 * uniform(random))
                                    : uniform(random));
  }
  check(x, 40, 21);
}
