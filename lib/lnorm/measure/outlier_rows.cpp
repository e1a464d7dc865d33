#include "lnorm/measure/outlier_rows.hpp"

#include <algorithm>

namespace lnorm {

std::optional<double> score(Outlier kind, std::int64_t row, const StatsRow& found) {
  const Moments& x = found.input;
  const auto if_number = [](double value) {
    return std::isnan(value) ? std::nullopt : std::optional(value);
  };
  switch (kind) {
    case Outlier::first:
      return row == 0 ? std::optional(0.0) : std::nullopt;
    case Outlier::largest_mean:
      return if_number(score_of_row(TopBy::mean, x));
    case Outlier::largest_variance:
      return if_number(score_of_row(TopBy::variance, x));
    case Outlier::smallest_variance:
      return if_number(score_of_row(TopBy::variance_min, x));
    case Outlier::non_finite:
      break;
  }
  // What the output alone has comes after what the input has.
  if (x.non_finite > 0) return static_cast<double>(x.non_finite);
  if (found.output.non_finite > 0) return 0.0;
  return {};
}

OutlierRows::OutlierRows(std::size_t each, std::int64_t rows)
    : each_(each),
      of_few_(std::min(each, static_cast<std::size_t>(std::max<std::int64_t>(1, rows / 4)))) {}

OutlierRows OutlierRows::empty_copy() const {
  OutlierRows copy;
  copy.each_ = each_;
  copy.of_few_ = of_few_;
  return copy;
}

std::size_t OutlierRows::most(Outlier kind) const noexcept {
  return kind == Outlier::first ? 1 : kind == Outlier::non_finite ? each_ : of_few_;
}

bool OutlierRows::takes(Outlier kind, double score) const {
  const std::vector<OutlierRow>& list = of(kind);
  if (list.size() < most(kind)) return true;
  return score > *lnorm::score(kind, list.back().row, list.back().found);
}

void OutlierRows::add(const OutlierRow& row) {
  for (const Outlier kind : kOutlierRows) {
    const auto here = score(kind, row.row, row.found);
    if (!here || !takes(kind, *here)) continue;
    std::vector<OutlierRow>& list = lists_[index(kind)];
    const auto place = std::find_if(list.begin(), list.end(), [&](const OutlierRow& other) {
      return *score(kind, other.row, other.found) < *here;
    });
    list.insert(place, row);
    if (list.size() > most(kind)) list.pop_back();
  }
}

std::vector<OutlierRow> OutlierRows::once_each() const {
  std::vector<OutlierRow> rows;
  for (const std::vector<OutlierRow>& list : lists_) {
    for (const OutlierRow& row : list) {
      const bool is_new = std::none_of(
          rows.begin(), rows.end(), [&](const OutlierRow& other) { return other.row == row.row; });
      if (is_new) rows.push_back(row);
    }
  }
  return rows;
}

}  // namespace lnorm
