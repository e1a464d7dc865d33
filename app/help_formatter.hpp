#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>

namespace lnorm::app {

// Help as CLI11 prints it, but no line is longer than 80 characters.
class HelpFormatter final : public CLI::Formatter {
 public:
  // launcher: stands before the program's name in usage.
  explicit HelpFormatter(std::string launcher) : launcher_(std::move(launcher)) {}

  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_subcommand(const CLI::App* command) const override;

 private:
  std::string launcher_;
};

}  // namespace lnorm::app
