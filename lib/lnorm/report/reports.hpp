#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lnorm/diagnosis/check.hpp"
#include "lnorm/diagnosis/mutants.hpp"
#include "lnorm/io/byte_sink.hpp"
#include "lnorm/io/tensor_set.hpp"
#include "lnorm/measure/explanation.hpp"
#include "lnorm/measure/features.hpp"
#include "lnorm/measure/set_comparison.hpp"
#include "lnorm/measure/stats.hpp"
#include "lnorm/report/style.hpp"

// All reports, each in its formats. Text is for people. JSON is one object on one line, and docs/reports.md has its keys.
// CSV is a line of names, and lines of values in full precision; what there is not is empty.
namespace lnorm {

// ---- Statistics of one tensor.

struct StatsTextOptions {
  bool all = false;  // rows, not the first and the last of many
  int digits = 3;    // significant ones
};

// The text has what was measured and how rows are numbered, a table of the rows, a summary over the
// rows, and the histograms if there are any. The table is no wider than the style's width: columns
// that do not fit follow below.
void write_text(const Stats& stats, const StatsTextOptions& options, const Style& style,
                ByteSink& bytes);

void write_json(const Stats& stats, ByteSink& bytes);

// One line a row, after a line of names: row,non_finite,output_non_finite,input_mean,... in full precision; nan, inf. Where rows
// have several axes index comes last.
void write_csv(const Stats& stats, ByteSink& bytes);

// ---- Statistics of many tensors, a line each.

// The text has what all tensors have in common, a table no wider than the style's width, and a
// total; columns that do not fit follow below, and long names are abbreviated.
// top: those that are reported, in place of all.
void write_text(std::span<const NamedStats> tensors, const std::optional<Top>& top, int digits,
                const Style& style, ByteSink& bytes);

void write_json(std::span<const NamedStats> tensors, const std::optional<Top>& top,
                ByteSink& bytes);

void write_csv(std::span<const NamedStats> tensors, const std::optional<Top>& top, ByteSink& bytes);

// ---- Statistics of the features of a tensor: the elements of its rows, over all rows.

// What is reported: the first and the last ones, all, or those that stand out.
struct FeatureReport {
  StatsTextOptions text;
  std::optional<Top> top;
  std::optional<std::string> tensor = {};  // of several: CSV has this name in a column
  bool has_names = true;                   // CSV begins with the line of names
  InParallel in_parallel = one_by_one;     // for what is made of features
};
void write_text(const FeatureStats& stats, const FeatureReport& options, const Style& style,
                ByteSink& bytes);
void write_json(const FeatureStats& stats, const FeatureReport& options, ByteSink& bytes);

// What stands out, and the words for it: features that are dead, and the largest |x|.
std::vector<std::pair<std::string, std::string>> feature_words(const FeatureStats& stats,
                                                               const FeatureSummary& summary,
                                                               int digits);

// feature,mean,variance,absmax,zeros,non_finite; of several tensors their name first.
void write_csv(const FeatureStats& stats, const FeatureReport& options, ByteSink& bytes);

// The end of the text of several tensors; nothing if no feature stands out in two.
void write_text(const SharedFeatures& features, const Style& style, ByteSink& bytes);

// ---- Comparisons of two tensors, and of two sets.

// The text has the verdict, the counts, the greatest differences, what the errors are like, the
// worst elements and the first mismatches. histogram: draws the distances in ulp.
void write_text(const Comparison& comparison, bool histogram, const Style& style, ByteSink& bytes);

// Writes the verdict on a set, a line a tensor, the names that one set alone has, a summary. Of many tensors that agree
// it shows the first and the last, unless all are asked for. advice: its last line; empty if there is none.
void write_text(const SetComparison& set, const std::string& advice, bool all, bool histogram,
                const Style& style, ByteSink& bytes);

void write_json(const Comparison& comparison, ByteSink& bytes);
void write_json(const SetComparison& set, ByteSink& bytes);

// A test case a pair.
void write_junit(const Comparison& comparison, ByteSink& bytes);
void write_junit(const SetComparison& set, ByteSink& bytes);

// One line a tensor. docs/reports.md has the columns.
void write_csv(const Comparison& comparison, ByteSink& bytes);
void write_csv(const SetComparison& set, ByteSink& bytes);

// row,elements,mismatched,max_abs: of rows that fail; and index where rows have several axes.
void write_rows_csv(const Comparison& comparison, const InParallel& in_parallel, ByteSink& bytes);

// ---- What a kernel made of a tensor: right, or wrong and how.

// For people: the verdict, the worst element, what explains the errors, where they are.
void write_text(const Check& check, const Style& style, ByteSink& bytes);
// Of several tensors: a line each, with what explains those that differ, and a summary.
void write_text(const std::vector<NamedCheck>& checks, const Style& style, ByteSink& bytes);

void write_json(const Check& check, ByteSink& bytes);
void write_json(const std::vector<NamedCheck>& checks, ByteSink& bytes);

// What text and pages say in the same words.

// "within rounding of layer norm of x.npy".
std::string verdict_sentence(const Check& check);

// What is counted, and the worst element: each with its label.
std::vector<std::pair<std::string, std::string>> figure_words(const Check& check);

// What explains the errors, or comes nearest; the warning of a hidden bug.
std::vector<std::string> explanation_lines(const Check& check);

// The JUnit XML that CI systems read: a test case a tensor. [testmoapp/junitxml]
void write_junit(const std::vector<NamedCheck>& checks, ByteSink& bytes);

// ---- Which wrong kernels a test would let through.

// The verdict, those that pass, how those that are caught are, and which are equivalent.
void write_text(const MutantReport& report, const Style& style, ByteSink& bytes);

void write_json(const MutantReport& report, ByteSink& bytes);

// A test case a wrong kernel; one that is equivalent is skipped.
void write_junit(const MutantReport& report, ByteSink& bytes);

// The table of wrong kernels, or of those that quantize: id, words, options.
void write_wrong_kernels_text(const ChooseKernel& choose, bool quantizes, const Style& style,
                              ByteSink& bytes);
void write_wrong_kernels_json(const ChooseKernel& choose, bool quantizes, ByteSink& bytes);

// ---- One row, explained.

// The text, for people who learn it, has each step as a formula and with the row's numbers in it,
// then a table of the elements. digits: significant ones. It is no wider than the style's width.
void write_text(const Explanation& explanation, int digits, const Style& style, ByteSink& bytes);

void write_json(const Explanation& explanation, ByteSink& bytes);

// ---- What a set of tensors holds, or some of it. Tensors that cannot be read are listed as well.

// The text has a line for each, name, dtype, shape and size, then the total; "no tensors" where
// there are none.
void write_text(std::span<const Member> members, ByteSink& bytes);

void write_json(std::span<const Member> members, ByteSink& bytes);

// name,dtype,shape,bytes
void write_csv(std::span<const Member> members, ByteSink& bytes);

}  // namespace lnorm
