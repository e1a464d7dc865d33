#include "lnorm/report/junit.hpp"

#include <algorithm>

#include "lnorm/core/text.hpp"

namespace lnorm {

namespace {

// What XML has no character for, or editors do not show, stands as an escape; a backslash is doubled, so that two names
// never become one.  [XML 1.0, 2.2]
std::string xml_text(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0U;
    const std::string_view character = text.substr(i, 3);
    if (text[i] == '\xc2' && next >= 0x80 && next < 0xa0) {
      plain += {'\\', 'u', '0', '0', kHex[next >> 4], kHex[next & 15]};
      ++i;
    } else if (character == "\xef\xbf\xbe" || character == "\xef\xbf\xbf") {
      plain += character.back() == '\xbe' ? "\\ufffe" : "\\uffff";
      i += 2;
    } else {
      plain += concat(text[i] == '\\' ? "\\" : "", text[i]);
    }
  }
  return escaped(plain);
}

}  // namespace

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
    bytes.write(concat(R"(    <testcase name=")", xml_text(one.name), R"(" classname="lnorm.)",
                       command, R"(" time="0">)"));
    if (!one.skipped.empty()) {
      bytes.write(concat(R"(<skipped message=")", xml_text(one.skipped), R"("/>)"));
    } else if (!one.failure.empty()) {
      const std::string failure = xml_text(one.failure);
      bytes.write(concat(R"(<failure message=")", failure, R"(" type=")", type, R"(">)", failure));
      for (const std::string& line : one.lines) bytes.write('\n' + xml_text(line));
      bytes.write("</failure>");
    }
    bytes.write("</testcase>\n");
  }
  bytes.write("  </testsuite>\n</testsuites>\n");
}

}  // namespace lnorm
