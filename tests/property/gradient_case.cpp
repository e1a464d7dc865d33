#include "property/gradient_case.hpp"

#include <cmath>
#include <sstream>

#include "support/catch.hpp"

namespace property {

namespace {

constexpr std::int64_t kLongForReference = 20'000;

std::vector<double> expected_dx(const GradientCase& c, const oracle::GradientRow& row,
                                std::size_t first, std::size_t step) {
  std::vector<double> expected;
  for (std::size_t i = first; i < c.x.numbers.size(); i += step) {
    expected.push_back(row.has_gradient() ? oracle::rounded(row.dx(i), c.dx) : std::nan(""));
  }
  return expected;
}

void compare(const GradientCase& c, const oracle::GradientRow& row,
             const std::vector<double>& expected, const std::vector<double>& dx, std::size_t first,
             std::size_t step) {
  REQUIRE(dx.size() == c.x.numbers.size());
  for (std::size_t at = 0; at < expected.size(); ++at) {
    const std::size_t i = first + at * step;
    if (same_number(dx[i], expected[at])) continue;
    INFO("element " << i << " of " << dx.size() << " is " << dx[i] << ", expected "
                    << expected[at]);
    if (!row.has_gradient()) FAIL("of a row without a gradient");
    FAIL("off by " << oracle::ulp_distance(dx[i], oracle::near(row.dx(i)), c.dx) << " ulp");
  }
}

}  // namespace

std::string describe(const GradientCase& c) {
  std::ostringstream out;
  out << lnorm::name(c.x.dtype) << " x " << c.length() << ", dy " << lnorm::name(c.dy.dtype)
      << ", dx " << lnorm::name(c.dx) << ", eps " << c.formula.eps
      << (c.formula.eps_on == lnorm::EpsOn::std ? " on std" : "") << ", ddof " << c.formula.ddof
      << (c.formula.rms ? ", rms" : "");
  if (!c.weight.numbers.empty()) {
    out << ", " << c.weight.numbers.size() << " weights of " << lnorm::name(c.weight.dtype)
        << (c.plus_one ? " and 1" : "");
  }
  if (c.saved) out << ", mean " << c.saved->mean.value << ", rstd " << c.saved->rstd.value;
  return out.str();
}

lnorm::AffineTerm weight_term(const Data& weight, bool plus_one) {
  const auto length = static_cast<std::int64_t>(weight.numbers.size());
  if (length == 0) return {};
  return {lnorm::TensorInfo{"weight", weight.dtype, {length}}, weight.bytes, plus_one};
}

oracle::GradientRow oracle_of(const GradientCase& c) {
  return {c.x.numbers, c.dy.numbers, c.weight.numbers, c.plus_one, c.formula, c.saved};
}

std::optional<lnorm::SavedStatistics> saved_of(const GradientCase& c) {
  if (!c.saved) return std::nullopt;
  return lnorm::SavedStatistics{{c.saved->mean.value, 0}, {c.saved->rstd.value, 0}};
}

std::vector<double> backward(const lnorm::Kernel& kernel, const GradientCase& c, bool is_swapped) {
  const std::endian order = is_swapped ? kOtherByteOrder : std::endian::native;
  const auto bytes = [&](const Data& data) {
    return is_swapped ? swapped(data.bytes, data.dtype) : data.bytes;
  };
  const std::vector<std::byte> x = bytes(c.x);
  const std::vector<std::byte> dy = bytes(c.dy);
  std::vector<std::byte> dx(c.x.numbers.size() * lnorm::item_size(c.dx));
  const auto saved = saved_of(c);
  lnorm::layer_norm_backward(kernel, {x.data(), c.x.dtype, order, 1, c.length()},
                             {dy.data(), c.dy.dtype, order, 1, c.length()}, {dx.data(), c.dx},
                             weight_term(c.weight, c.plus_one), c.formula,
                             saved ? &*saved : nullptr, nullptr);
  return read_all(dx, c.dx);
}

bool same_number(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

void check(const GradientCase& c, std::size_t first, std::size_t step) {
  const oracle::GradientRow row = oracle_of(c);
  const std::vector<double> expected = expected_dx(c, row, first, step);
  INFO(describe(c));
  for (const lnorm::Kernel& kernel : lnorm::kernels()) {
    if (kernel.passes == nullptr && c.length() > kLongForReference) continue;
    INFO(kernel.name);
    compare(c, row, expected, backward(kernel, c), first, step);
  }
}

void check_dx(const GradientCase& c, const std::vector<double>& dx) {
  const oracle::GradientRow row = oracle_of(c);
  INFO(describe(c));
  compare(c, row, expected_dx(c, row, 0, 1), dx, 0, 1);
}

}  // namespace property
