#include "program.hpp"

int main(int argc, char** argv) {
  lnorm::app::set_up_process();
  return lnorm::app::run_program(argc, argv);
}
