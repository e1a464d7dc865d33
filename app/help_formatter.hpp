#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace lnorm::app {

// Help as CLI11 prints it, but no line is longer than 80 characters.
class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_subcommand(const CLI::App* command) const override;
};

}  // namespace lnorm::app
