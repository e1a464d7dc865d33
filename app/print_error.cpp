#include "print_error.hpp"

#include <iostream>

namespace lnorm::app {

void print_note(std::string_view message) { std::cerr << "lnorm: " << message << '\n'; }

int print_error(std::string_view message, std::string_view hint) {
  print_note(message);
  if (!hint.empty()) std::cerr << "hint: " << hint << '\n';
  return 2;
}

}  // namespace lnorm::app
