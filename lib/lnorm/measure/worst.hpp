#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "lnorm/core/number.hpp"
#include "lnorm/measure/ulp.hpp"

namespace lnorm {

struct ElementPair {
  std::int64_t position = 0;  // in C order
  Number actual;
  Number expected;
};

// How far two finite elements are apart.
struct Distances {
  Ulps ulps;
  double absolute = 0;  // |actual - expected|
  double relative = 0;  // that / |expected|; infinity where expected alone is 0
  double row_ulps = 0;  // in ulp of the greatest |expected| of the row, if rows are known
};

enum class WorstBy { ulp, abs, rel, row_ulp };
std::string_view name(WorstBy by);

struct WorstElement {
  ElementPair pair;
  std::optional<Distances> distances;  // nothing if not both are finite
  double row_max = 0;  // greatest_finite of |expected| in its row, if rows are known
};

// The worst of many elements by one measure, in memory for so many. First come pairs that are not finite
// and do not pass, then the others by their distance, of equals the first; what has no distance does not
// come at all. So they are the same however the elements are divided into lists that are merged.
class WorstElements {
 public:
  // The row of a position in C order.
  using RowOf = std::function<std::int64_t(std::int64_t)>;

  // row_of: where only the worst element of every row counts.
  explicit WorstElements(std::size_t most = 0, WorstBy by = WorstBy::ulp, RowOf row_of = {});

  WorstBy by() const noexcept { return by_; }
  const std::vector<WorstElement>& elements() const noexcept {
    return elements_;
  }  // the worst first

  // An element with a distance that exceeds none of these is not among the worst.
  struct Limits {
    std::uint64_t ulp_rank;
    double absolute;
    double relative;
    double row_ulps;
  };
  Limits limits() const noexcept;

  void add(const WorstElement& element);
  void merge(const WorstElements& other);

  // How bad the last of them is, if there are as many as may be; otherwise 0.
  std::uint64_t floor() const noexcept;

  // Drops the elements, and takes only those from now on that are worse than such a floor.
  void clear(std::uint64_t floor);

  // What reads or merges them does not know the rows of positions.
  template <class Archive>
  void serialize(Archive& archive) {
    archive(most_, by_, elements_);
  }

 private:
  std::uint64_t badness(const WorstElement& element) const noexcept;
  bool is_worse(const WorstElement& a, const WorstElement& b) const noexcept;

  std::size_t most_;
  WorstBy by_;
  RowOf row_of_;
  std::uint64_t floor_ = 0;
  std::vector<WorstElement> elements_;
};

}  // namespace lnorm
