#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lnorm/core/shape.hpp"
#include "lnorm/diagnosis/check.hpp"

// What reports of checks say in the same words.
namespace lnorm {

// Where the worst element is, in the whole tensor.
Shape index_of(const Check& check, const WorstRatio& worst);

// "within rounding of layer norm of x.npy".
std::string verdict_sentence(const Check& check);

// "WORDS (IDS; OPTIONS)" of what explains an output that differs; empty where nothing does.
std::string cause_of(const Check& check);

// What is counted, and the worst element: each with its label.
std::vector<std::pair<std::string, std::string>> figure_words(const Check& check);

// What explains the errors, or comes nearest; the warning of a hidden bug.
std::vector<std::string> explanation_lines(const Check& check);

}  // namespace lnorm
