#include "lnorm/kernel/parameter_gradients.hpp"

#include <hwy/cache_control.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <optional>
#include <utility>

#include "lnorm/core/non_finite.hpp"
#include "lnorm/core/serialize.hpp"
#include "lnorm/kernel/bracket.hpp"
#include "lnorm/kernel/dyadic.hpp"
#include "lnorm/kernel/row_gradient.hpp"

namespace lnorm {

namespace {

// Terms of dweight are truncated so many bits below the largest one.
constexpr std::int64_t kTermBits = 160;

// The exact sum of a parameter's terms, as far as they are finite.
struct ExactSum {
  Dyadic sum;
  bool is_finite = true;

  void add(const ExactSum& other) {
    is_finite = is_finite && other.is_finite;
    if (is_finite) sum = sum + other.sum;
  }

  template <class Archive>
  void serialize(Archive& archive) {
    archive(sum, is_finite);
  }
};

// How large the terms are.
struct LargestTerm {
  std::optional<std::int64_t> exponent;
  bool is_finite = true;

  void add(const LargestTerm& other) {
    is_finite = is_finite && other.is_finite;
    if (other.exponent) exponent = std::max(exponent.value_or(*other.exponent), *other.exponent);
  }
};

// Columns that a parameter serves.
struct Parameter {
  std::int64_t first;
  std::int64_t columns;
};

// What is known of a parameter's sum, and the sizes of what it is the sum of.
struct Total {
  ColumnGradients::Sum sum;
  double sizes = 0;

  void add(const Total& other) {
    sum.value = sum.value + other.sum.value;
    sum.error += other.sum.error;
    sum.is_undecided = sum.is_undecided || other.sum.is_undecided;
    sum.is_nan = sum.is_nan || other.sum.is_nan;
    sizes += other.sizes;
  }
};

class Gatherer {
 public:
  Gatherer(const GradientSetting& setting, ColumnGradients& gathered,
           const RequestedColumns& requested, const RowReplay& again)
      : setting_(setting), requested_(requested), again_(again), first_(gathered.first()) {
    setting_.wants_dx = false;
    if (!again.distributes_columns) bring_together(gathered);
    const std::int64_t count = requested.uniform ? 1 : gathered.size();
    results_.dweight.resize(static_cast<std::size_t>(requested.dweight ? count : 0));
    results_.dbias.resize(static_cast<std::size_t>(requested.dbias ? count : 0));
    undecided_dweight_ = decide(gathered, &ColumnGradients::dweight, results_.dweight);
    undecided_dbias_ = decide(gathered, &ColumnGradients::dbias, results_.dbias);
  }

  // Nothing was gathered.
  Gatherer(const GradientSetting& setting, const AffineLayout& layout,
           const RequestedColumns& requested, const RowReplay& again)
      : setting_(setting), requested_(requested), again_(again), layout_(&layout), first_(0) {
    setting_.wants_dx = false;
    const std::int64_t count = element_count(layout.shape);
    results_.dweight.resize(static_cast<std::size_t>(requested.dweight ? count : 0));
    results_.dbias.resize(static_cast<std::size_t>(requested.dbias ? count : 0));
    std::vector<Parameter> all;
    for (std::int64_t number = 0; number < count; ++number) all.push_back({number, 1});
    const auto gathered = in_double_doubles(all);
    undecided_dweight_ = decide(*gathered, &ColumnGradients::dweight, results_.dweight);
    undecided_dbias_ = decide(*gathered, &ColumnGradients::dbias, results_.dbias);
  }

  ParameterGradients gather(bool has_double_rows) {
    if (has_double_rows && !undecided_dweight_.empty()) gather_in_double_doubles();
    if (has_double_rows && !undecided_dbias_.empty()) gather_dbias();
    if (!undecided_dbias_.empty()) find_exact_dbias();
    if (!undecided_dweight_.empty()) find_exact_dweight();
    return std::move(results_);
  }

 private:
  using SumOfColumn = ColumnGradients::Sum (ColumnGradients::*)(std::int64_t) const;

  // Fills in what the sums decide, and returns the others.
  std::vector<Parameter> decide(const ColumnGradients& gathered, SumOfColumn sum_of,
                                std::vector<double>& results) const {
    std::vector<Parameter> undecided;
    for (std::size_t i = 0; i < results.size(); ++i) {
      const Parameter p = requested_.uniform ? Parameter{0, setting_.row_length}
                                             : Parameter{first_ + static_cast<std::int64_t>(i), 1};
      decide(total(gathered, sum_of, p), p, results[i], undecided);
    }
    if (again_.distributes_columns && !requested_.uniform) concatenate(undecided);
    return undecided;
  }

  Total total(const ColumnGradients& gathered, SumOfColumn sum_of, const Parameter& p) const {
    Total total;
    const std::int64_t end = std::min(p.first + p.columns, first_ + gathered.size());
    for (std::int64_t c = std::max(p.first, first_); c < end; ++c) {
      const ColumnGradients::Sum sum = (gathered.*sum_of)(c);
      total.add({sum, std::fabs(sum.value.high)});
    }
    if (!again_.distributes_columns || !requested_.uniform) return total;
    std::vector<Total> totals{total};
    bring_together(totals);
    return totals.front();
  }

  void decide(const Total& total, const Parameter& p, double& result,
              std::vector<Parameter>& undecided) const {
    constexpr double kSumError = 3 * kUnit2;
    const ColumnGradients::Sum& sum = total.sum;
    if (sum.is_nan) {
      result = kNan;
      return;
    }
    const double error = sum.error + static_cast<double>(p.columns - 1) * kSumError * total.sizes;
    const bool has_bounds = !sum.is_undecided && std::isfinite(sum.value.high) &&
                            std::isfinite(sum.value.low) && std::isfinite(error);
    Bracket between;
    if (has_bounds && error == 0) {
      between.least = between.most = rounded(sum.value, requested_.dtype);
    } else if (has_bounds) {
      between = bracket(sum.value, error, requested_.dtype);
    }
    if (between.is_decided()) {
      result = between.least;
    } else {
      undecided.push_back(p);
    }
  }

  // What all processes have found, where append(bytes) adds what another has.
  template <class Found, class Append>
  void bring_together(Found& found, Append append) const {
    if (!again_.all_reduce) return;
    again_.all_reduce([&] { return serialize(found); }, append,
                      [&](const std::string& bytes) { deserialize(bytes, found); });
  }

  void bring_together(ColumnGradients& gathered) const {
    bring_together(gathered, [&](const std::string& bytes) {
      ColumnGradients others(gathered.size(), gathered.first());
      deserialize(bytes, others);
      gathered.merge(others);
    });
  }

  // The others have found as many.
  template <class Found>
  void bring_together(std::vector<Found>& found) const {
    bring_together(found, [&](const std::string& bytes) {
      std::vector<Found> others;
      deserialize(bytes, others);
      for (std::size_t i = 0; i < found.size(); ++i) found[i].add(others[i]);
    });
  }

  // Appends what the others have, in the order of the processes.
  void concatenate(std::vector<Parameter>& parameters) const {
    bring_together(parameters, [&](const std::string& bytes) {
      std::vector<Parameter> others;
      deserialize(bytes, others);
      parameters.insert(parameters.end(), others.begin(), others.end());
    });
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

  // Calls see(i, column, x, dy) for the elements of a part that belong to some parameters, of which the i-th has the column. x() and
  // dy() are the numbers. They are functions, since an element that nobody needs is not worth a cache miss.
  template <class See>
  void for_each_element_of(const std::vector<Parameter>& parameters, const GradientPart& part,
                           See see) const {
    if (layout_ != nullptr) return for_each_element_by_layout(parameters, part, see);
    const std::int64_t end = part.offset + part.x.row_length;
    auto p = std::partition_point(parameters.begin(), parameters.end(), [&](const Parameter& each) {
      return each.first + each.columns <= part.offset;
    });
    for (; p != parameters.end() && p->first < end; ++p) {
      const auto i = static_cast<std::size_t>(p - parameters.begin());
      const std::int64_t last = std::min(end, p->first + p->columns);
      for (std::int64_t c = std::max(part.offset, p->first); c < last; ++c) {
        // Rows most often follow each other. Each element is a cache miss, so those of later rows are asked for now.
        constexpr std::int64_t kRowsAhead = 8;
        hwy::Prefetch(
            row_of(part_of(part.dy, c - part.offset, part.x.row_length), kRowsAhead).data);
        see(
            i, c, [&] { return element_of(part.x, c - part.offset); },
            [&] { return element_of(part.dy, c - part.offset); });
      }
    }
  }

  // Of these each is one number.
  template <class See>
  void for_each_element_by_layout(const std::vector<Parameter>& parameters,
                                  const GradientPart& part, See see) const {
    const std::int64_t first = layout_->first(part.x.first_row);
    for_each_element(part, [&](std::int64_t i, Number x, Number dy) {
      const std::int64_t number = layout_->number(first, part.offset + i);
      const auto p =
          std::partition_point(parameters.begin(), parameters.end(),
                               [&](const Parameter& each) { return each.first < number; });
      if (p == parameters.end() || p->first != number) return;
      see(
          static_cast<std::size_t>(p - parameters.begin()), number, [x] { return x; },
          [dy] { return dy; });
    });
  }

  // Every row in double-doubles, for some columns alone.
  std::unique_ptr<ColumnGradients> in_double_doubles(const std::vector<Parameter>& parameters) {
    const std::int64_t columns =
        layout_ == nullptr ? setting_.row_length : element_count(layout_->shape);
    return gather_columns(columns, [&](const auto& slots) {
      for_each_part([&](std::size_t s, const RowGradient& row, const GradientPart& part) {
        if (layout_ == nullptr) slots[s]->in_double_doubles(part.offset);
        for_each_element_of(parameters, part,
                            [&](std::size_t, std::int64_t column, const auto& x, const auto& dy) {
                              // Each is an addition of its own.
                              if (layout_ != nullptr) slots[s]->in_double_doubles(column);
                              row.add_term(column, x(), dy(), *slots[s]);
                            });
      });
    });
  }

  // What fill(slots) adds, of all threads and processes.
  template <class Fill>
  std::unique_ptr<ColumnGradients> gather_columns(std::int64_t columns, Fill fill) const {
    std::vector<std::unique_ptr<ColumnGradients>> slots(again_.slots);
    for (auto& slot : slots) slot = std::make_unique<ColumnGradients>(columns);
    fill(slots);
    for (std::size_t s = 1; s < slots.size(); ++s) slots[0]->merge(*slots[s]);
    bring_together(*slots[0]);
    return std::move(slots[0]);
  }

  // Another time, for the undecided ones.
  void gather_in_double_doubles() {
    const auto gathered = in_double_doubles(undecided_dweight_);
    decide_again(*gathered, &ColumnGradients::dweight, undecided_dweight_, results_.dweight);
  }

  // The same of dbias, whose sums most often lose nothing in double-doubles: so ties are decided, which are many where dy has
  // fewer digits than dbias.
  void gather_dbias() {
    const auto gathered = gather_columns(setting_.row_length, [&](const auto& slots) {
      again_.for_each_row(
          [&](std::size_t s, const ReadGradientRow& read_row, const SavedStatistics*) {
            read_row([&](const GradientPart& part) {
              slots[s]->in_double_doubles(part.offset);
              for_each_element_of(undecided_dbias_, part,
                                  [&](std::size_t, std::int64_t column, const auto&,
                                      const auto& dy) { slots[s]->add_dbias(column, dy()); });
            });
          });
    });
    decide_again(*gathered, &ColumnGradients::dbias, undecided_dbias_, results_.dbias);
  }

  // Keeps those that are still undecided.
  void decide_again(const ColumnGradients& gathered, SumOfColumn sum_of,
                    std::vector<Parameter>& parameters, std::vector<double>& results) const {
    std::vector<Parameter> undecided;
    for (const Parameter& p : parameters) {
      decide(total(gathered, sum_of, p), p, results[index(p)], undecided);
    }
    parameters = std::move(undecided);
  }

  // Where a parameter is in the results: past their end if it is another process's.
  std::size_t index(const Parameter& p) const {
    return requested_.uniform ? 0 : static_cast<std::size_t>(p.first - first_);
  }

  void round(const std::vector<Parameter>& parameters, const std::vector<ExactSum>& sums,
             std::vector<double>& results) const {
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const std::size_t at = index(parameters[i]);
      if (at >= results.size()) continue;
      results[at] = sums[i].is_finite ? rounded(sums[i].sum, requested_.dtype) : kNan;
    }
  }

  void find_exact_dbias() {
    std::vector<ExactSum> sums(undecided_dbias_.size());
    std::mutex mutex;
    again_.for_each_row([&](std::size_t, const ReadGradientRow& read_row, const SavedStatistics*) {
      read_row([&](const GradientPart& part) {
        const std::lock_guard lock(mutex);
        for_each_element_of(undecided_dbias_, part,
                            [&](std::size_t i, std::int64_t, const auto&, const auto& dy) {
                              const Number number = dy();
                              const bool is_finite = std::isfinite(number.high);
                              sums[i].add({is_finite ? Dyadic(number) : Dyadic(), is_finite});
                            });
      });
    });
    bring_together(sums);
    round(undecided_dbias_, sums, results_.dbias);
  }

  std::vector<LargestTerm> find_largest_terms() const {
    std::vector<LargestTerm> largest(undecided_dweight_.size());
    std::mutex mutex;
    for_each_part([&](std::size_t, const RowGradient& row, const GradientPart& part) {
      for_each_element_of(undecided_dweight_, part,
                          [&](std::size_t i, std::int64_t, const auto& x, const auto& dy) {
                            const Number of_dy = dy();
                            const bool is_finite = row.has_xhat() && std::isfinite(of_dy.high);
                            const auto exponent =
                                is_finite ? row.exact().term_exponent(x(), of_dy) : std::nullopt;
                            const std::lock_guard lock(mutex);
                            largest[i].add({exponent, is_finite});
                          });
    });
    bring_together(largest);
    return largest;
  }

  void find_exact_dweight() {
    const std::vector<LargestTerm> largest = find_largest_terms();
    std::vector<ExactSum> sums(largest.size());
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i].is_finite = largest[i].is_finite;
    std::mutex mutex;
    for_each_part([&](std::size_t, const RowGradient& row, const GradientPart& part) {
      for_each_element_of(undecided_dweight_, part,
                          [&](std::size_t i, std::int64_t, const auto& x, const auto& dy) {
                            if (!largest[i].is_finite || !largest[i].exponent) return;
                            const std::int64_t unit = *largest[i].exponent - kTermBits;
                            const Dyadic term(row.exact().truncated_term(x(), dy(), unit), unit);
                            const std::lock_guard lock(mutex);
                            sums[i].sum = sums[i].sum + term;
                          });
    });
    bring_together(sums);
    round(undecided_dweight_, sums, results_.dweight);
  }

  GradientSetting setting_;
  RequestedColumns requested_;
  const RowReplay& again_;
  const AffineLayout* layout_ = nullptr;  // null: a column is an element of every row
  std::int64_t first_;                    // column that was gathered
  ParameterGradients results_;
  std::vector<Parameter> undecided_dweight_;
  std::vector<Parameter> undecided_dbias_;
};

}  // namespace

ParameterGradients parameter_gradients(const GradientSetting& setting, ColumnGradients& gathered,
                                       const RequestedColumns& requested, const RowReplay& again) {
  return Gatherer(setting, gathered, requested, again).gather(gathered.has_double_rows());
}

ParameterGradients shared_gradients(const GradientSetting& setting, const AffineLayout& layout,
                                    const RequestedColumns& requested, const RowReplay& again) {
  const AffineTerm none;
  const GradientSetting of_x{setting.backend,    setting.x, setting.dy,      setting.dx,
                             setting.row_length, none,      setting.formula, setting.in_parts};
  ParameterGradients found = Gatherer(of_x, layout, requested, again).gather(false);
  return {in_tensor_order(std::move(found.dweight), layout),
          in_tensor_order(std::move(found.dbias), layout)};
}

}  // namespace lnorm
