#include "complain.hpp"

#include <iostream>

namespace lnorm::app {

void tell(std::string_view message) { std::cerr << "lnorm: " << message << '\n'; }

int complain(std::string_view message, std::string_view hint) {
  tell(message);
  if (!hint.empty()) std::cerr << "hint: " << hint << '\n';
  return 2;
}

}  // namespace lnorm::app
