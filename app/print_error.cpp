#include "print_error.hpp"

#include <iostream>

#include "lnorm/core/text.hpp"
#include "lnorm/io/byte_sink.hpp"
#include "options.hpp"

namespace lnorm::app {

// In one write: others may write to the same place.
void print_note(std::string_view message) {
  if (std::string* const captured = CapturedOutputs::find(kStandardError)) {
    *captured += concat(captured->empty() ? "" : "\n", message);
  } else {
    std::cerr << concat("lnorm: ", message, '\n');
  }
}

std::string hint_of(const Error& error) {
  const Remedy& remedy = error.remedy();
  if (remedy.setting == Remedy::Setting::none) return error.hint();
  std::string advice;
  for (const Option& option : all_options()) {
    if (option.advice.setting == remedy.setting) advice = option.advice.text;
  }
  const std::size_t value = advice.find("{}");
  if (value != advice.npos) advice.replace(value, 2, remedy.value);
  return concat(error.hint(), error.hint().empty() ? "" : "; ", advice);
}

int print_error(std::string_view message, std::string_view hint) {
  print_note(hint.empty() ? std::string(message) : concat(message, "\nhint: ", hint));
  return 2;
}

int print_error(const Error& error) { return print_error(error.what(), hint_of(error)); }

}  // namespace lnorm::app
