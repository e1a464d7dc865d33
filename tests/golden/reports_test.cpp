#include <cstdlib>
#include <set>
#include <sstream>

#include "support/commands.hpp"

// What the commands print, to the character: data/reports has for every line of the table a file
// with the command and what it printed. The files are never edited: after a change that is meant,
//   LNORM_ACCEPT=1 build/release/tests/lnorm_cli_tests "the reports are the accepted ones"
// writes them, and git diff shows what is to be looked at. That run fails, so that no other passes
// by accepting.

namespace {

using namespace support;

struct Report {
  std::string name;
  std::string arguments;  // run in data/
  std::string locale = "C.UTF-8";
};

const std::vector<Report> kReports{
    {"stats_lecture20", "stats seeds/lecture20/batch3.npy --softmax"},
    {"stats_lecture20_activations", "stats seeds/lecture20/activations.npy --unbiased"},
    {"stats_gpt_part2_activations", "stats seeds/gpt_part2/activations.npy --unbiased"},
    {"stats_two_leading_axes", "stats sample.npy"},
    {"stats_one_row", "stats sample.npy --axis 0"},
    {"stats_normalized_shape", "stats sample.json --normalized-shape 3,4 --eps 0"},
    {"stats_non_finite", "stats reports/non_finite.json --softmax"},
    {"stats_nothing_finite", "stats reports/nan_only.json --histogram"},
    {"stats_overflow", "stats sample.npy --weight 2.5e38 --histogram"},
    {"stats_scales", "stats reports/scales.json --softmax"},
    {"stats_integers", "stats reports/int64.json"},
    {"stats_many_rows", "stats corpus/good/medium_64x33_f4.npy"},
    {"stats_all_rows", "stats corpus/good/medium_64x33_f4.npy --all --softmax"},
    {"stats_histogram", "stats corpus/good/medium_64x33_f4.npy --histogram"},
    {"stats_histogram_ascii", "stats corpus/good/medium_64x33_f4.npy --histogram", "C"},
    {"stats_histogram_constant", "stats reports/scales.json --histogram --axis 0 --weight 0"},
    {"stats_rms", "stats sample.npy --rms --eps 0"},
    {"stats_eps_on_std", "stats sample.npy --eps-on std --ddof 2 --weight 2 --bias 0.5"},
    {"stats_no_dimensions", "stats corpus/good/shape_0d.npy"},
    {"stats_no_rows", "stats corpus/good/shape_2x0x4.npy --histogram"},
    {"stats_no_columns", "stats corpus/good/shape_0.npy"},
    {"stats_color", "stats reports/non_finite.json --color always --histogram"},
    {"stats_json", "stats reports/non_finite.json --softmax --unbiased --json"},
    {"stats_json_axes", "stats sample.npy --axes -2,-1 --eps 0 --eps-on std --json"},
    {"stats_json_no_dimensions", "stats corpus/good/shape_0d.npy --rms --json"},
    {"stats_json_no_rows", "stats corpus/good/shape_2x0x4.npy --json"},
    {"stats_csv", "stats reports/non_finite.json --softmax --csv"},
    {"stats_csv_no_rows", "stats corpus/good/shape_2x0x4.npy --csv"},

    {"explain_lecture20", "explain seeds/lecture20/batch3.npy"},
    {"explain_lecture20_activations",
     "explain seeds/lecture20/activations.npy --unbiased --eps 0 --row 1"},
    {"explain_step_by_step",
     "explain seeds/step_by_step/inputs.npy --normalized-shape 1,3 --row 1 --weight "
     "seeds/step_by_step/gamma.npy --bias seeds/step_by_step/beta.npy"},
    {"explain_eps_on_std", "explain seeds/eps_on_std/x.npy --eps-on std --row 2"},
    {"explain_ascii", "explain sample.npy --row 1,-1 --weight 2 --zero-centered-weight", "C"},
    {"explain_long_row", "explain corpus/good/large_20x100.json --row -1"},
    {"explain_non_finite", "explain reports/non_finite.json"},
    {"explain_constant", "explain reports/scales.json --axis 0 --weight 0 --bias -0.5"},
    {"explain_integers", "explain reports/int64.json --digits 17"},
    {"explain_rms", "explain sample.npy --rms --ddof 2 --row 1,2"},
    {"explain_rounded",
     "explain rounding/bfloat16.safetensors:x --rms --weight rounding/bfloat16.safetensors:weight "
     "--residual rounding/bfloat16.safetensors:residual --round sum,xhat"},
    {"explain_no_dimensions", "explain corpus/good/shape_0d.npy"},
    {"explain_no_elements", "explain corpus/good/shape_0.npy"},
    {"explain_color", "explain reports/non_finite.json --color always"},
    {"explain_json", "explain sample.npy --row 0,1 --weight 2 --bias 1 --json"},
    {"explain_json_rms", "explain reports/non_finite.json --rms --json"},

    {"compare_same", "compare sample.npy sample.npy"},
    {"compare_agree",
     "compare seeds/eps_on_std/eps_on_std.npy seeds/eps_on_std/layer_norm.npy --atol 1e-4"},
    {"compare_differ", "compare seeds/eps_on_std/eps_on_std.npy seeds/eps_on_std/layer_norm.npy"},
    {"compare_two_mismatches", "compare reports/y.json reports/ref.json"},
    {"compare_no_diffs", "compare reports/y.json reports/ref.json --max-diffs 0"},
    {"compare_one_diff", "compare reports/y.json reports/ref.json --max-diffs 1"},
    {"compare_max_ulp", "compare reports/y.json reports/ref.json --max-ulp 262144"},
    {"compare_max_ulp_agree", "compare reports/y.json reports/ref.json --max-ulp 2097152"},
    {"compare_shapes", "compare sample.npy seeds/lecture20/batch3.npy"},
    {"compare_no_dimensions", "compare corpus/good/shape_0d.npy sample.npy"},
    {"compare_no_elements", "compare corpus/good/shape_2x0x4.npy corpus/good/shape_2x0x4.npy"},
    {"compare_dtypes", "compare reports/float16.json reports/float64.json --rtol 0 --atol 0"},
    {"compare_dtypes_agree", "compare reports/float16.json reports/float64.json"},
    {"compare_integers", "compare reports/int64.json reports/int64_ref.json"},
    {"compare_non_finite", "compare reports/non_finite.json reports/non_finite_ref.json"},
    {"compare_no_equal_nan",
     "compare reports/non_finite.json reports/non_finite.json --no-equal-nan"},
    {"compare_nothing_finite", "compare reports/nan_only.json reports/nan_only.json"},
    {"compare_color", "compare reports/y.json reports/ref.json --color always"},
    {"compare_color_agree", "compare sample.npy sample.npy --color always"},
    {"compare_color_shapes", "compare sample.npy reports/int64.json --color always"},
    {"compare_json", "compare reports/y.json reports/ref.json --json --max-ulp 1"},
    {"compare_json_shapes", "compare sample.npy seeds/lecture20/batch3.npy --json"},
    {"compare_json_integers", "compare reports/int64.json reports/int64_ref.json --json"},
    {"compare_json_non_finite",
     "compare reports/non_finite.json reports/non_finite_ref.json --json --no-equal-nan"},

    {"show", "show seeds/lecture20/batch.npy"},
    {"show_header", "show seeds/lecture20/batch.npy --header"},
    {"show_header_color", "show corpus/good/dtype_be_i8.npy --header --color always"},
    {"show_header_no_dimensions", "show corpus/good/shape_0d.npy --header"},
    {"show_options", "show sample.json --precision 2 --edgeitems 1 --threshold 5 --linewidth 40"},

    {"softmax_text", "softmax seeds/lecture20/batch3.npy --to text"},
    {"softmax_json", "softmax seeds/lecture20/batch3.npy --to json"},
    {"softmax_axes", "softmax sample.npy --axes -2,-1 --dtype float64 --to text"},
    {"softmax_non_finite", "softmax reports/non_finite.json --to json --nan null"},
};

const std::string kFolder = data_file("reports");

Command command(const Report& report) {
  Words arguments;
  std::istringstream words(report.arguments);
  for (std::string word; words >> word;) arguments.push_back(word);
  return {.arguments = arguments,
          .directory = LNORM_DATA_DIR,
          .environment = {{"LC_ALL", report.locale}, {"NO_COLOR", ""}, {"TERM", "xterm"}}};
}

std::string transcript(const Report& report) {
  const Outcome outcome = run(command(report));
  CHECK(outcome.err == "");
  std::string text = "$ lnorm " + report.arguments + "\n" + outcome.out;
  if (outcome.status != 0) text += "exit status " + std::to_string(outcome.status) + "\n";
  return text;
}

std::string accepted(const std::string& path) {
  return std::filesystem::exists(path) ? read_file(path) : "nothing accepted yet";
}

}  // namespace

TEST_CASE("the reports are the accepted ones", "[reports]") {
  const char* const accept = std::getenv("LNORM_ACCEPT");
  const bool accepts = accept != nullptr && std::string(accept) == "1";
  std::string changed;
  for (const Report& report : kReports) {
    CAPTURE(report.name, report.arguments);
    const std::string path = kFolder + "/" + report.name + ".txt";
    const std::string printed = transcript(report);
    const std::string expected = accepted(path);
    if (accepts && printed != expected) {
      write_file(path, printed);
      changed += "\n  " + report.name;
    } else {
      CHECK(printed == expected);
    }
  }
  if (accepts) FAIL("LNORM_ACCEPT is set: reports were accepted, not tested. Changed:" << changed);
}

TEST_CASE("no report or input of one is left over", "[reports]") {
  std::set<std::string> used;
  for (const Report& report : kReports) {
    CAPTURE(report.name);
    CHECK(used.insert(report.name + ".txt").second);
    for (const std::string& word : command(report).arguments) {
      if (word.starts_with("reports/")) used.insert(word.substr(word.find('/') + 1));
    }
  }
  const Words files = list_directory(kFolder);
  CHECK(Words(used.begin(), used.end()) == files);
}
