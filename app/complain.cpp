#include "complain.hpp"

#include <iostream>

namespace lnorm::app {

int complain(std::string_view message, std::string_view hint) {
  std::cerr << "lnorm: " << message << '\n';
  if (!hint.empty()) std::cerr << "hint: " << hint << '\n';
  return 2;
}

}  // namespace lnorm::app
