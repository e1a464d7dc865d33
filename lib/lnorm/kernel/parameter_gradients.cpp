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
  // layout: null where a column is an element of every row. first: of the columns that were gathered.
  Gatherer(const GradientSetting& setting, const AffineLayout* layout, std::int64_t first,
           const RequestedColumns& requested, const RowReplay& again)
      : setting_(setting), requested_(requested), again_(again), layout_(layout), first_(first) {
    setting_.wants_dx = false;
  }

  ParameterGradients gather(ColumnGradients& gathered) {
    if (!again_.distributes_columns) bring_together(gathered);
    return find(gathered);
  }

  // Nothing was gathered.
  ParameterGradients gather_all() {
    std::vector<Parameter> all;
    const std::int64_t count = element_count(layout_->shape);
    for (std::int64_t number = 0; number < count; ++number) all.push_back({number, 1});
    return find(*in_double_doubles(all));
  }

 private:
  // dweight or dbias.
  struct Gradient {
    ColumnGradients::Sum (ColumnGradients::*sum_of)(std::int64_t) const;
    std::vector<double> results = {};
    std::vector<Parameter> undecided = {};
  };

  ParameterGradients find(const ColumnGradients& gathered) {
    if (requested_.dweight) decide(gathered, dweight_);
    if (requested_.dbias) decide(gathered, dbias_);
    if (gathered.has_double_rows()) {
      if (!dweight_.undecided.empty()) {
        decide_again(*in_double_doubles(dweight_.undecided), dweight_);
      }
      if (!dbias_.undecided.empty()) decide_again(*dbias_in_double_doubles(), dbias_);
    }
    if (!dbias_.undecided.empty()) find_exact_dbias();
    if (!dweight_.undecided.empty()) find_exact_dweight();
    return {std::move(dweight_.results), std::move(dbias_.results)};
  }

  // Fills in what the sums decide, and finds the others.
  void decide(const ColumnGradients& gathered, Gradient& gradient) const {
    gradient.results.resize(requested_.uniform ? 1 : static_cast<std::size_t>(gathered.size()));
    for (std::size_t i = 0; i < gradient.results.size(); ++i) {
      const Parameter p = requested_.uniform ? Parameter{0, setting_.row_length}
                                             : Parameter{first_ + static_cast<std::int64_t>(i), 1};
      decide(gathered, p, gradient);
    }
    if (again_.distributes_columns && !requested_.uniform) concatenate(gradient.undecided);
  }

  Total total(const ColumnGradients& gathered, const Parameter& p, const Gradient& gradient) const {
    Total total;
    const std::int64_t end = std::min(p.first + p.columns, first_ + gathered.size());
    for (std::int64_t c = std::max(p.first, first_); c < end; ++c) {
      const ColumnGradients::Sum sum = (gathered.*gradient.sum_of)(c);
      total.add({sum, std::fabs(sum.value.high)});
    }
    if (!again_.distributes_columns || !requested_.uniform) return total;
    std::vector<Total> totals{total};
    bring_together(totals);
    return totals.front();
  }

  void decide(const ColumnGradients& gathered, const Parameter& p, Gradient& gradient) const {
    constexpr double kSumError = 3 * kUnit2;
    const Total total = this->total(gathered, p, gradient);
    const ColumnGradients::Sum& sum = total.sum;
    const double error = sum.error + static_cast<double>(p.columns - 1) * kSumError * total.sizes;
    const bool has_bounds = !sum.is_undecided && std::isfinite(sum.value.high) &&
                            std::isfinite(sum.value.low) && std::isfinite(error);
    Bracket between;
    if (sum.is_nan) {
      between = {kNan, kNan};
    } else if (has_bounds && error == 0) {
      between.least = between.most = rounded(sum.value, requested_.dtype);
    } else if (has_bounds) {
      between = bracket(sum.value, error, requested_.dtype);
    }
    if (between.is_decided()) {
      gradient.results[index(p)] = between.least;
    } else {
      gradient.undecided.push_back(p);
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

  // The same of dbias. Its sums in double-doubles are mostly exact, and exact sums decide ties. There are many ties where dy
  // has fewer digits than dbias.
  std::unique_ptr<ColumnGradients> dbias_in_double_doubles() const {
    return gather_columns(setting_.row_length, [&](const auto& slots) {
      again_.for_each_row(
          [&](std::size_t s, const ReadGradientRow& read_row, const SavedStatistics*) {
            read_row([&](const GradientPart& part) {
              slots[s]->in_double_doubles(part.offset);
              for_each_element_of(dbias_.undecided, part,
                                  [&](std::size_t, std::int64_t column, const auto&,
                                      const auto& dy) { slots[s]->add_dbias(column, dy()); });
            });
          });
    });
  }

  // Keeps those that are still undecided.
  void decide_again(const ColumnGradients& gathered, Gradient& gradient) const {
    for (const Parameter& p : std::exchange(gradient.undecided, {})) decide(gathered, p, gradient);
  }

  // Where a parameter is in the results: past their end if it is another process's.
  std::size_t index(const Parameter& p) const {
    return requested_.uniform ? 0 : static_cast<std::size_t>(p.first - first_);
  }

  // The sums are this process's.
  void round(std::vector<ExactSum> sums, Gradient& gradient) const {
    bring_together(sums);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const std::size_t at = index(gradient.undecided[i]);
      if (at >= gradient.results.size()) continue;
      gradient.results[at] = sums[i].is_finite ? rounded(sums[i].sum, requested_.dtype) : kNan;
    }
  }

  void find_exact_dbias() {
    std::vector<ExactSum> sums(dbias_.undecided.size());
    std::mutex mutex;
    again_.for_each_row([&](std::size_t, const ReadGradientRow& read_row, const SavedStatistics*) {
      read_row([&](const GradientPart& part) {
        const std::lock_guard lock(mutex);
        for_each_element_of(dbias_.undecided, part,
                            [&](std::size_t i, std::int64_t, const auto&, const auto& dy) {
                              const Number number = dy();
                              const bool is_finite = std::isfinite(number.high);
                              sums[i].add({is_finite ? Dyadic(number) : Dyadic(), is_finite});
                            });
      });
    });
    round(std::move(sums), dbias_);
  }

  std::vector<LargestTerm> find_largest_terms() const {
    std::vector<LargestTerm> largest(dweight_.undecided.size());
    std::mutex mutex;
    for_each_part([&](std::size_t, const RowGradient& row, const GradientPart& part) {
      for_each_element_of(dweight_.undecided, part,
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
      for_each_element_of(dweight_.undecided, part,
                          [&](std::size_t i, std::int64_t, const auto& x, const auto& dy) {
                            if (!largest[i].is_finite || !largest[i].exponent) return;
                            const std::int64_t unit = *largest[i].exponent - kTermBits;
                            const Dyadic term(row.exact().truncated_term(x(), dy(), unit), unit);
                            const std::lock_guard lock(mutex);
                            sums[i].sum = sums[i].sum + term;
                          });
    });
    round(std::move(sums), dweight_);
  }

  GradientSetting setting_;
  RequestedColumns requested_;
  const RowReplay& again_;
  const AffineLayout* layout_;
  std::int64_t first_;
  Gradient dweight_{&ColumnGradients::dweight};
  Gradient dbias_{&ColumnGradients::dbias};
};

}  // namespace

ParameterGradients parameter_gradients(const GradientSetting& setting, ColumnGradients& gathered,
                                       const RequestedColumns& requested, const RowReplay& again) {
  return Gatherer(setting, nullptr, gathered.first(), requested, again).gather(gathered);
}

ParameterGradients shared_gradients(const GradientSetting& setting, const AffineLayout& layout,
                                    const RequestedColumns& requested, const RowReplay& again) {
  const AffineTerm none;
  const GradientSetting of_x{
      setting.backend,    setting.x, setting.dy,      setting.dx,
      setting.row_length, none,      setting.formula, setting.needs_double_doubles};
  ParameterGradients found = Gatherer(of_x, &layout, 0, requested, again).gather_all();
  return {in_tensor_order(std::move(found.dweight), layout),
          in_tensor_order(std::move(found.dbias), layout)};
}

}  // namespace lnorm
