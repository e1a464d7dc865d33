#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lnorm/core/axes.hpp"
#include "lnorm/core/feature_sums.hpp"
#include "lnorm/core/non_finite.hpp"
#include "lnorm/core/shape.hpp"
#include "lnorm/core/tensor_info.hpp"
#include "lnorm/measure/bands.hpp"
#include "lnorm/measure/medians.hpp"
#include "lnorm/measure/top.hpp"

// A feature is an element of the row, over all rows: what is dead, and what stands out.
namespace lnorm {

// What is known of one feature. All but non_finite is of its finite elements; NaN where there are none.
struct Feature {
  double mean = 0;
  double variance = 0;  // sum((x - mean)^2) / (n - ddof)
  double absmax = 0;    // the greatest |x|
  double zeros = 0;     // their share
  std::int64_t non_finite = 0;

  // By how much it stands out; NaN, which comes last, where it has no number.
  double score(TopBy by) const noexcept;
};

// A figure of every feature; JSON and CSV call it by its key.
struct FeatureFigure {
  std::string_view key;
  std::string_view words;
  double Feature::*of;
};
inline constexpr std::array kFeatureFigures{
    FeatureFigure{"mean", "mean", &Feature::mean},
    FeatureFigure{"variance", "variance", &Feature::variance},
    FeatureFigure{"absmax", "largest |x|", &Feature::absmax},
    FeatureFigure{"zeros", "zeros", &Feature::zeros}};

// All that a report says of the features of a tensor.
struct FeatureStats {
  TensorInfo x;                   // the whole tensor, where only some rows were looked at
  Axes axes;                      // along which rows go
  std::optional<RowSlice> slice;  // these rows, of which there are so many:
  std::int64_t rows = 0;
  std::int64_t ddof = 0;
  bool mask = false;      // elements are left out
  bool residual = false;  // x is a sum with one
  std::vector<FeatureSums> sums;

  std::int64_t count() const noexcept { return static_cast<std::int64_t>(sums.size()); }
  Feature feature(std::int64_t number) const noexcept;
  Shape index(std::int64_t number) const { return index_of(number, extents(x.shape, axes)); }

  // The full index of the first element that is not finite, in the order of rows.
  std::optional<Shape> first_non_finite_index() const;

  // The numbers of the features that stand out, those that do most first.
  std::vector<std::int64_t> top(const Top& top) const;
};

// What is said of all features together.
struct FeatureSummary {
  std::array<ColumnSummary, kFeatureFigures.size()> figures;
  std::int64_t dead = 0;  // features of which every finite element is 0
  std::vector<std::int64_t> first_dead;
  std::int64_t non_finite = 0;          // elements
  std::optional<std::int64_t> largest;  // the feature of the greatest |x|

  FeatureSummary() = default;
  explicit FeatureSummary(const FeatureStats& stats);

  const ColumnSummary& absmax() const { return figures[2]; }
  // The greatest |x| beside the median of all features'; infinite where that is 0, and NaN where all are.
  double ratio() const { return absmax().max > 0 ? absmax().max / absmax().median : kNan; }
};

// Which features stand out in several tensors.
class SharedFeatures {
 public:
  struct Feature {
    Shape index;
    std::vector<std::string> tensors;
  };

  explicit SharedFeatures(const Top& top) : top_(top) {}

  void add(const std::string& tensor, const FeatureStats& stats);

  const Top& top() const noexcept { return top_; }  // of each tensor
  std::int64_t tensors() const noexcept { return tensors_; }

  // Those of two tensors or more; those of the most come first.
  std::vector<Feature> found() const;

 private:
  Top top_;
  std::int64_t tensors_ = 0;
  // By the shape of features, which tells a width from another, and their number.
  std::map<std::pair<Shape, std::int64_t>, std::vector<std::string>> by_feature_;
};

// The largest |x| of neighboring features.
Bands absmax_bands(const FeatureStats& stats, std::int64_t most);

}  // namespace lnorm
