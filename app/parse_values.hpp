#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "arguments.hpp"
#include "lnorm/core/dtype.hpp"
#include "lnorm/measure/criteria.hpp"
#include "lnorm/pipeline/pairs.hpp"

// The values of options from their text. Each throws Error, which names the option, if the text is anything
// else.
namespace lnorm::app {

std::int64_t parse_integer(const std::string& option, std::string_view text);

std::uint64_t parse_count(const std::string& option, std::string_view text, std::uint64_t least = 0,
                          std::uint64_t most = UINT64_MAX);

// The float64 nearest to the decimal, which must not be beyond the largest.
double parse_real(const std::string& option, const std::string& text);

// The same, but returns whether the text is a decimal. Beyond the largest float64 the value is infinity.
bool parse_real(std::string_view text, double& value);

// A finite number, 0 or more.
double parse_not_negative(const std::string& option, const std::string& text);

// From -1 to 1.
double parse_cosine(const std::string& option, const std::string& text);

// N or P% of --max-mismatched.
MismatchLimit parse_mismatch_limit(const std::string& text);

// Integers with commas between them, as 3,4 or [3,4] or (3, 4).
std::vector<std::int64_t> parse_list(const std::string& option, std::string_view text);

// A:B of --rows.
RowRange parse_rows(const std::string& text);
// The same text again, as "5:8" or ":-1".
std::string range_text(const RowRange& range);

// One of the choices (float32|float64), in any case, also as f32, <f4 or torch.float32.
DType parse_dtype(const std::string& option, const std::string& text, std::string_view choices);

// PATTERN=NEW of --rename: up to the first '='.
Renaming parse_renaming(const std::string& text);

// PATTERN=RTOL,ATOL of --tolerance: up to the last '='.
ToleranceOfNames parse_tolerance(const std::string& text);

}  // namespace lnorm::app
