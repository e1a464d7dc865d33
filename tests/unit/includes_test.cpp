// The house has one direction of includes; this is where it is written down.

#include <map>
#include <regex>
#include <set>

#include "support/catch.hpp"
#include "support/files.hpp"

namespace fs = std::filesystem;

TEST_CASE("every room of the library includes only the rooms below it", "[house]") {
  const std::map<std::string, std::set<std::string>> may_include{
      {"core", {"core"}},
      {"io", {"core", "io"}},
      {"kernel", {"core", "kernel"}},
      {"measure", {"core", "measure"}},
      {"layout", {"core", "io", "layout"}},
      {"diagnosis", {"core", "diagnosis", "kernel", "measure"}},
      {"pipeline", {"core", "diagnosis", "io", "kernel", "layout", "measure", "pipeline"}},
      {"report", {"core", "diagnosis", "io", "measure", "report"}},
      {"xtensor.hpp", {"core", "kernel", "layout", "pipeline"}},
  };
  // What of kernel/ others may include: its contracts.
  const std::set<std::string> contracts{"add.hpp",
                                        "affine.hpp",
                                        "backward.hpp",
                                        "column_gradients.hpp",
                                        "exact_row.hpp",
                                        "features.hpp",
                                        "gradient.hpp",
                                        "layer_norm.hpp",
                                        "moments.hpp",
                                        "parameter_gradients.hpp",
                                        "quantize.hpp",
                                        "rounding.hpp",
                                        "row_errors.hpp",
                                        "row_gradient.hpp",
                                        "row_normalizer.hpp",
                                        "rows.hpp",
                                        "softmax.hpp",
                                        "softmax_row.hpp"};
  const std::map<std::string, std::set<std::string>> homes_of{{"CLI/", {}},
                                                              {"mpi.h", {}},
                                                              {"hwy/", {"kernel"}},
                                                              {"tbb/", {"pipeline"}},
                                                              {"nlohmann/", {"io", "report"}},
                                                              {"simdjson.h", {"io"}},
                                                              {"xtensor/", {"xtensor.hpp"}},
                                                              {"zip.h", {"io"}},
                                                              {"zlib.h", {"io"}},
                                                              {"boost/", {"kernel"}},
                                                              {"protozero/", {"io"}}};
  const fs::path library = fs::path(LNORM_SOURCE_DIR) / "lib/lnorm";
  const std::regex include("#include [<\"]([^>\"]+)[>\"]");
  std::set<std::string> rooms_seen;
  for (const auto& entry : fs::recursive_directory_iterator(library)) {
    if (!entry.is_regular_file()) continue;
    const std::string room = fs::relative(entry.path(), library).begin()->string();
    rooms_seen.insert(room);
    const std::string text = support::read_file(entry.path());
    for (std::sregex_iterator match(text.begin(), text.end(), include), end; match != end;
         ++match) {
      const std::string header = (*match)[1];
      CAPTURE(entry.path().string(), header);
      if (header.starts_with("lnorm/")) {
        const std::string other = header.substr(6, header.find('/', 6) - 6);
        CHECK(may_include.at(room).contains(other));
        if (other == "kernel" && room != "kernel") CHECK(contracts.contains(header.substr(13)));
      } else if (room == "core") {
        CHECK(header.find('/') == std::string::npos);  // the standard library
      }
      for (const auto& [third_party, homes] : homes_of) {
        if (header.starts_with(third_party)) CHECK(homes.contains(room));
      }
    }
  }
  CHECK(rooms_seen.size() == may_include.size());
}

TEST_CASE("the library knows no options of the program", "[house]") {
  const fs::path library = fs::path(LNORM_SOURCE_DIR) / "lib/lnorm";
  const std::regex option("\"([^\"\n]*[ (])?--[a-z][^\"\n]*\"");
  for (const auto& entry : fs::recursive_directory_iterator(library)) {
    if (entry.path().extension() != ".cpp" && entry.path().extension() != ".hpp") continue;
    // The one table that says which options of the program give what a kernel does.
    if (entry.path().filename() == "wrong_kernels.cpp") continue;
    CAPTURE(entry.path().string());
    CHECK_FALSE(std::regex_search(support::read_file(entry.path()), option));
  }
}
