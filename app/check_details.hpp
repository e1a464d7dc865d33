#pragma once

#include <memory>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "lnorm/diagnosis/check.hpp"
#include "lnorm/kernel/affine.hpp"
#include "lnorm/layout/mask.hpp"
#include "lnorm/pipeline/compare.hpp"
#include "lnorm/pipeline/plan.hpp"
#include "lnorm/pipeline/run.hpp"
#include "page_output.hpp"

namespace lnorm::app {

// Whether an option asks for what compare tells of OUTPUT and the exact result.
bool wants_details(const Arguments& arguments);

// That. x is read once more, and the exact result goes by way of a temporary file. Both sources have random access.
Comparison compare_with_exact(const Arguments& arguments, TensorSource& x, TensorSource& actual,
                              const Plan& plan, const Affine& affine,
                              const std::shared_ptr<const Mask>& mask, const RunOptions& options);

// The page of checks: of many tensors those that are off by the most.
class CheckPage {
 public:
  // After this the check has no error map, which would take memory.
  void add(const std::string& title, Check& check);
  std::vector<page::Section> take();

 private:
  OutlierSections verdicts_{kMaxSections};
  OutlierSections errors_{kMaxSections};
  std::size_t number_ = 0;
};

}  // namespace lnorm::app
