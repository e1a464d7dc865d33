#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lnorm/report/page/page.hpp"

namespace lnorm::app {

// The sections of a page's tensors: of many those that stand out most.
class OutlierSections {
 public:
  explicit OutlierSections(std::size_t most) : most_(most) {}

  // number: of the tensor, in the order of the page. rank: how much it stands out, by its first number, of equals by the
  // next one.
  void add(std::size_t number, std::vector<double> rank, page::Section section);

  // The ids of the sections of tensors 0 to count; empty for those that have none.
  std::vector<std::string> ids(std::size_t count) const;

  // In the order of the page.
  std::vector<page::Section> take();

 private:
  struct Kept {
    std::size_t number;
    std::vector<double> rank;
    page::Section section;
  };
  std::size_t most_;
  std::vector<Kept> kept_;
};

// How many have a section unless all are asked for.
inline constexpr std::size_t kMaxSections = 50;

}  // namespace lnorm::app
