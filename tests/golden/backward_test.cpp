// Gradients that PyTorch's autograd computed in float64 (data/grad).

#include "lnorm/kernel/backward.hpp"

#include "lnorm/io/open_tensor.hpp"
#include "property/data.hpp"
#include "support/files.hpp"

namespace {

using namespace property;

using lnorm::DType;
using lnorm::EpsOn;
using lnorm::Formula;

constexpr double kTolerance = 1e-10;  // of the largest term of a sum

struct Golden {
  std::string name;
  Formula formula = {};
  bool is_saved = false;
};

const std::vector<Golden> kGoldens{
    {"one_axis"},
    {"two_axes"},
    {"rms", {.eps = 1e-6, .rms = true}},
    {"float32"},
    {"far"},
    {"eps_on_std", {.eps = 1e-6, .eps_on = EpsOn::std, .ddof = 1}},
    {"saved", {}, true},
};

struct Tensor {
  lnorm::TensorInfo info;
  std::vector<std::byte> bytes;
  std::vector<double> values;

  lnorm::RowsIn rows(std::size_t length, std::size_t first, std::size_t count) const {
    return {bytes.data() + first * length * lnorm::item_size(info.dtype), info.dtype,
            info.byte_order, static_cast<std::int64_t>(count), static_cast<std::int64_t>(length)};
  }
};

Tensor tensor(const Golden& golden, const std::string& name) {
  const lnorm::OpenedTensor opened =
      lnorm::open_tensor(support::data_file("grad/" + golden.name + "/" + name + ".npy"), {});
  Tensor result{opened.source->info(), {}, {}};
  std::size_t count = 1;
  for (const std::int64_t extent : result.info.shape) count *= static_cast<std::size_t>(extent);
  opened.source->read(result.bytes, count * lnorm::item_size(result.info.dtype));
  opened.source->finish();
  const bool is_native = result.info.byte_order == std::endian::native;
  result.values = read_all(is_native ? result.bytes : swapped(result.bytes, result.info.dtype),
                           result.info.dtype);
  return result;
}

// A row of the formula in plain doubles, for the size of its terms.
struct Terms {
  std::vector<double> xhat;
  double largest_of_dx = 0;
};

Terms terms(const double* x, const double* dy, const std::vector<double>& weight,
            const Formula& formula, const lnorm::SavedStatistics* saved) {
  const std::size_t n = weight.size();
  const double freedom = static_cast<double>(n) - static_cast<double>(formula.ddof);
  double mean = 0;
  for (std::size_t i = 0; i < n && !formula.rms; ++i) mean += x[i] / static_cast<double>(n);
  if (saved != nullptr) mean = saved->mean.high;
  double variance = 0;
  double g_sum = 0;
  double product = 0;
  for (std::size_t i = 0; i < n; ++i) {
    variance += (x[i] - mean) * (x[i] - mean) / freedom;
    g_sum += dy[i] * weight[i];
    product += dy[i] * weight[i] * (x[i] - mean) / freedom;
  }
  double s = formula.eps_on == EpsOn::std ? std::sqrt(variance) + formula.eps
                                          : std::sqrt(variance + formula.eps);
  if (saved != nullptr) s = 1 / saved->rstd.high;
  const double t = formula.eps_on == EpsOn::std ? std::sqrt(variance) : s;
  Terms result;
  for (std::size_t i = 0; i < n; ++i) {
    result.xhat.push_back((x[i] - mean) / s);
    result.largest_of_dx = std::max({result.largest_of_dx, std::fabs(dy[i] * weight[i] / s),
                                     std::fabs(g_sum / static_cast<double>(n) / s),
                                     std::fabs((x[i] - mean) * product / (s * s * t))});
  }
  return result;
}

}  // namespace

TEST_CASE("the gradients that PyTorch computes are reproduced", "[backward]") {
  for (const Golden& golden : kGoldens) {
    const Tensor x = tensor(golden, "x");
    const Tensor dy = tensor(golden, "dy");
    const Tensor weight = tensor(golden, "weight");
    const Tensor dx = tensor(golden, "dx");
    const Tensor dweight = tensor(golden, "dweight");
    const Tensor dbias = tensor(golden, "dbias");
    const std::size_t length = weight.values.size();
    const std::size_t rows = x.values.size() / length;
    std::vector<lnorm::SavedStatistics> saved;
    if (golden.is_saved) {
      const Tensor mean = tensor(golden, "mean");
      const Tensor rstd = tensor(golden, "rstd");
      for (std::size_t r = 0; r < rows; ++r) {
        saved.push_back({{mean.values[r], 0}, {rstd.values[r], 0}});
      }
    }
    const auto saved_of = [&](std::size_t r) { return saved.empty() ? nullptr : &saved[r]; };
    std::vector<double> largest_of_dx;
    std::vector<double> largest_of_dweight(length);
    std::vector<double> largest_of_dbias(length);
    for (std::size_t r = 0; r < rows; ++r) {
      const double* const dy_row = &dy.values[r * length];
      const Terms of =
          terms(&x.values[r * length], dy_row, weight.values, golden.formula, saved_of(r));
      largest_of_dx.push_back(of.largest_of_dx);
      for (std::size_t i = 0; i < length; ++i) {
        largest_of_dweight[i] = std::max(largest_of_dweight[i], std::fabs(dy_row[i] * of.xhat[i]));
        largest_of_dbias[i] = std::max(largest_of_dbias[i], std::fabs(dy_row[i]));
      }
    }

    const lnorm::AffineTerm term(weight.info, weight.bytes, false);
    for (const lnorm::Backend& backend : lnorm::backends()) {
      CAPTURE(golden.name, backend.name);
      std::vector<double> actual(x.values.size());
      lnorm::ColumnGradients columns(static_cast<std::int64_t>(length));
      lnorm::layer_norm_backward(backend, x.rows(length, 0, rows), dy.rows(length, 0, rows),
                                 {reinterpret_cast<std::byte*>(actual.data()), DType::float64},
                                 term, golden.formula, saved_of(0), &columns);
      lnorm::RowReplay again;
      again.for_each_row = [&](const auto& see) {
        for (std::size_t r = 0; r < rows; ++r) {
          const lnorm::ReadGradientRow read_row = [&](const auto& see_part) {
            see_part({x.rows(length, r, 1), dy.rows(length, r, 1)});
          };
          see(0, read_row, saved_of(r));
        }
      };
      const lnorm::ParameterGradients parameters =
          lnorm::parameter_gradients({backend, x.info.dtype, dy.info.dtype, DType::float64,
                                      static_cast<std::int64_t>(length), term, golden.formula},
                                     columns, {.dtype = DType::float64}, again);
      REQUIRE(dx.values.size() == actual.size());
      for (std::size_t i = 0; i < actual.size(); ++i) {
        CAPTURE(i, actual[i], dx.values[i]);
        CHECK(std::fabs(actual[i] - dx.values[i]) <= kTolerance * largest_of_dx[i / length]);
      }
      REQUIRE(dweight.values.size() == length);
      REQUIRE(dbias.values.size() == length);
      for (std::size_t i = 0; i < length; ++i) {
        CAPTURE(i, parameters.dweight[i], dweight.values[i], parameters.dbias[i], dbias.values[i]);
        CHECK(std::fabs(parameters.dweight[i] - dweight.values[i]) <=
              kTolerance * largest_of_dweight[i]);
        CHECK(std::fabs(parameters.dbias[i] - dbias.values[i]) <= kTolerance * largest_of_dbias[i]);
      }
    }
  }
}
