#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lnorm/measure/comparison.hpp"
#include "lnorm/report/record.hpp"
#include "lnorm/report/style.hpp"

// What reports of comparisons say in the same words.
namespace lnorm {

// All that is found out of two tensors; what they must be like to agree.
Record record_of(const Comparison& comparison);
Record record_of(const Criteria& criteria);

// The dtype of both, or both dtypes.
std::string dtypes_text(const Comparison& comparison, std::string_view between);

// "tolerance rtol 1e-07 + atol 1e-07 and 1 ulp, max mismatched 1%"; without bounds of elements "criteria min sqnr 60 dB".
std::string criteria_text(const Criteria& criteria);

// What does not hold, with what was found: "max ulp 1 (2.5), tolerance (3 elements)".
std::string failures_text(const Criteria& criteria, const std::vector<Failure>& failures);

// "max ulp": the name of a criterion in a sentence.
std::string words_of(const CriterionRow& row);

// The bound of a criterion, as its option has it: "3", "1%"; empty if it was not given, or is no single number.
std::string bound_text(const Criteria& criteria, const CriterionRow& row);

// "actual = 1.0625 expected + 1"
std::string fit_text(const Fit& fit);

// A distance: "3", with a fraction three digits of it; "beyond" where the dtype has none.
std::string ulps_text(Ulps ulps, DType dtype);

// A distance in all its digits.
std::string exact_text(Ulps ulps);

// How many of all distances are small, and how large the greatest are: "0 in 12.5%, <= 1 in 80%, <= 1024 in all".
std::string ulp_shares_text(const Comparison& comparison);

// A title, and a line for every class of distances with its count, its share and a bar.
void write_ulp_histogram(std::string_view title, const Comparison& comparison, TextWriter& text);

}  // namespace lnorm
