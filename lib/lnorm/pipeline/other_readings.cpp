#include "lnorm/pipeline/other_readings.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <tuple>

#include "lnorm/core/axes.hpp"
#include "lnorm/core/non_finite.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/diagnosis/own_sums.hpp"
#include "lnorm/diagnosis/row_estimate.hpp"
#include "lnorm/measure/where.hpp"
#include "lnorm/pipeline/check_rows.hpp"
#include "lnorm/pipeline/run.hpp"

namespace lnorm {

namespace {

constexpr std::int64_t kMaxRowLength = std::int64_t{1} << 22;
constexpr std::int64_t kMaxMeasured =
    65536;                              // elements of a row whose sums are run in several orders
constexpr std::size_t kMostAxes = 4;    // whose orders are tried
constexpr std::int64_t kElements = 64;  // of each row of the sample

std::string list_of(const Axes& axes, std::string_view between) {
  return joined(axes, between, [](std::size_t axis) { return std::to_string(axis); });
}

// The number of the row along other axes in which the element of a row of the plan lies.
std::int64_t row_number(const Plan& plan, const OtherAxes& other, std::int64_t row,
                        std::int64_t element) {
  Shape index = index_of_element(plan.shape, plan.axes, row, element);
  if (other.shape != plan.shape) index = index_of(position_of(index, plan.shape), other.shape);
  const Axes kept = kept_axes(other.shape, other.axes);
  return position_of(extents(index, kept), extents(other.shape, kept));
}

// Elements of a sample, each by the norm of the row that it may lie in.
class ElementFit {
 public:
  explicit ElementFit(const JudgeSetting& setting) : setting_(setting) {}

  // False where the element is not explained.
  bool add(const SampleRow& row, std::size_t i, const RowLine& line, double x) {
    return add(row, i, line, x, i);
  }
  // By weight and bias of another element.
  bool add(const SampleRow& row, std::size_t i, const RowLine& line, double x, std::size_t of) {
    const auto& [weight, bias] = affine_of(row, setting_);
    const auto [y, error] = y_of(line, x, weight[of], bias[of]);
    const double off = std::fabs(row.actual[i] - y);
    if (!(off <= error + setting_.output.half_ulp(std::fabs(y) + error))) return false;
    ++sums_.elements;
    ++sums_.explained;
    sums_.signal += y * y;
    sums_.errors += off * off;
    sums_.excess += squared_excess(row.actual[i], y);
    excess_of_exact_ += squared_excess(row.actual[i], row.exact[i]);
    return true;
  }

  // Adds a row that is the norm of x, or nothing.
  bool add_norm(const SampleRow& row, std::span<const double> x) {
    ElementFit with = *this;
    const RowLine line = line_of(x, setting_.formula);
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (row.is_kept(i) && !with.add(row, i, line, x[i])) return false;
    }
    sums_ = with.sums_;
    excess_of_exact_ = with.excess_of_exact_;
    return true;
  }

  // Nothing where not all elements are explained, or the formula asked for is nearly as near: a bound of millions of additions covers
  // too much to explain anything by itself.
  std::optional<FormulaSums> found() const {
    const bool is_nearer = excess_of_exact_ > 0 && sums_.excess <= excess_of_exact_ / 4;
    if (!sums_.explains_all() || !is_nearer) return {};
    return sums_;
  }

  // Calls add(row, i) for the elements that are looked at, until one is not explained: a few of each row, and the one that is
  // farthest off.
  template <class Add>
  std::optional<FormulaSums> found_in(const Sample& sample, Add add) const {
    for (const SampleRow& row : sample.rows) {
      const std::size_t step = std::max<std::size_t>(1, row.x.size() / kElements);
      for (std::size_t i = 0; i < row.x.size(); i += step) {
        if (!add(row, i)) return {};
      }
      if (step > 1 && !add(row, farthest(row))) return {};
    }
    return found();
  }

  RowLine line_of(std::span<const double> x, const Formula& formula) const {
    const RowStatistics statistics = statistics_of(x, formula);
    const bool is_measured = std::ssize(x) <= kMaxMeasured && !setting_.kernel.depth;
    const SumLosses losses =
        is_measured ? losses_of({x, statistics}, formula, setting_.kernel.arithmetic, {})
                    : SumLosses{};
    const StatisticErrors errors = errors_of(statistics, formula, setting_.kernel, losses);
    RowLine line = lnorm::line_of(statistics, divisor_of(statistics.variance, formula), errors,
                                  setting_.kernel);
    if (!errors.is_bounded) line.center_error = kNan;  // which explains nothing
    return line;
  }

  // Of what is beyond half an ulp.
  double squared_excess(double actual, double y) const {
    const double excess = std::fabs(actual - y) - setting_.output.half_ulp(y);
    return excess > 0 ? excess * excess : 0;
  }

 private:
  static std::size_t farthest(const SampleRow& row) {
    std::size_t place = 0;
    double most = 0;
    for (std::size_t i = 0; i < row.x.size(); ++i) {
      const double off = std::fabs(row.actual[i] - row.exact[i]);
      if (row.is_kept(i) && off > most) std::tie(most, place) = std::pair(off, i);
    }
    return place;
  }

  const JudgeSetting& setting_;
  FormulaSums sums_;
  double excess_of_exact_ = 0;
};

// x, and its rows along any axes. A small tensor is held in memory.
class Input {
 public:
  Input(TensorSource& x, const Plan& plan, const Backend& backend, int threads)
      : x_(x), plan_(plan), backend_(backend), threads_(threads) {}

  bool is_small() const { return element_count(plan_.shape) <= kMaxRowLength; }
  // In C order. Requires that it is small.
  const std::vector<double>& all() {
    if (all_.empty()) all_ = all_numbers(backend_, x_, threads_);
    return all_;
  }

  // read(number, buffer): the elements of that row, which may lie in the buffer.
  using ReadRow =
      std::function<std::span<const double>(std::int64_t number, std::vector<double>& buffer)>;
  ReadRow along(const Axes& axes) { return along(axes, plan_.shape); }
  // shape: another one, if it is small.
  ReadRow along(const Axes& axes, const Shape& shape) {
    if (is_small()) {
      return [=, this](std::int64_t number, std::vector<double>& buffer) {
        return held_row(axes, shape, number, buffer);
      };
    }
    const auto rows = std::make_shared<const CheckRows>(x_, axes, threads_);
    const auto tile = std::make_shared<TileBuffer>();
    return [rows, tile, this](std::int64_t number, std::vector<double>& buffer) {
      return decode(backend_, rows->read(number, 1, *tile), buffer);
    };
  }

 private:
  std::span<const double> held_row(const Axes& axes, const Shape& shape, std::int64_t number,
                                   std::vector<double>& buffer) {
    const std::span<const double> from = std::span(all()).subspan(
        static_cast<std::size_t>(position_of(index_of_element(shape, axes, number, 0), shape)));
    const auto length = static_cast<std::size_t>(element_count(extents(shape, axes)));
    if (axes.front() + axes.size() == shape.size()) return from.first(length);
    std::vector<std::size_t> places{0};
    places.reserve(length);
    for (const std::size_t axis : axes) {
      const auto beyond = shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1;
      const auto stride = static_cast<std::size_t>(
          std::accumulate(beyond, shape.end(), std::int64_t{1}, std::multiplies<>()));
      std::vector<std::size_t> more;
      more.reserve(length);
      for (const std::size_t place : places) {
        for (std::int64_t k = 0; k < shape[axis]; ++k) {
          more.push_back(place + static_cast<std::size_t>(k) * stride);
        }
      }
      places = std::move(more);
    }
    buffer.clear();
    for (const std::size_t place : places) buffer.push_back(from[place]);
    return buffer;
  }

  TensorSource& x_;
  const Plan& plan_;
  const Backend& backend_;
  int threads_;
  std::vector<double> all_;
};

std::optional<FormulaSums> fit_along(Input& x, const Plan& plan, const OtherAxes& other,
                                     const Formula& formula, const Sample& sample) {
  const Input::ReadRow read = x.along(other.axes, other.shape);
  std::vector<double> buffer;
  std::map<std::int64_t, RowLine> lines;
  ElementFit fit(*sample.setting);
  return fit.found_in(sample, [&](const SampleRow& row, std::size_t i) {
    const std::int64_t number = row_number(plan, other, row.number, static_cast<std::int64_t>(i));
    if (!lines.contains(number)) lines.emplace(number, fit.line_of(read(number, buffer), formula));
    return fit.add(row, i, lines.at(number), row.x[i]);
  });
}

// An order of the axes in memory: in which the tensor lies, or (is_back) in which a kernel takes it to lie.
struct AxesOrder {
  Axes axes;
  bool is_back = false;
};

// The index of what lies where the element of a row has its place in C order, if a tensor's axes lie in this order, or are taken to.
Shape index_in_order(const Plan& plan, const AxesOrder& memory, std::int64_t row,
                     std::int64_t element) {
  const Axes& order = memory.axes;
  const Shape index = index_of_element(plan.shape, plan.axes, row, element);
  const Shape laid_out = extents(plan.shape, order);
  if (memory.is_back) return index_of(position_of(extents(index, order), laid_out), plan.shape);
  const Shape there = index_of(position_of(index, plan.shape), laid_out);
  Shape own(there.size());
  for (std::size_t k = 0; k < order.size(); ++k) own[order[k]] = there[k];
  return own;
}

// The output lies in another memory order.
std::optional<FormulaSums> fit_written_in_order(Input& x, const Plan& plan, const AxesOrder& order,
                                                const Sample& sample) {
  const Axes kept = kept_axes(plan.shape, plan.axes);
  const auto number_along = [&](const Shape& index, const Axes& axes) {
    return position_of(extents(index, axes), extents(plan.shape, axes));
  };
  const Input::ReadRow read = x.along(plan.axes);
  std::vector<double> buffer;
  ElementFit fit(*sample.setting);
  std::map<std::int64_t, RowLine> lines;
  return fit.found_in(sample, [&](const SampleRow& row, std::size_t i) {
    const Shape own = index_in_order(plan, order, row.number, static_cast<std::int64_t>(i));
    const std::int64_t number = number_along(own, kept);
    if (!lines.contains(number)) {
      lines.emplace(number, fit.line_of(read(number, buffer), plan.formula));
    }
    return fit.add(row, i, lines.at(number),
                   x.all()[static_cast<std::size_t>(position_of(own, plan.shape))],
                   static_cast<std::size_t>(number_along(own, plan.axes)));
  });
}

// The norm of x in another memory order: its elements lie with the axes in this order, and are read as if in C order.
std::optional<FormulaSums> fit_in_order(const std::vector<double>& x, const Plan& plan,
                                        const AxesOrder& order, const Sample& sample) {
  const auto element = [&](std::int64_t row, std::size_t i) {
    const Shape index = index_in_order(plan, order, row, static_cast<std::int64_t>(i));
    return x[static_cast<std::size_t>(position_of(index, plan.shape))];
  };
  const JudgeSetting& setting = *sample.setting;
  RowEstimator estimator(setting.kernel, setting.output, setting.rounding);
  ElementFit fit(setting);
  std::vector<double> numbers;
  RowLine line;
  return fit.found_in(sample, [&](const SampleRow& row, std::size_t i) {
    if (i == 0) {
      const RowStatistics statistics = statistics_of(row.x, plan.formula);
      auto some = thinned(estimated(row, affine_of(row, setting), statistics.mean,
                                    divisor_of(statistics.variance, plan.formula)));
      for (std::size_t k = 0; some && k < some->x.size(); ++k) {
        some->x[k] = element(row.number, ThinRow::place(k, row.x.size()));
      }
      if (some && estimator.is_bent(*some)) return false;
      numbers.clear();
      for (std::size_t k = 0; k < row.x.size(); ++k) numbers.push_back(element(row.number, k));
      line = fit.line_of(numbers, plan.formula);
    }
    return fit.add(row, i, line, numbers[i]);
  });
}

// Of one value or two a norm says nothing: any other two have the same.
class ThreeValues {
 public:
  void add(double number) {
    if (count_ < 3 && std::find(seen_, seen_ + count_, number) == seen_ + count_) {
      seen_[count_++] = number;
    }
  }
  bool are_there() const { return count_ == 3; }

 private:
  double seen_[3] = {};
  std::size_t count_ = 0;
};

// What rows tell of the elements that have one weight and one bias: the least squares of y on xhat.
struct Column {
  double x = 0;
  double y = 0;
  double xx = 0;
  double xy = 0;
  ThreeValues values;
  double half_ulp = 0;  // the largest, which is about what the fit is off
  double error = 0;     // of xhat
  double count = 0;
  std::size_t rows = 0;  // that have such elements
  double beyond = 0;     // that what is asked for does not explain
  std::size_t last_row = static_cast<std::size_t>(-1);

  void add(double xhat, double actual, std::size_t row) {
    count += 1;
    rows += row != last_row ? 1 : 0;
    last_row = row;
    x += xhat;
    y += actual;
    xx += xhat * xhat;
    xy += xhat * actual;
    values.add(xhat);
  }

  // By least squares; the errors are six times what roundings do to a line through so many points.
  struct Line {
    double weight;
    double bias;
    double weight_error;
    double bias_error;
  };
  // Nothing where the points tell none.
  std::optional<Line> line() const {
    const double mean = x / count;
    const double spread = xx - mean * x;
    const bool is_told = values.are_there() && spread > 0 &&
                         std::sqrt(spread) > std::max(8 * std::sqrt(count) * error, 64 * half_ulp);
    if (!is_told) return {};
    const double weight = (xy - mean * y) / spread;
    const double noise = 3.5 * half_ulp;
    return Line{weight, y / count - weight * mean, noise / std::sqrt(spread),
                noise * std::sqrt(1 / count + mean * mean / spread)};
  }
};

// The channels, along axis 1, in other numbers of groups. The plan is that of a group norm, or normalizes all axes from axis 1 or 2 on.
std::vector<OtherAxes> other_groups(const Plan& plan, const TensorInfo& x) {
  const bool is_split = x.split.has_value();
  const bool is_other = is_split ? *x.split != 1 : plan.axes.empty() || plan.axes.front() > 2;
  if (x.slice || is_other || element_count(plan.shape) > kMaxRowLength) return {};
  const Shape shape = is_split ? file_shape(x) : plan.shape;
  if (shape.size() < 3) return {};
  Axes all(plan.shape.size() - plan.axes.front());
  std::iota(all.begin(), all.end(), plan.axes.front());
  if (plan.axes != all || plan.axes.front() == 0) return {};
  const std::int64_t channels = shape[1];
  const std::int64_t asked = is_split ? plan.shape[1] : plan.axes.front() == 1 ? 1 : channels;
  std::vector<OtherAxes> result;
  for (std::int64_t groups = 1; groups <= channels; ++groups) {
    if (groups == asked || channels % groups != 0) continue;
    OtherAxes& other = result.emplace_back(OtherAxes{.id = concat("groups-", groups),
                                                     .option = groups_option(groups),
                                                     .axes = Axes(shape.size() - 1),
                                                     .shape = shape});
    std::iota(other.axes.begin(), other.axes.end(), 2);
    other.shape[1] = channels / groups;
    other.shape.insert(other.shape.begin() + 1, groups);
  }
  return result;
}

std::optional<FormulaFit> explain_by_axes(Input& x, const Plan& plan, const Sample& sample,
                                          const std::vector<OtherAxes>& others,
                                          std::string_view words, const ChooseKernel& choose) {
  const auto unbiased = std::ranges::find(wrong_kernels(), "ddof-1", &WrongKernel::id);
  for (const OtherAxes& other : others) {
    const std::int64_t length = element_count(extents(other.shape, other.axes));
    if (!choose(other.id) || length > kMaxRowLength) continue;
    for (const bool is_unbiased : {false, true}) {
      Formula formula = plan.formula;
      if (is_unbiased) formula.ddof = 1;
      const bool is_other_ddof = is_unbiased && plan.formula.ddof != 1;
      if (formula.ddof >= length || (is_unbiased && !(is_other_ddof && choose(unbiased->id))))
        continue;
      const auto sums = fit_along(x, plan, other, formula, sample);
      if (!sums) continue;
      FormulaFit fit = cause(other.id, std::string(words), sums->sqnr(), {other.option});
      if (is_unbiased) {
        fit.ids.emplace_back(unbiased->id);
        fit.words += concat("; ", unbiased->words);
        fit.options.emplace_back(unbiased->options);
      }
      return fit;
    }
  }
  return {};
}

std::optional<FormulaFit> explain_by_order(Input& x, const Plan& plan, const Sample& sample,
                                           const ChooseKernel& choose) {
  if (!choose(kOrderId) || !x.is_small() || plan.shape.size() > kMostAxes) return {};
  Axes order(plan.shape.size());
  std::iota(order.begin(), order.end(), 0);
  while (std::next_permutation(order.begin(), order.end())) {
    const std::vector<double>& numbers = x.all();
    if (!are_finite(numbers)) return {};
    for (const bool is_back : {false, true}) {
      const AxesOrder memory{order, is_back};
      const auto read = fit_in_order(numbers, plan, memory, sample);
      const auto sums = read ? read : fit_written_in_order(x, plan, memory, sample);
      if (!sums) continue;
      return cause(std::string(kOrderId),
                   concat(read ? "x is read" : "y is written", " in another memory order: ",
                          is_back ? "as if its axes lay" : "its axes lie", " in the order ",
                          list_of(order, ", "), is_back ? "" : ", as of a transposed tensor"),
                   sums->sqnr());
    }
  }
  return {};
}

// The norm of what lies in the storage of a view, without its strides.
std::optional<FormulaFit> explain_by_storage(const TensorSource& x, const Plan& plan,
                                             const Sample& sample, const ChooseKernel& choose,
                                             int threads) {
  for (const bool from_storage : {false, true}) {
    const auto read = x.without_strides(from_storage);
    if (!read || !choose(kStorageId)) continue;
    const CheckRows rows(*read, plan.axes, threads);
    TileBuffer buffer;
    std::vector<double> numbers;
    RowLine line;
    ElementFit fit(*sample.setting);
    const auto sums = fit.found_in(sample, [&](const SampleRow& row, std::size_t i) {
      if (i == 0) {
        numbers = decoded(sample.setting->backend, rows.read(row.number, 1, buffer));
        line = fit.line_of(numbers, plan.formula);
      }
      return fit.add(row, i, line, numbers[i]);
    });
    if (!sums) continue;
    return cause(std::string(kStorageId),
                 concat("x is a view, and is read without its strides, from ",
                        from_storage ? "the start of its storage" : "its first element", " on"),
                 sums->sqnr());
  }
  return {};
}

std::optional<FormulaFit> explain_by_exchange(const Plan& plan, const Sample& sample,
                                              const ChooseKernel& choose) {
  if (!choose(kExchangedId) || !is_floating(plan.in)) return {};
  JudgeSetting setting = *sample.setting;
  setting.output = OutputFormat(plan.in);
  ElementFit fit(setting);
  SampleRow turned;
  RowLine line;
  const auto sums = fit.found_in(sample, [&](const SampleRow& row, std::size_t i) {
    if (i == 0) {
      ThreeValues values;
      for (const double one : row.x) values.add(one);
      if (!values.are_there()) return false;
      turned.x = row.actual;
      turned.actual = row.x;
      turned.exact.assign(row.x.size(), 0);
      line = fit.line_of(turned.x, plan.formula);
    }
    return fit.add(turned, i, line, turned.x[i]);
  });
  if (!sums) return {};
  return cause(std::string(kExchangedId),
               "input and output are exchanged: the input is the norm of the output", sums->sqnr());
}

// A row of the output, and the rows of x of which it is the norm.
class FoundRow {
 public:
  FoundRow(const SampleRow& found, const JudgeSetting& setting) : row(&found) {
    for (std::size_t i = 0; i < found.x.size(); i += 1 + found.x.size() / 8) {
      if (!found.is_kept(i)) continue;
      points_.push_back({i, found.actual[i] - setting.affine.bias[i], setting.affine.weight[i],
                         setting.output.half_ulp(found.actual[i])});
    }
  }

  // Whether it is nearly the norm of x, at some elements.
  bool is_like(std::span<const double> x, double mean, double s) const {
    return std::ranges::all_of(points_, [&](const Point& point) {
      const double product = (x[point.i] - mean) / s * point.weight;
      const double most = (std::fabs(product) + std::fabs(point.weight)) / 32 + point.half_ulp;
      return !(std::fabs(point.product - product) > most);
    });
  }

  const SampleRow* row;
  std::vector<std::int64_t> of = {};

 private:
  struct Point {
    std::size_t i;
    double product;  // of xhat and weight
    double weight;
    double half_ulp;
  };
  std::vector<Point> points_;
};

// Which rows of x they are. shape: of the numbers of rows.
std::string words_of(const std::vector<FoundRow>& found, std::int64_t rows, const Shape& shape) {
  const auto are = [&](auto row_for) {
    return std::ranges::all_of(found, [&](const FoundRow& one) {
      return std::ranges::count(one.of, row_for(one.row->number)) > 0;
    });
  };
  const std::int64_t first = found.front().row->number;
  for (const std::int64_t of : found.front().of) {
    if (found.size() > 1 && are([&](std::int64_t) { return of; })) {
      return concat("rows are the norm of row ", row_name(of, shape));
    }
    // By the shorter way.
    const std::int64_t by = (of - first + rows + rows / 2) % rows - rows / 2;
    if (are([&](std::int64_t row) { return (row + by + rows) % rows; })) {
      return concat("rows are the norms of those ", counted(std::abs(by), "row"), " ",
                    by > 0 ? "after them" : "before them");
    }
  }
  if (are([&](std::int64_t row) { return rows - 1 - row; })) {
    return "rows are the norms of the rows in reverse order";
  }
  constexpr std::int64_t kMostTimes = 64;
  for (std::int64_t k = 2; k <= std::min(kMostTimes, rows - 1); ++k) {
    if (are([&](std::int64_t row) { return row / k; })) {
      return concat("row i is the norm of row i / ", k);
    }
    if (are([&](std::int64_t row) { return row % (rows / k); })) {
      return concat("row i is the norm of row i mod ", rows / k);
    }
  }
  Axes order(shape.size());
  std::iota(order.begin(), order.end(), 0);
  while (shape.size() <= kMostAxes && std::next_permutation(order.begin(), order.end())) {
    const Shape laid_out = extents(shape, order);
    const auto turned = [&](std::int64_t row) {
      return position_of(extents(index_of(row, shape), order), laid_out);
    };
    if (are(turned)) {
      return concat("rows are the norms of other rows, as if their axes lay in the order ",
                    list_of(order, ", "));
    }
  }
  std::string words = "rows are the norms of other rows: ";
  for (std::size_t i = 0; i < std::min<std::size_t>(3, found.size()); ++i) {
    words += concat(i == 0 ? "row " : ", row ", row_name(found[i].row->number, shape),
                    " that of row ", row_name(found[i].of.front(), shape));
  }
  return words;
}

std::optional<FormulaFit> explain_by_rows(TensorSource& x, const Plan& plan, const Sample& sample,
                                          const ChooseKernel& choose, int threads) {
  constexpr std::int64_t kMostElements = std::int64_t{1} << 26;
  constexpr std::size_t kLooked = 16;
  constexpr std::size_t kMostAlike = 8;
  if (!choose(kRowsId) || element_count(plan.shape) > kMostElements) return {};
  const JudgeSetting& setting = *sample.setting;
  // Of many rows some one is like a short one by chance: mean and variance leave too few bits to tell it.
  constexpr double kBits = 3;     // of an element that tell nothing
  constexpr double kCertain = 7;  // bits
  const double free = static_cast<double>(plan.row_length) - (plan.formula.has_mean() ? 2 : 1);
  if (free * (setting.output.precision() - kBits) < std::log2(plan.rows) + kCertain) return {};
  ElementFit fit(setting);
  std::vector<FoundRow> looked;
  for (const SampleRow& row : sample.rows) {
    if (!are_finite(row.actual)) return {};
    ThreeValues values;
    for (const double one : row.actual) values.add(one);
    if (values.are_there() && !fit.add_norm(row, row.x)) looked.emplace_back(row, setting);
  }
  std::vector<FoundRow> found;
  for (std::size_t i = 0; i < std::min(kLooked, looked.size()); ++i) {
    found.push_back(looked[i * looked.size() / std::min(kLooked, looked.size())]);
  }
  if (found.empty()) return {};
  struct Alike {
    std::size_t found;
    std::int64_t of;
    std::vector<double> x;
  };
  const auto find = [&](const RowBlock& block) {
    std::vector<Alike> alike;
    std::vector<double> storage;
    for (std::int64_t r = 0; r < block.x.rows; ++r) {
      const auto numbers = decode(setting.backend, row_of(block.x, r), storage);
      const RowStatistics row = statistics_of(numbers, plan.formula);
      const double s = divisor_of(row.variance, plan.formula);
      for (std::size_t k = 0; k < found.size(); ++k) {
        if (!found[k].is_like(numbers, row.mean, s) || !are_finite(numbers)) continue;
        alike.push_back({k, block.first_row + r, {numbers.begin(), numbers.end()}});
      }
    }
    return alike;
  };
  const auto take = [&](const std::vector<Alike>& alike) {
    for (const auto& [k, of, numbers] : alike) {
      FoundRow& one = found[k];
      if (one.of.size() < kMostAlike && fit.add_norm(*one.row, numbers)) one.of.push_back(of);
    }
  };
  examine_rows(x, plan, {}, find, take, {.threads = threads});
  const bool is_told = std::ranges::none_of(found, [](const auto& one) { return one.of.empty(); });
  const auto sums = is_told ? fit.found() : std::nullopt;
  if (!sums) return {};
  return cause(std::string(kRowsId), words_of(found, plan.rows, row_shape(plan.shape, plan.axes)),
               sums->sqnr());
}

// Which weight and bias the elements of a sample have.
struct Parameters {
  std::string along = {};                    // other axes than those asked for
  std::vector<std::size_t> of_row = {};      // of each row of the sample: its first
  std::vector<std::size_t> of_element = {};  // what is added to that; empty: all of a row have one
  std::size_t copies = 1;                    // of each, one after another

  std::size_t of(std::size_t row, std::size_t i) const {
    return (of_row[row] + (of_element.empty() ? 0 : of_element[i])) / copies;
  }
};

// Those along each single axis, where none are asked for; and last those that are asked for, which are more numbers.
std::vector<Parameters> parameters_of(const Plan& plan, const Sample& sample,
                                      const KernelContext& context) {
  const auto n = static_cast<std::size_t>(sample.row_length());
  std::vector<Parameters> all;
  const bool may_be_others = plan.affine.is_plain() && !context.has_groups && !context.has_weight &&
                             !context.has_bias && plan.shape.size() > 1;
  for (std::size_t axis = 0; may_be_others && axis < plan.shape.size(); ++axis) {
    if (plan.axes == Axes{axis} || plan.shape[axis] == 1) continue;
    const bool is_normalized = std::ranges::count(plan.axes, axis) > 0;
    const auto index = [&](std::int64_t row, std::size_t i) {
      const Shape at = index_of_element(plan.shape, plan.axes, row, static_cast<std::int64_t>(i));
      return static_cast<std::size_t>(at[axis]);
    };
    Parameters other{.along = concat(" along axis ", axis)};
    std::set<std::size_t> seen;
    for (const SampleRow& row : sample.rows) {
      other.of_row.push_back(is_normalized ? 0 : index(row.number, 0));
      seen.insert(other.of_row.back());
    }
    // A parameter that one row alone has is never told.
    if (!is_normalized && seen.size() == sample.rows.size()) continue;
    for (std::size_t i = 0; is_normalized && i < n; ++i) other.of_element.push_back(index(0, i));
    all.push_back(std::move(other));
  }
  Parameters& asked = all.emplace_back();
  asked.copies = static_cast<std::size_t>(plan.affine.copies);
  for (const SampleRow& row : sample.rows) {
    asked.of_row.push_back(static_cast<std::size_t>(plan.affine.first(row.number)));
  }
  for (std::size_t i = 0; i < n; ++i) {
    asked.of_element.push_back(
        static_cast<std::size_t>(plan.affine.number(0, static_cast<std::int64_t>(i))));
  }
  return all;
}

// Another weight or bias than the one asked for, by least squares.
class OtherAffine {
 public:
  OtherAffine(const Plan& plan, const Sample& sample, const KernelContext& context,
              const Parameters& parameters)
      : plan_(plan),
        sample_(sample),
        context_(context),
        parameters_(parameters),
        setting_(*sample.setting),
        fit_(setting_),
        n_(static_cast<std::size_t>(sample.row_length())) {
    for (std::size_t r = 0; r < sample_.rows.size(); ++r) add_row(r);
  }

  std::optional<FormulaFit> explanation() {
    // In rows of two xhat is 1 or -1, and whatever is made of that is a line.
    if (n_ == 2 && setting_.formula.has_mean()) return {};
    find();
    if (beyond_ == 0) return {};
    const bool has_most = has_most_others();
    const auto constants_allowed = has_most ? static_cast<double>(others_.count()) / 2 : 0;
    // One ratio of all weights is another scale of the rows, not another weight.
    const bool is_scale = biases_ == 0 && most_ratio_ <= least_ratio_;
    // Statistics that are a little off look like a weight or bias that hardly changes.
    constexpr double kLeastChange = 0x1p-13;
    if (!(change_ > kLeastChange * greatest_) || 10 * told_beyond_ < 9 * beyond_) return {};
    constexpr double kFewestOfSome = 8;  // elements of a parameter, where others are right
    if (most() == 0 || constants_ > constants_allowed || is_scale) return {};
    if (!has_most && fewest_ < kFewestOfSome) return {};
    const auto sums = fit();
    if (!sums) return {};
    return cause(std::string(kAffineId), words(), sums->sqnr());
  }

 private:
  // Two points lie on any line. What one row alone has may come of its statistics.
  static bool is_told(const Column& column) { return column.count >= 4 && column.rows >= 2; }

  bool is_plain() const { return parameters_.along.empty() && plan_.affine.is_plain(); }
  bool has_most_others() const { return static_cast<double>(others_.count()) >= 0.9 * told_; }
  double most() const { return std::max(weights_, biases_); }

  void add_row(std::size_t r) {
    const SampleRow& row = sample_.rows[r];
    const AffineNumbers& asked = affine_of(row, setting_);
    const AffineNumbers none{std::vector<double>(n_, 1), std::vector<double>(n_, 0)};
    lines_.push_back(fit_.line_of(row.x, setting_.formula));
    std::vector<double> y;
    std::vector<double> xhat;
    std::vector<double> error;
    std::vector<double> xhat_error;
    fill_line(lines_.back(), row.x, asked, y, error);
    fill_line(lines_.back(), row.x, none, xhat, xhat_error);
    for (std::size_t i = 0; i < n_; ++i) {
      if (!row.is_kept(i)) continue;
      const std::size_t k = parameters_.of(r, i);
      if (k >= columns_.size()) {
        columns_.resize(k + 1);
        numbers_.weight.resize(k + 1);
        numbers_.bias.resize(k + 1);
      }
      numbers_.weight[k] = asked.weight[i];
      numbers_.bias[k] = asked.bias[i];
      const OutputFormat& output = setting_.output;
      Column& column = columns_[k];
      column.add(xhat[i], row.actual[i], r);
      column.error = std::max(column.error, xhat_error[i]);
      column.half_ulp = std::max(column.half_ulp, output.half_ulp(std::fabs(row.actual[i])));
      const double bound = error[i] + output.half_ulp(std::fabs(y[i]) + error[i]);
      column.beyond += std::fabs(row.actual[i] - y[i]) <= bound ? 0 : 1;
    }
  }

  // What each parameter is by the rows, where they tell it.
  void find() {
    for (std::size_t k = 0; k < columns_.size(); ++k) {
      const Column& column = columns_[k];
      beyond_ += column.beyond;
      greatest_ = std::max({greatest_, std::fabs(numbers_.weight[k]), std::fabs(numbers_.bias[k])});
      if (!is_told(column)) continue;
      told_beyond_ += column.beyond;
      ++told_;
      fewest_ = std::min(fewest_, column.count);
      const auto line = column.line();
      if (!line) continue;
      double& weight = numbers_.weight[k];
      double& bias = numbers_.bias[k];
      const bool is_weight = std::fabs(line->weight - weight) > line->weight_error;
      const bool is_bias = std::fabs(line->bias - bias) > line->bias_error;
      const double ratio_error = std::fabs(line->weight_error / weight);
      least_ratio_ = std::min(least_ratio_, line->weight / weight + ratio_error);
      most_ratio_ = std::max(most_ratio_, line->weight / weight - ratio_error);
      change_ = std::max({change_, std::fabs(line->weight - weight) - line->weight_error,
                          std::fabs(line->bias - bias) - line->bias_error});
      weight = line->weight;
      bias = line->bias;
      if (!is_weight && !is_bias && column.beyond == 0) continue;
      weights_ += is_weight ? 1 : 0;
      biases_ += is_bias ? 1 : 0;
      constants_ += std::fabs(weight) <= 8 * column.half_ulp ? 1 : 0;
      const auto number = static_cast<std::int64_t>(k);
      others_.add(is_plain() ? column_of(plan_.shape, plan_.axes, number) : number);
    }
  }

  // How the rows fit that; nothing where rounding does not explain what is left.
  std::optional<FormulaSums> fit() const {
    FormulaSums sums;
    double looked = 0;
    double squared_bounds = 0;
    double excess_of_exact = 0;
    std::vector<double> y;
    std::vector<double> error;
    AffineNumbers numbers{std::vector<double>(n_, 1), std::vector<double>(n_, 0)};
    for (std::size_t r = 0; r < sample_.rows.size(); ++r) {
      const SampleRow& row = sample_.rows[r];
      for (std::size_t i = 0; i < n_; ++i) {
        if (!row.is_kept(i)) continue;
        numbers.weight[i] = numbers_.weight[parameters_.of(r, i)];
        numbers.bias[i] = numbers_.bias[parameters_.of(r, i)];
      }
      fill_line(lines_[r], row.x, numbers, y, error);
      for (std::size_t i = 0; i < n_; ++i) {
        if (!row.is_kept(i)) continue;
        ++looked;
        const Column& column = columns_[parameters_.of(r, i)];
        if (!is_told(column)) continue;
        const double off = std::fabs(row.actual[i] - y[i]);
        if (!(off <= 2 * (error[i] + column.half_ulp))) return {};
        ++sums.explained;
        squared_bounds +=
            std::pow(error[i] + setting_.output.half_ulp(std::fabs(row.actual[i])), 2);
        sums.signal += y[i] * y[i];
        sums.errors += off * off;
        sums.excess += fit_.squared_excess(row.actual[i], y[i]);
        excess_of_exact += fit_.squared_excess(row.actual[i], row.exact[i]);
      }
    }
    // The mean square of errors that may be anywhere within bounds is a third of the bounds', and so many vary by chance.
    const auto explained = static_cast<double>(sums.explained);
    const bool is_rounding = sums.errors <= squared_bounds / 3 * (1 + 4 / std::sqrt(explained));
    const bool is_nearer = sums.excess <= excess_of_exact / 4;
    return is_rounding && is_nearer && explained >= looked / 2 ? std::optional(sums) : std::nullopt;
  }

  std::string words() const {
    std::vector<std::string_view> wrong;
    std::vector<std::string_view> missing;
    const auto take = [&](double changed, bool is_given, std::string_view name) {
      if (changed >= 0.1 * most()) (is_given ? wrong : missing).push_back(name);
    };
    take(weights_, context_.has_weight, "weight");
    take(biases_, context_.has_bias, "bias");
    std::string words = joined(wrong, "; ", [](std::string_view name) {
      return concat("the ", name, " is not the one that is given");
    });
    if (!missing.empty()) {
      words += concat(words.empty() ? "" : "; ", "y has a ", joined(missing, " and a "),
                      parameters_.along, ", and none is given");
    }
    if (has_most_others()) return words;
    const NumberSet others{others_, std::ssize(columns_)};
    return concat(words, ", in ", words_of(others, is_plain() ? "column" : "parameter"));
  }

  const Plan& plan_;
  const Sample& sample_;
  const KernelContext& context_;
  const Parameters& parameters_;
  const JudgeSetting& setting_;
  const ElementFit fit_;
  std::size_t n_;
  std::vector<RowLine> lines_;   // of the rows
  std::vector<Column> columns_;  // of the parameters
  AffineNumbers numbers_;        // of each parameter: asked for, and then found
  double told_ = 0;              // parameters
  double weights_ = 0;           // of these, in which it is not the one asked for
  double biases_ = 0;            // the same
  NumberBits others_;            // in which either is not
  double constants_ = 0;         // of which y is the same whatever x is, as where it is not written
  double fewest_ = kInfinity;    // elements of a parameter
  double change_ = 0;            // the largest, with its error off
  double greatest_ = 0;          // parameter
  double beyond_ = 0;            // elements that what is asked for does not explain
  double told_beyond_ = 0;       // those of parameters that the rows tell
  double least_ratio_ = kInfinity;  // of weights found to those asked for, with their errors
  double most_ratio_ = -kInfinity;
};

}  // namespace

std::vector<OtherAxes> other_axes(const Plan& plan, bool has_affine) {
  const Shape& shape = plan.shape;
  Axes given = plan.axes;
  std::ranges::sort(given);
  // The axes of weight and bias stay as they are. Those that were given are in an option already.
  const bool are_normalized = plan.affine_shape() == extents(shape, given) && plan.axes == given;
  const std::string affine = has_affine && are_normalized ? list_of(given, ",") : "";
  std::vector<Axes> found;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) found.push_back({axis});
  for (std::size_t first = 0; first + 1 < shape.size(); ++first) {
    Axes axes(shape.size() - first);
    std::iota(axes.begin(), axes.end(), first);
    found.push_back(std::move(axes));
  }
  // Axes of one element make no other rows.
  const auto longer = [&](Axes axes) {
    std::erase_if(axes,
                  [&](std::int64_t axis) { return shape[static_cast<std::size_t>(axis)] == 1; });
    return axes;
  };
  std::erase_if(found, [&](const Axes& axes) { return longer(axes) == longer(given); });
  std::vector<OtherAxes> result;
  result.reserve(found.size());
  for (Axes& axes : found) {
    result.push_back(
        {"axes-" + list_of(axes, "-"), axes_option(list_of(axes, ","), affine), axes, shape});
  }
  return result;
}

std::optional<FormulaFit> explain_by_other_reading(TensorSource& x, const Plan& plan,
                                                   const Sample& sample,
                                                   const KernelContext& context, bool is_whole,
                                                   const ChooseKernel& choose, int threads) {
  std::optional<FormulaFit> found;
  Input input(x, plan, sample.setting->backend, threads);
  if (is_whole) {
    const bool has_affine = context.has_weight || context.has_bias;
    found = explain_by_axes(input, plan, sample, other_axes(plan, has_affine), kAxesWords, choose);
    if (!found) found = explain_by_order(input, plan, sample, choose);
    if (!found) found = explain_by_storage(x, plan, sample, choose, threads);
    if (!found) found = explain_by_exchange(plan, sample, choose);
    if (!found) found = explain_by_rows(x, plan, sample, choose, threads);
  }
  if (!found) {
    found = explain_by_axes(input, plan, sample, other_groups(plan, x.info()),
                            "the channels are in another number of groups", choose);
  }
  if (found || !choose(kAffineId) || sample.rows.empty()) return found;
  for (const Parameters& parameters : parameters_of(plan, sample, context)) {
    if (!found) found = OtherAffine(plan, sample, context, parameters).explanation();
  }
  return found;
}

}  // namespace lnorm
