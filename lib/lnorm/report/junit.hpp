#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lnorm/io/byte_sink.hpp"

namespace lnorm {

// A test case of the XML that CI systems read: it failed, was skipped, or passed.
struct JunitCase {
  std::string name;
  std::string failure = {};             // in a sentence; empty: none
  std::vector<std::string> lines = {};  // more of it
  std::string skipped = {};             // why; empty: it was not
};

// The report of one command. type: of its failures. [testmoapp/junitxml]
void write_junit(std::string_view command, std::string_view type,
                 const std::vector<JunitCase>& cases, ByteSink& bytes);

}  // namespace lnorm
