#include "lnorm/kernel/parameter_gradients.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>

#include "lnorm/kernel/bracket.hpp"
#include "lnorm/kernel/dyadic.hpp"
#include "lnorm/kernel/row_gradient.hpp"

namespace lnorm {

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Terms of dweight are truncated so many bits below the largest one.
constexpr std::int64_t kTermBits = 160;

// What integers find out about one parameter.
struct ExactParameter {
  std::optional<std::int64_t> exponent;  // of the largest term
  Integer dweight;                       // in units of that, 160 bits below
  Dyadic dbias;
  bool has_dweight = true;  // if not, a term is not finite
  bool has_dbias = true;
};

// A parameter, and the columns that it serves.
struct Parameter {
  std::int64_t index;
  std::int64_t first;
  std::int64_t columns;
};

class Gatherer {
 public:
  Gatherer(const GradientSetting& setting, const ColumnGradients& gathered,
           const ColumnWishes& wishes, const RowsAgain& again)
      : setting_(setting), wishes_(wishes), again_(again), columns_(gathered.size()) {
    setting_.wants_dx = false;
    const std::int64_t count = wishes.uniform ? 1 : columns_;
    results_.dweight.resize(static_cast<std::size_t>(wishes.dweight ? count : 0));
    results_.dbias.resize(static_cast<std::size_t>(wishes.dbias ? count : 0));
    open_dweight_ = decide(gathered, &ColumnGradients::dweight, results_.dweight);
    open_dbias_ = decide(gathered, &ColumnGradients::dbias, results_.dbias);
  }

  ParameterGradients gather(bool has_narrow_rows) {
    if (has_narrow_rows && !open_dweight_.empty()) gather_wide();
    if (open_dweight_.empty() && open_dbias_.empty()) return std::move(results_);
    exact_.resize(static_cast<std::size_t>(wishes_.uniform ? 1 : columns_));
    find_exact_dbias();
    if (!open_dweight_.empty()) {
      find_exponents();
      find_exact_dweight();
    }
    return std::move(results_);
  }

 private:
  using SumOfColumn = ColumnGradients::Sum (ColumnGradients::*)(std::int64_t) const;

  Parameter parameter(std::int64_t index) const {
    return wishes_.uniform ? Parameter{0, 0, columns_} : Parameter{index, index, 1};
  }

  // Fills in what the sums decide, and returns the others.
  std::vector<Parameter> decide(const ColumnGradients& gathered, SumOfColumn sum_of,
                                std::vector<double>& results) const {
    std::vector<Parameter> open;
    for (std::size_t i = 0; i < results.size(); ++i) {
      const Parameter p = parameter(static_cast<std::int64_t>(i));
      decide(gathered, sum_of, p, results[i], open);
    }
    return open;
  }

  void decide(const ColumnGradients& gathered, SumOfColumn sum_of, const Parameter& p,
              double& result, std::vector<Parameter>& open) const {
    constexpr double kSumError = 3 * kUnit * kUnit;
    ColumnGradients::Sum total = (gathered.*sum_of)(p.first);
    double sizes = std::fabs(total.value.high);
    for (std::int64_t c = p.first + 1; c < p.first + p.columns; ++c) {
      const ColumnGradients::Sum sum = (gathered.*sum_of)(c);
      total.value = total.value + sum.value;
      total.error += sum.error;
      total.is_open = total.is_open || sum.is_open;
      total.is_nan = total.is_nan || sum.is_nan;
      sizes += std::fabs(sum.value.high);
    }
    total.error += static_cast<double>(p.columns - 1) * kSumError * sizes;
    if (total.is_nan) {
      result = kNan;
      return;
    }
    const bool has_bounds = !total.is_open && std::isfinite(total.value.high) &&
                            std::isfinite(total.value.low) && std::isfinite(total.error);
    Bracket between;
    if (has_bounds && total.error == 0) {
      between.least = between.most = rounded(total.value, wishes_.dtype);
    } else if (has_bounds) {
      between = bracket(total.value, total.error, wishes_.dtype);
    }
    if (between.is_decided()) {
      result = between.least;
    } else {
      open.push_back(p);
    }
  }

  // Calls see(slot, row, part) for all parts of all rows.
  template <class See>
  void for_each_part(See see) const {
    again_.for_each_row(
        [&](std::size_t slot, const ReadGradientRow& read_row, const SavedStatistics* saved) {
          std::optional<RowSample> sample;
          read_row([&](const GradientPart& part) {
            if (!sample) sample = sample_of(part.x);
          });
          RowGradient row(setting_, *sample, saved, read_row);
          row.sum_up();
          read_row([&](const GradientPart& part) { see(slot, row, part); });
        });
  }

  // Calls see(parameter, x, dy) for the elements of a part that belong to some parameters.
  template <class See>
  static void for_each_element_of(const std::vector<Parameter>& parameters,
                                  const GradientPart& part, See see) {
    const std::int64_t end = part.offset + part.x.row_length;
    auto p = std::partition_point(parameters.begin(), parameters.end(), [&](const Parameter& each) {
      return each.first + each.columns <= part.offset;
    });
    for (; p != parameters.end() && p->first < end; ++p) {
      const std::int64_t last = std::min(end, p->first + p->columns);
      for (std::int64_t c = std::max(part.offset, p->first); c < last; ++c) {
        see(*p, c, element_of(part.x, c - part.offset), element_of(part.dy, c - part.offset));
      }
    }
  }

  // Another time, with every row in double-doubles, for the open columns alone.
  void gather_wide() {
    std::vector<std::unique_ptr<ColumnGradients>> slots(again_.slots);
    for (auto& slot : slots) slot = std::make_unique<ColumnGradients>(columns_);
    for_each_part([&](std::size_t s, const RowGradient& row, const GradientPart& part) {
      slots[s]->wide(part.offset);
      for_each_element_of(open_dweight_, part,
                          [&](const Parameter&, std::int64_t column, Number x, Number dy) {
                            row.add_term(column, x, dy, *slots[s]);
                          });
    });
    for (std::size_t s = 1; s < slots.size(); ++s) slots[0]->merge(*slots[s]);
    std::vector<Parameter> open;
    for (const Parameter& p : open_dweight_) {
      decide(*slots[0], &ColumnGradients::dweight, p,
             results_.dweight[static_cast<std::size_t>(p.index)], open);
    }
    open_dweight_ = std::move(open);
  }

  ExactParameter& exact(const Parameter& p) { return exact_[static_cast<std::size_t>(p.index)]; }

  void find_exact_dbias() {
    if (open_dbias_.empty()) return;
    std::mutex mutex;
    again_.for_each_row([&](std::size_t, const ReadGradientRow& read_row, const SavedStatistics*) {
      read_row([&](const GradientPart& part) {
        const std::lock_guard lock(mutex);
        for_each_element_of(open_dbias_, part,
                            [&](const Parameter& p, std::int64_t, Number, Number dy) {
                              ExactParameter& to = exact(p);
                              to.has_dbias = to.has_dbias && std::isfinite(dy.high);
                              if (to.has_dbias) to.dbias = to.dbias + Dyadic(dy);
                            });
      });
    });
    for (const Parameter& p : open_dbias_) {
      const ExactParameter& from = exact(p);
      results_.dbias[static_cast<std::size_t>(p.index)] =
          from.has_dbias ? rounded(from.dbias, wishes_.dtype) : kNan;
    }
  }

  void find_exponents() {
    std::mutex mutex;
    for_each_part([&](std::size_t, const RowGradient& row, const GradientPart& part) {
      for_each_element_of(
          open_dweight_, part, [&](const Parameter& p, std::int64_t, Number x, Number dy) {
            const bool is_number = row.has_xhat() && std::isfinite(dy.high);
            const auto exponent = is_number ? row.exact().term_exponent(x, dy) : std::nullopt;
            const std::lock_guard lock(mutex);
            ExactParameter& to = exact(p);
            to.has_dweight = to.has_dweight && is_number;
            if (exponent) to.exponent = std::max(to.exponent.value_or(*exponent), *exponent);
          });
    });
  }

  void find_exact_dweight() {
    std::mutex mutex;
    for_each_part([&](std::size_t, const RowGradient& row, const GradientPart& part) {
      for_each_element_of(
          open_dweight_, part, [&](const Parameter& p, std::int64_t, Number x, Number dy) {
            ExactParameter& to = exact(p);
            if (!to.has_dweight || !to.exponent) return;
            const Integer term = row.exact().truncated_term(x, dy, *to.exponent - kTermBits);
            const std::lock_guard lock(mutex);
            to.dweight += term;
          });
    });
    for (const Parameter& p : open_dweight_) {
      const ExactParameter& from = exact(p);
      const Dyadic sum(from.dweight, from.exponent.value_or(0) - kTermBits);
      results_.dweight[static_cast<std::size_t>(p.index)] =
          from.has_dweight ? rounded(sum, wishes_.dtype) : kNan;
    }
  }

  GradientSetting setting_;
  ColumnWishes wishes_;
  const RowsAgain& again_;
  std::int64_t columns_;
  ParameterGradients results_;
  std::vector<Parameter> open_dweight_;
  std::vector<Parameter> open_dbias_;
  std::vector<ExactParameter> exact_;
};

}  // namespace

ParameterGradients parameter_gradients(const GradientSetting& setting,
                                       const ColumnGradients& gathered, const ColumnWishes& wishes,
                                       const RowsAgain& again) {
  return Gatherer(setting, gathered, wishes, again).gather(gathered.has_narrow_rows());
}

}  // namespace lnorm
