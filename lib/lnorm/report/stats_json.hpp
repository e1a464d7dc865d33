#pragma once

#include "lnorm/io/byte_sink.hpp"
#include "lnorm/measure/stats.hpp"

namespace lnorm {

// For programs: one JSON object on one line. Its keys:
//
//   schema            1
//   command           "stats"
//   input             {name, dtype, shape}
//   output_dtype      of the normalized tensor
//   axes              the normalized axes, counted from 0
//   eps, eps_on, ddof, rms    the formula; ddof is that of every variance here
//   weight, zero_centered_weight, bias    whether there were such
//   rows              [{row, index, non_finite, output_non_finite, input, output, softmax}]: the
//                     row's number and where it lies along the axes that are not normalized; the
//                     NaNs and infinities of the input and of the output; then input {mean,
//                     variance, min, max}, output {mean, variance}, and where softmax was asked for
//                     output.sum and softmax {sum, mean, variance}
//   summary           {rows, non_finite_rows, non_finite_elements, output_non_finite_rows,
//                     output_non_finite_elements, input, output, softmax}: the counts of the output
//                     are over the rows that are finite in the input; the rest is as in a row, but
//                     with {count, min, median, max} in the place of each number, taken over the
//                     rows without NaN and infinity in the input
//
// Numbers are float64; those that are not finite are the strings "NaN", "Infinity", "-Infinity". min
// and max are over what is not NaN.
void write_stats_json(const Stats& stats, ByteSink& bytes);

// One line a row, after a line of names: row,non_finite,output_non_finite,input_mean,... in full precision; nan, inf.
void write_stats_csv(const Stats& stats, ByteSink& bytes);

}  // namespace lnorm
