#include "open_output.hpp"

#include <filesystem>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm::app {

namespace {

// For a file that cannot be made: its folder may not be there.
std::string hint_for_folder(const std::string& path) {
  std::string folder = std::filesystem::path(path).parent_path().string();
  std::error_code error;
  const bool is_missing = !folder.empty() && !std::filesystem::exists(folder, error) && !error;
  if (folder.starts_with('-')) folder.insert(0, "./");
  return is_missing ? concat("mkdir -p ", shell_word(folder)) : "";
}

}  // namespace

void open_output(const std::string& option, const std::string& path,
                 const std::function<void()>& open) {
  try {
    open();
  } catch (const SystemError& error) {
    std::error_code ignored;
    const bool is_there = std::filesystem::exists(path, ignored);
    throw Error(concat("cannot ", is_there ? "write " : "create ", option, ' ', error.what()),
                hint_for_folder(path));
  } catch (const Error& error) {
    throw Error(concat(option, ' ', error.what()), error.hint());
  }
}

}  // namespace lnorm::app
