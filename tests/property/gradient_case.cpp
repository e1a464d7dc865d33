#include "property/gradient_case.hpp"

#include <sstream>

namespace property {

namespace {

constexpr std::int64_t kLongForReference = 20'000;

// Of the elements first, first + step, ...
template <class Element>
std::vector<double> each(const GradientCase& c, std::size_t first, std::size_t step,
                         Element element) {
  std::vector<double> result;
  for (std::size_t i = first; i < c.x.numbers.size(); i += step) result.push_back(element(i));
  return result;
}

std::vector<double> expected_dx(const GradientCase& c, std::size_t first, std::size_t step) {
  const oracle::GradientRow row = oracle_of(c);
  return each(c, first, step, [&](std::size_t i) {
    return row.has_gradient() ? oracle::rounded(row.dx(i), c.dx) : kNan;
  });
}

}  // namespace

std::string describe(const GradientCase& c) {
  std::ostringstream out;
  out << lnorm::name(c.x.dtype) << " x " << c.length() << ", dy " << lnorm::name(c.dy.dtype)
      << ", dx " << lnorm::name(c.dx) << ", eps " << c.formula.eps << " on "
      << c.formula.eps_place().name << ", ddof " << c.formula.ddof
      << (c.formula.rms ? ", rms" : "");
  if (!c.weight.numbers.empty()) {
    out << ", " << c.weight.numbers.size() << " weights of " << lnorm::name(c.weight.dtype)
        << (c.plus_one ? " and 1" : "");
  }
  if (c.saved) out << ", mean " << c.saved->mean.value << ", rstd " << c.saved->rstd.value;
  return out.str();
}

oracle::GradientRow oracle_of(const GradientCase& c) {
  return {c.x.numbers, c.dy.numbers, c.weight.numbers, c.plus_one, c.formula, c.saved};
}

std::optional<lnorm::SavedStatistics> saved_of(const GradientCase& c) {
  if (!c.saved) return std::nullopt;
  return lnorm::SavedStatistics{{c.saved->mean.value, 0}, {c.saved->rstd.value, 0}};
}

std::vector<double> backward(const lnorm::Backend& backend, const GradientCase& c,
                             bool is_swapped) {
  const std::endian order = is_swapped ? kOtherByteOrder : std::endian::native;
  const auto bytes = [&](const Data& data) {
    return is_swapped ? swapped(data.bytes, data.dtype) : data.bytes;
  };
  const std::vector<std::byte> x = bytes(c.x);
  const std::vector<std::byte> dy = bytes(c.dy);
  std::vector<std::byte> dx(c.x.numbers.size() * lnorm::item_size(c.dx));
  const auto saved = saved_of(c);
  lnorm::layer_norm_backward(backend, {x.data(), c.x.dtype, order, 1, c.length()},
                             {dy.data(), c.dy.dtype, order, 1, c.length()}, {dx.data(), c.dx},
                             term(c.weight, c.plus_one), c.formula, saved ? &*saved : nullptr,
                             nullptr);
  return read_all(dx, c.dx);
}

void check(const GradientCase& c, std::size_t first, std::size_t step) {
  const std::vector<double> expected = expected_dx(c, first, step);
  INFO(describe(c));
  for (const lnorm::Backend& backend : lnorm::backends()) {
    if (backend.table == nullptr && c.length() > kLongForReference) continue;
    INFO(backend.name << ", from element " << first << " in steps of " << step);
    const std::vector<double> dx = backward(backend, c);
    check_same(each(c, first, step, [&](std::size_t i) { return dx[i]; }), expected);
  }
}

void check_dx(const GradientCase& c, const std::vector<double>& dx) {
  INFO(describe(c));
  check_same(dx, expected_dx(c, 0, 1));
}

}  // namespace property
