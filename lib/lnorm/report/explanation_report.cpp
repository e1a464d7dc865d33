#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "lnorm/core/axes.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/report/numbers.hpp"
#include "lnorm/report/record.hpp"
#include "lnorm/report/reports.hpp"
#include "lnorm/report/table.hpp"

namespace lnorm {

namespace {

// An element of the row.
Record record_of(const Explanation& e, const ExplainedElement& element) {
  const auto if_there = [](bool is_there, double value) {
    return is_there ? Value(value) : Absent();
  };
  return {{"element", element.number},
          {"index", index_of(element.number, extents(e.x.shape, e.axes))},
          {"x", Element{element.x, e.row.dtype}, "x"},
          {"deviation", if_there(e.options.formula.has_mean(), element.deviation), "x - mean"},
          {"square", element.square, "square"},
          {"xhat", element.xhat, "xhat"},
          {"weight", if_there(e.weight, element.weight.high),
           e.options.zero_centered_weight ? "1 + weight" : "weight"},
          {"bias", if_there(e.bias, element.bias.high), "bias"},
          {"y", element.y, "y"},
          {"softmax", element.softmax, "softmax"}};
}

// A sum of more addends than kMaxAddends shows the first ones and the last.
constexpr std::size_t kMaxAddends = 6;
constexpr std::size_t kFirstAddends = 3;

constexpr std::size_t kIndent = 5;  // of formulas

// One of several formulas side by side, of which one is in use.
struct Choice {
  std::string label;
  std::string formula;
  bool is_used;
};

class ExplanationText {
 public:
  ExplanationText(const Explanation& explanation, int digits, TextWriter text)
      : e_(explanation),
        row_(explanation.row),
        formula_(explanation.options.formula),
        norm_(formula_.norm()),
        digits_(digits),
        text_(std::move(text)),
        style_(text_.style()),
        deviation_squared_(concat(norm_.deviation, style_.utf8 ? "²" : "^2")),
        var_(norm_.letter) {}

  void write() {
    write_head();
    if (row_.length == 0)
      return say("The row has no elements: its mean has no number, and y is empty.");
    if (!row_.given && row_.input.non_finite > 0) {
      write_non_finite();
    } else {
      if (norm_.has_mean) write_mean();
      row_.given ? write_given_spread() : write_variance();
      write_xhat();
      write_y();
    }
    write_softmax();
    write_table();
  }

 private:
  void write_head() {
    text_.folded(tensor_text(e_.x), ", ", norm_.prefix, normalized_text(e_.x, e_.axes));
    text_.folded(row_text());
    if (!e_.residual) return;
    text_.folded("x is the input and the residual together",
                 e_.rounds_sum ? concat(", rounded to ", name(e_.out)) : "");
  }

  std::string row_text() const {
    const Shape rows = row_shape(e_.x.shape, e_.axes);
    const std::int64_t count = element_count(rows);
    const std::string length = counted(row_.length, "element");
    if (count == 1) return concat("one row of ", length);
    const auto index = [&](std::int64_t number) { return row_name(number, rows); };
    return concat("row ", index(e_.number), " of rows ", index(0), " to ", index(count - 1),
                  " along ", axes_text(kept_axes(e_.x.shape, e_.axes)), ": ", length,
                  e_.note.empty() ? "" : concat(" (", e_.note, ")"));
  }

  void write_non_finite() {
    step("NaN and infinity");
    const std::int64_t count = row_.input.non_finite;
    const std::string places = joined(row_.non_finite, ", ", [&](std::int64_t element) {
      return to_string(index_in_file(e_.x, e_.axes, e_.number, element));
    });
    say(concat(count, " of ", counted(row_.length, "element"), count == 1 ? " is" : " are",
               " NaN or infinite, at ", places,
               std::ssize(row_.non_finite) == count ? "" : " and others",
               ". So the mean has no number, nor has what follows from it: every y is NaN."));
  }

  void write_mean() {
    step("The mean", row_.given.has_value());
    if (row_.given) {
      choose(
          {{"given", concat("mean = ", number(row_.given->mean)), true},
           {"of the row", concat("mean = sum(x) / n = ", number_or_none(row_.input.mean)), false}});
    } else {
      const std::string sum = sum_of(&ExplanationText::x_text);
      calculate(concat("mean = sum(x) / n = ", row_.length > 1 ? concat("(", sum, ")") : sum, " / ",
                       row_.length, " = ", number(row_.input.mean)));
    }
    step("The deviations from the mean");
    calculate(concat(of("x"), " - mean = ", x_text(first()), " - ",
                     factor(number(row_.given ? row_.given->mean : row_.input.mean)), " = ",
                     number(first().deviation)));
    if (!row_.given) say("They add up to 0.");
  }

  void write_given_spread() {
    if (row_.given->rstd) {
      step("rstd, which is given: 1 / s");
      calculate(concat("rstd = ", number(*row_.given->rstd)));
      return;
    }
    step(concat("The ", norm_.variance), true);
    choose({{"given", concat(var_, " = ", number(row_.variance)), true},
            {"biased", concat(var_, " = ", number_or_none(row_.biased)), false},
            {"unbiased", concat(var_, " = ", number_or_none(row_.unbiased)), false}});
    write_divisor();
  }

  void write_variance() {
    const std::string squares = concat("sum(", deviation_squared_, ")");
    step(concat("The ", norm_.variance,
                norm_.has_mean ? ": the mean of their squares" : ", in place of mean and variance"),
         true);
    calculate(concat(squares, row_.length > 1 ? " = " + sum_of(&ExplanationText::square_text) : "",
                     " = ", number(row_.squares)));
    const auto choice = [&](const std::string& label, std::int64_t ddof, double variance) {
      const std::string n = ddof == 0 ? "n" : concat("(n - ", ddof, ")");
      const std::string result = number_or_none(variance);
      return Choice{label,
                    concat(var_, " = ", squares, " / ", n, " = ", number(row_.squares), " / ",
                           row_.length - ddof, " = ", result),
                    ddof == formula_.ddof};
    };
    std::vector<Choice> choices{choice("biased", 0, row_.biased),
                                choice("unbiased", 1, row_.unbiased)};
    if (formula_.ddof > 1) {
      choices.push_back(choice(concat("ddof ", formula_.ddof), formula_.ddof, row_.variance));
    }
    choose(choices);
    write_divisor();
  }

  void write_divisor() {
    step("eps, and the divisor s", true);
    const std::string eps = value_text(formula_.eps);
    const std::string root = number(row_.divisor_without_eps);
    const auto of_place = [&](EpsOn place, const std::string& label,
                              const std::string& calculation) {
      return Choice{label, concat("s = ", calculation, " = ", number(row_.divisor(place))),
                    formula_.eps_on == place};
    };
    choose(
        {of_place(EpsOn::variance, "on the variance",
                  concat(root_of(concat(var_, " + eps")), " = ",
                         root_of(concat(number(row_.variance), " + ", eps)))),
         of_place(EpsOn::std, "on the std", concat(root_of(var_), " + eps = ", root, " + ", eps)),
         of_place(EpsOn::max, "in max()",
                  concat("max(", root_of(var_), ", eps) = max(", root, ", ", eps, ")")),
         {"without", concat("s = ", root_of(var_), " = ", root), false}});
    // Rounded to float64 they are no longer what s is the root of.
    const bool is_lost =
        std::isinf(row_.variance) || (row_.variance == 0 && row_.divisor_without_eps > 0);
    if (is_lost) {
      say(concat("The ", norm_.variance, row_.variance == 0 ? " is too small" : " is too large",
                 " for float64; s is computed from the exact one."));
    }
    if (std::isnan(row_.divisor_without_eps)) return;
    const std::string same =
        row_.given ? "the variance is 0" : concat("all elements are ", norm_.constant);
    if (row_.divisor_without_eps > 0) {
      if (formula_.eps > 0) say(concat("eps keeps s above 0 where ", same, "."));
    } else {
      say(concat("Here ", same,
                 formula_.eps > 0 ? ": eps alone keeps s above 0."
                 : row_.given     ? ", and eps is 0: xhat is infinite, or 0 / 0, which is NaN."
                                  : ", and eps is 0: xhat is 0 / 0, which is NaN."));
    }
    say(difference_text());
  }

  std::string difference_text() const {
    const double difference = row_.eps_difference;
    if (std::isnan(difference)) return "";
    const std::string other =
        concat("With eps on the ", formula_.eps_on == EpsOn::variance ? "std" : "variance", " y ");
    if (difference == 0) return concat(other, "is the same in ", name(e_.out), ".");
    return concat(other, "changes by ", number(difference), " at most",
                  row_.length == 1 ? "." : concat(", at ", of("y", row_.eps_difference_at), "."));
  }

  void write_xhat() {
    const bool is_product = row_.given && row_.given->rstd;
    step(concat("xhat: ", norm_.has_mean ? "the deviations" : "x",
                is_product ? ", times rstd" : ", divided by s"));
    const double s = is_product ? *row_.given->rstd : row_.divisor(formula_.eps_on);
    const std::string dividend = norm_.has_mean ? concat("(", of("x"), " - mean)") : of("x");
    calculate(concat(of("xhat"), " = ", dividend,
                     is_product ? " * rstd = " : " / s = ", number(first().deviation),
                     is_product ? " * " : " / ", number(s), " = ", number(first().xhat)));
    if (std::isnan(row_.mean_square)) return;
    const bool is_rounded = e_.options.rounding.xhat;
    say(concat(
        is_rounded ? concat("It is rounded to ", name(e_.out), " here. Before that the") : "The",
        norm_.has_mean ? " sum of xhat is 0, and the" : "", " mean of its squares is ",
        near_one(row_.mean_square), why_not_one()));
  }

  std::string why_not_one() const {
    if (row_.mean_square == 1 || row_.divisor_without_eps == 0) return ".";
    const std::string division =
        formula_.ddof == 0 ? "" : concat("division by n - ", formula_.ddof);
    const bool has_eps = formula_.eps_on == EpsOn::max
                             ? row_.divisor(EpsOn::max) > row_.divisor_without_eps
                             : formula_.eps > 0;
    const std::string eps = has_eps ? "eps" : "";
    return concat(", not 1, because of ", joined({eps, division}, " and "), ".");
  }

  void write_y() {
    step(e_.weight && e_.bias ? "y: weight and bias"
         : e_.weight          ? "y: the weight"
         : e_.bias            ? "y: the bias"
                              : "y: xhat itself, as there is neither weight nor bias");
    const std::string weight = e_.options.zero_centered_weight ? "(1 + weight)" : "weight";
    calculate(concat("y = xhat", e_.weight ? concat(" * ", weight) : "", e_.bias ? " + bias" : "",
                     ", rounded to ", name(e_.out)));
    if (e_.weight || e_.bias) {
      std::string text = concat(of("y"), " = ", number(first().xhat));
      if (e_.weight) text += concat(" * ", factor(number(first().weight.high)));
      if (e_.bias) text += addend(number(first().bias.high));
      calculate(concat(text, " = ", number(first().y)));
    }
    if (e_.options.rounding.product) {
      say(concat("The product is rounded to ", name(e_.out), " before the bias is added."));
    }
  }

  void write_softmax() {
    step("Beside it: softmax of the same row");
    calculate(
        concat(of("softmax"), " = exp(", of("x"), ") / sum(exp(x)) = ", number(first().softmax)));
    if (row_.softmax.non_finite > 0) return say("It has no number here.");
    const Moments& x = row_.input;
    const Moments& softmax = row_.softmax;
    const std::string sum =
        concat("The sum is ", near_one(softmax.sum),
               softmax.sum == 1 ? "" : concat(", as each is rounded to ", name(e_.out)), ". ");
    if (std::isinf(x.min)) return say(sum + "What is -inf is masked: it gets 0.");
    // 64-bit integers may be equal in float64 alone.
    if (x.min == x.max && x.variance == 0) return say(sum + "Equal elements get equal shares.");
    const bool has_y = row_.output.non_finite == 0;
    const double difference = x.max - x.min;
    say(concat(sum, "The order of x is kept",
               softmax.min == softmax.max ? ", but rounding makes all shares equal"
               : softmax.min == 0         ? ", except what rounds to 0"
                                          : "",
               ", and differences are squeezed: the greatest is ",
               std::isinf(difference) ? "beyond float64"
               : difference == 0      ? "too small for float64"
                                      : number(difference),
               " in x, ", number(softmax.max - softmax.min), " in softmax. The variance is ",
               number(x.variance), " in x, ",
               has_y ? concat(near_one(row_.output.variance), " in y, ") : "",
               number(softmax.variance), " in softmax."));
  }

  void write_table() {
    std::vector<TableColumn> columns;
    std::vector<TableLine> lines;
    std::int64_t next = 0;
    for (const ExplainedElement& element : row_.elements) {
      if (element.number > next) lines.push_back({"...", {}});
      next = element.number + 1;
      TableLine& line = lines.emplace_back(TableLine{index(element.number), {}});
      line.is_bad = !std::isfinite(element.x.high);
      columns.clear();
      for (const auto& [key, value, words, column, came] : record_of(e_, element)) {
        if (words.empty() || std::holds_alternative<Absent>(value)) continue;
        columns.push_back({"", key == "square" ? deviation_squared_ : words});
        line.cells.push_back(cell_text(value, digits_));
      }
    }
    text_.line();
    Table({"", "element"}, columns, each_of(lines)).write(text_, style_.width);
  }

  // Lines of text.

  // chooses: between formulas.
  void step(const std::string& title, bool chooses = false) {
    const std::string legend = chooses ? concat(" (", arrow(), " in use)") : "";
    text_.line('\n', style_.heading(concat(++steps_, ". ", title, legend)));
  }
  void say(const std::string& text, std::size_t indent = 3) {
    if (!text.empty()) text_.raw(style_.folded(text, indent));
  }

  // The formulas one below another, what they are at the left; an arrow points at the one in use.
  void choose(const std::vector<Choice>& choices) {
    std::size_t widest = 0;
    for (const Choice& choice : choices) widest = std::max(widest, choice.label.size());
    for (const Choice& choice : choices) {
      calculate(concat(padded(choice.label + ':', widest + 2), choice.formula),
                choice.is_used ? arrow() : "");
    }
  }

  // A formula, which goes on below before an equals sign. mark: at the left.
  void calculate(const std::string& text, const std::string& mark = "") {
    std::string line = padded("   " + mark, kIndent);
    for (std::size_t start = 0; start < text.size();) {
      const std::size_t end = std::min(text.find(" = ", start + 1), text.size());
      const std::string piece = text.substr(start, end - start);
      const auto width = static_cast<std::size_t>(style_.width);
      if (start > 0 && character_count(line) + character_count(piece) > width) {
        write_reduced(line);
        line.assign(kIndent + 1, ' ');
      }
      line += piece;
      start = end;
    }
    write_reduced(line);
  }

  // Text behind its indent.
  void write_reduced(const std::string& line) {
    const std::size_t text = line.find_first_not_of(' ');
    say(line.substr(text), text);
  }

  // Parts of them.

  const ExplainedElement& first() const { return row_.elements.front(); }
  bool has_fractions() const { return is_floating(row_.dtype); }

  std::string number(double value) const { return rounded_text(value, digits_); }
  std::string number_or_none(double value) const {
    return std::isnan(value) ? "no number" : number(value);
  }
  // With as many digits as it takes to see that it is not 1.
  std::string near_one(double value) const {
    std::string text = number(value);
    for (int digits = digits_; text == "1" && value != 1 && digits < 17;) {
      text = rounded_text(value, ++digits);
    }
    return text;
  }
  std::string x_text(const ExplainedElement& element) const {
    return has_fractions() ? number(element.x.high) : value_text(element.x, row_.dtype);
  }
  std::string square_text(const ExplainedElement& element) const { return number(element.square); }

  static std::string factor(const std::string& text) {
    return text.starts_with('-') ? concat("(", text, ")") : text;
  }
  static std::string addend(const std::string& text) {
    return text.starts_with('-') ? concat(" - ", text.substr(1)) : concat(" + ", text);
  }

  std::string sum_of(std::string (ExplanationText::*text_of)(const ExplainedElement&) const) const {
    const std::vector<ExplainedElement>& elements = row_.elements;
    const std::size_t shown = elements.size() <= kMaxAddends ? elements.size() : kFirstAddends;
    std::string sum = (this->*text_of)(elements.front());
    for (std::size_t i = 1; i < shown; ++i) sum += addend((this->*text_of)(elements[i]));
    if (shown < elements.size()) sum += concat(" + ...", addend((this->*text_of)(elements.back())));
    return sum;
  }

  std::string arrow() const { return style_.utf8 ? "→" : ">"; }

  std::string root_of(const std::string& text) const {
    if (!style_.utf8) return concat("sqrt(", text, ")");
    return text.find(' ') == text.npos ? concat("√", text) : concat("√(", text, ")");
  }

  std::string index(std::int64_t number) const {
    return index_text(number, extents(e_.x.shape, e_.axes));
  }
  // "x[0]", "x[0, 2]"; without a number, of the first element.
  std::string of(std::string_view what) const { return of(what, first().number); }
  std::string of(std::string_view what, std::int64_t number) const {
    std::string at = index(number);
    if (at.starts_with('(')) at = at.substr(1, at.size() - 2);
    return concat(what, "[", at, "]");
  }

  const Explanation& e_;
  const ExplainedRow& row_;
  const Formula& formula_;
  const Norm& norm_;
  int digits_;
  TextWriter text_;
  const Style& style_;
  std::string deviation_squared_;
  std::string var_;
  int steps_ = 0;
};

Record record_of(const Moments& moments) {
  return {{"sum", moments.sum},
          {"mean", moments.mean},
          {"variance", moments.variance},
          {"min", moments.min},
          {"max", moments.max}};
}

// The row has what a row of stats has, and more.
Record row_record(const Explanation& e) {
  const ExplainedRow& row = e.row;
  std::vector<Shape> non_finite;  // the first elements that are
  for (const std::int64_t element : row.non_finite) {
    non_finite.push_back(index_in_file(e.x, e.axes, e.number, element));
  }
  std::vector<Record> elements;
  for (const ExplainedElement& element : row.elements) elements.push_back(record_of(e, element));
  const bool is_rstd = row.given && row.given->rstd;
  const auto divisor = [&](double s) { return is_rstd ? Value() : Value(s); };
  const bool has_difference = row.eps_difference_at >= 0;
  return {{"row", e.number},
          {"index", index_of(e.number, row_shape(e.x.shape, e.axes))},
          {"row_length", row.length},
          {"non_finite", row.input.non_finite},
          {"non_finite_indices", non_finite},
          {"output_non_finite", row.output.non_finite},
          {"input", record_of(row.input)},
          {"given.mean", row.given ? Value(row.given->mean) : Absent()},
          {"given.rstd", is_rstd ? Value(row.given->rstd) : Absent()},
          {"given.variance", row.given && !is_rstd ? Value(row.variance) : Absent()},
          {"squares", row.squares},
          {e.options.formula.has_mean() ? "variance" : "mean_of_squares",
           Record{{"biased", row.biased},
                  {"unbiased", row.unbiased},
                  {"used", is_rstd ? Value() : Value(row.variance)}}},
          {"divisor.eps_on_variance", divisor(row.divisor(EpsOn::variance))},
          {"divisor.eps_on_std", divisor(row.divisor(EpsOn::std))},
          {"divisor.eps_on_max", divisor(row.divisor(EpsOn::max))},
          {"divisor.without_eps", divisor(row.divisor_without_eps)},
          {"eps_difference.max", has_difference ? Value(row.eps_difference) : Value()},
          {"eps_difference.element", has_difference ? Value(row.eps_difference_at) : Value()},
          {"xhat.mean_square", row.given ? Value() : Value(row.mean_square)},
          {"output.mean", row.output.mean},
          {"output.variance", row.output.variance},
          {"softmax", record_of(row.softmax)},
          {"elements", std::move(elements)}};
}

}  // namespace

void write_text(const Explanation& explanation, int digits, const Style& style, ByteSink& bytes) {
  ExplanationText(explanation, digits, {style, bytes}).write();
}

void write_json(const Explanation& e, ByteSink& bytes) {
  Record report = normalization_record(e.x, e.out, e.axes, e.options.formula);
  report.insert(report.end(), {{"weight", e.weight},
                               {"zero_centered_weight", e.options.zero_centered_weight},
                               {"bias", e.bias},
                               {"residual", e.residual},
                               {"round", rounded_steps(e.rounds_sum, e.options.rounding)},
                               {"rows", std::vector<Record>{row_record(e)}}});
  write_json("explain", report, bytes);
}

}  // namespace lnorm
