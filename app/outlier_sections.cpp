#include "outlier_sections.hpp"

#include <algorithm>
#include <utility>

namespace lnorm::app {

void OutlierSections::add(std::size_t number, std::vector<double> rank, page::Section section) {
  kept_.push_back({number, std::move(rank), std::move(section)});
  if (kept_.size() <= most_) return;
  kept_.erase(std::min_element(kept_.begin(), kept_.end(), [](const Kept& a, const Kept& b) {
    return a.rank != b.rank ? a.rank < b.rank : a.number > b.number;
  }));
}

std::vector<std::string> OutlierSections::ids(std::size_t count) const {
  std::vector<std::string> result(count);
  for (const Kept& kept : kept_) result[kept.number] = kept.section.id();
  return result;
}

std::vector<page::Section> OutlierSections::take() {
  std::sort(kept_.begin(), kept_.end(),
            [](const Kept& a, const Kept& b) { return a.number < b.number; });
  std::vector<page::Section> result;
  for (Kept& kept : kept_) result.push_back(std::move(kept.section));
  kept_.clear();
  return result;
}

}  // namespace lnorm::app
