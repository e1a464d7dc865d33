#include "lnorm/report/junit.hpp"

#include <algorithm>

#include "lnorm/core/text.hpp"

namespace lnorm {

void write_junit(std::string_view command, std::string_view type,
                 const std::vector<JunitCase>& cases, ByteSink& bytes) {
  const auto count = [&](std::string JunitCase::*text) {
    return std::count_if(cases.begin(), cases.end(),
                         [&](const JunitCase& one) { return !(one.*text).empty(); });
  };
  const std::string numbers =
      concat(R"( name="lnorm )", command, R"(" tests=")", cases.size(), R"(" failures=")",
             count(&JunitCase::failure), R"(" errors="0" time="0")");
  bytes.write(concat(R"(<?xml version="1.0" encoding="UTF-8"?>)", "\n<testsuites", numbers,
                     ">\n  <testsuite", numbers, R"( skipped=")", count(&JunitCase::skipped),
                     "\">\n"));
  for (const JunitCase& one : cases) {
    bytes.write(concat(R"(    <testcase name=")", escaped(one.name), R"(" classname="lnorm.)",
                       command, R"(" time="0">)"));
    if (!one.skipped.empty()) {
      bytes.write(concat(R"(<skipped message=")", escaped(one.skipped), R"("/>)"));
    } else if (!one.failure.empty()) {
      const std::string failure = escaped(one.failure);
      bytes.write(concat(R"(<failure message=")", failure, R"(" type=")", type, R"(">)", failure));
      for (const std::string& line : one.lines) bytes.write('\n' + escaped(line));
      bytes.write("</failure>");
    }
    bytes.write("</testcase>\n");
  }
  bytes.write("  </testsuite>\n</testsuites>\n");
}

}  // namespace lnorm
