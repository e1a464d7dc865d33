#include <regex>
#include <sstream>

#include "support/commands.hpp"

// Help says what there is, and what it says is so.

namespace {

using namespace support;

const Words kAxes = "--axis --axes --normalized-shape"_w;
const Words kNormalization{"--eps",    "--eps-on",   "--ddof",   "--unbiased",
                           "--weight", "--gamma",    "--scale",  "--bias",
                           "--beta",   "--shift",    "--kernel", "--zero-centered-weight",
                           "--rms",    "--residual", "--round"};
const Words kInput = "--from --as --shape --offset --big-endian --rows --keep-going"_w;
const Words kOutput = "-o --output --to --dtype --saturate --output-scale --name --nan"_w;
const Words kPrint = "--precision --edgeitems --threshold --linewidth --sci-mode"_w;

const Words kNorms = "--groups --channel-axis --affine-axes"_w;
const Words kGiven = "--mean --rstd --variance"_w;

struct CommandHelp {
  std::string command;
  std::string usage;
  std::vector<Words> options;  // beside --help and --progress, which all have
};

const std::vector<CommandHelp> kCommands{
    {"apply",
     "lnorm [apply] [INPUT...] [OPTIONS]",
     {kAxes, kNorms, kGiven, kNormalization, kOutput, kPrint, kInput,
      "--save-mean --save-rstd --save-variance --save-sum --no-keepdim --threads --verbose"_w,
      "--quantize --quantize-axes --qmax --amax-min --amax-max --scale-min --scale-max "
      "--scale-power-of-two "
      "--scale-dtype --given-scale --save-scale"_w}},
    {"stats",
     "lnorm stats [INPUT...] [OPTIONS]",
     {kAxes, kNorms, kGiven, kNormalization, kInput,
      "--top --by --features --mask --softmax --histogram --all --digits --json --csv --color "
      "--threads --verbose"_w}},
    {"compare",
     "lnorm compare ACTUAL EXPECTED [OPTIONS]",
     {kAxes, kInput, {"--rtol",         "--atol",        "--max-ulp",
                      "--no-equal-nan", "--max-abs",     "--max-mismatched",
                      "--max-mean-abs", "--max-rmse",    "--min-cosine",
                      "--min-sqnr",     "--histogram",   "--common",
                      "--only",         "--skip",        "--rename",
                      "--tolerance",    "--worst",       "--by",
                      "--save-json",    "--save-junit",  "--max-diffs",
                      "--json",         "--csv",         "-q",
                      "--quiet",        "--color",       "--threads",
                      "--verbose",      "--page",        "--spec",
                      "--linewidth",    "--max-row-ulp", "--baseline",
                      "--factor",       "--rows-out",    "--mask",
                      "--all"}}},
    {"softmax",
     "lnorm softmax [INPUT...] [OPTIONS]",
     {kAxes, kInput, kOutput, kPrint, "--threads --verbose"_w}},
    {"convert",
     "lnorm convert [INPUT...] [OPTIONS]",
     {kInput, kPrint, "-o --output --to --dtype --saturate --name --nan --threads --verbose"_w}},
    {"grad",
     "lnorm grad [INPUT...] [OPTIONS]",
     {kAxes,
      kNorms,
      kInput,
      "-o --output --to --dtype --name --nan --residual --round"_w,
      kPrint,
      {"--dy", "--mean", "--rstd", "--variance", "--eps", "--eps-on", "--ddof", "--unbiased",
       "--weight", "--gamma", "--scale", "--kernel", "--zero-centered-weight", "--rms", "--dx",
       "--dweight", "--dbias", "--threads", "--verbose"}}},
    {"explain",
     "lnorm explain [INPUT...] [OPTIONS]",
     {kAxes, kNorms, kGiven, kNormalization, kInput,
      "--row --digits --json --color --threads --verbose"_w}},
    {"report",
     "lnorm report [INPUT...] [OPTIONS]",
     {kAxes, kNorms, kGiven, kNormalization, kInput,
      "-o --output --spec --softmax --all --threads --verbose"_w}},
    {"show",
     "lnorm show [INPUT...] [OPTIONS]",
     {kInput, kPrint, "--header --json --csv --color --threads"_w}},
};

// The options that stand at the beginning of a line of the help.
std::size_t count_options(const std::string& help) {
  std::istringstream lines(help);
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  -")) continue;
    std::string names;
    std::istringstream(line) >> names;
    count += 1 + static_cast<std::size_t>(std::count(names.begin(), names.end(), ','));
  }
  return count;
}

}  // namespace

TEST_CASE("help and version are results") {
  const std::string version = output_of({"--version"});
  CAPTURE(version);
  CHECK(std::regex_match(version,
                         std::regex("lnorm 0\\.8\\.0\n"
                                    "kernel [a-z0-9]+, the best of this machine\n"
                                    "built with Boost [0-9.]+(, [A-Za-z_0-9]+ [0-9.]+){7}\n")));
  const std::string help = output_of({"--help"});
  CHECK(output_of({"-h"}) == help);
  CHECK(contains(help, "Usage: lnorm [COMMAND] [INPUT...] [OPTIONS]\n"));
  for (const CommandHelp& c : kCommands) {
    CHECK(contains(help, "\n  " + c.command + " "));
  }
}

TEST_CASE("the help of a command lists its options and no others") {
  for (const CommandHelp& c : kCommands) {
    CAPTURE(c.command);
    const std::string brief = output_of({c.command, "--help"});
    CHECK(output_of({c.command, "-h"}) == brief);
    CHECK(output_of({"--help", c.command}) == brief);
    CHECK(output_of({"-h", c.command}) == brief);
    const std::string help = output_of({c.command, "--help", "all"});
    CHECK(contains(help, "Usage: " + c.usage + "\n"));
    Words options = "-h --help --progress"_w;
    for (const Words& group : c.options) options += group;
    for (const std::string& option : options) {
      CAPTURE(option);
      CHECK(std::regex_search(help, std::regex("\n  ([^ ]*,)?" + option + "[ ,\n]")));
    }
    CHECK(count_options(help) == options.size());
  }
}

TEST_CASE("help fits a screen, and help of all options says more") {
  for (const char* const command : {"apply", "stats", "compare", "softmax", "convert", "grad",
                                    "explain", "report", "show", "check", "mutants", "inputs"}) {
    CAPTURE(command);
    const std::string brief = output_of({command, "--help"});
    CHECK(std::count(brief.begin(), brief.end(), '\n') <= 50);
    CHECK(
        contains(brief, std::string("lnorm ") + command + " --help all describes all options.\n"));
    CHECK(output_of({command, "--help", "all"}).size() > brief.size());
  }
}

TEST_CASE("help fits 80 columns") {
  std::vector<Words> commands{{"--help"}};
  for (const CommandHelp& c : kCommands) {
    commands.push_back({c.command, "--help"});
    commands.push_back({c.command, "--help", "all"});
  }
  for (const std::string command : {"check", "mutants", "inputs"}) {
    commands.push_back({command, "--help"});
    commands.push_back({command, "--help", "all"});
  }
  for (const Words& command : commands) {
    std::istringstream lines(output_of(command));
    for (std::string line; std::getline(lines, line);) {
      CAPTURE(command, line);
      CHECK(line.size() <= 80);
      CHECK(!line.ends_with(' '));
    }
  }
}

TEST_CASE("the examples of the help run as printed, one after another in an empty folder") {
  const std::string path =
      std::filesystem::path(LNORM_BINARY).parent_path().string() + ":/usr/bin:/bin";
  std::vector<Words> commands{{"--help"}};
  for (const CommandHelp& c : kCommands) commands.push_back({c.command, "--help"});
  for (const Words& command : commands) {
    CAPTURE(command);
    const Workplace folder;
    const std::string help = output_of(command);
    REQUIRE(contains(help, "Examples:\n"));
    std::istringstream lines(help.substr(help.find("Examples:\n") + 10));
    int count = 0;
    for (std::string line; std::getline(lines, line) && line.starts_with("  ");) {
      CAPTURE(line);
      const Outcome outcome = run({.arguments = {"-c", line},
                                   .directory = folder.path().string(),
                                   .environment = {{"PATH", path}},
                                   .program = "/bin/sh"});
      CHECK(outcome.status == 0);
      CHECK(outcome.err == "");
      const bool to_a_file =
          line.find(" > ") != std::string::npos || line.find(" -o ") != std::string::npos;
      CHECK(outcome.out.empty() == to_a_file);
      count += line.find("lnorm ") != std::string::npos ? 1 : 0;
    }
    CHECK(count >= 2);
  }
}
