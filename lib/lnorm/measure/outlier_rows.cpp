#include "lnorm/measure/outlier_rows.hpp"

#include <algorithm>

namespace lnorm {

OutlierRows::OutlierRows(std::size_t each)
    : lists_(kOutlierRows.size(), TopList<OutlierRow>(each)) {}

OutlierRows::Scores OutlierRows::scores(const StatsRow& found) {
  Scores scores;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const double score = score_of_row(kOutlierRows[i], found.input);
    scores[i] = lnorm::stands_out(kOutlierRows[i], score) ? score : kNan;
  }
  return scores;
}

void OutlierRows::add(const OutlierRow& row) {
  const Scores scores = OutlierRows::scores(row.found);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (!std::isnan(scores[i])) lists_[i].add(scores[i], row);
  }
}

OutlierRows::Scores OutlierRows::least() const {
  Scores result;
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = lists_[i].least();
  return result;
}

std::vector<OutlierRow> OutlierRows::once_each() const {
  std::vector<OutlierRow> rows;
  for (const TopList<OutlierRow>& list : lists_) {
    for (const OutlierRow& row : list.items()) {
      const bool is_new = std::none_of(
          rows.begin(), rows.end(), [&](const OutlierRow& other) { return other.row == row.row; });
      if (is_new) rows.push_back(row);
    }
  }
  return rows;
}

}  // namespace lnorm
