#include "lnorm/io/safetensors/sharded.hpp"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "lnorm/core/error.hpp"
#include "lnorm/core/pattern.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/members.hpp"
#include "lnorm/io/safetensors/safetensors.hpp"

namespace lnorm {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxBytes = 100'000'000;

struct Entry {
  std::string tensor_name;
  std::size_t shard;
};

class ShardedSet final : public TensorSet {
 public:
  ShardedSet(ByteSource& bytes, const std::string& path)
      : TensorSet(bytes.name()), folder_(std::filesystem::path(path).parent_path()) {
    const Json index = parse(bytes);
    const auto map = index.is_object() ? index.find("weight_map") : index.end();
    if (map == index.end() || !map->is_object()) {
      fail("is no index of shards: it has no object \"weight_map\"");
    }
    std::map<std::string, std::size_t> numbers;
    for (const auto& [tensor_name, file] : map->items()) {
      if (!file.is_string()) {
        fail(concat("weight_map: '", short_name(tensor_name), "' is no name of a file"));
      }
      numbers.emplace(file.get<std::string>(), 0);
    }
    for (auto& [file, number] : numbers) {
      if (file.empty() || file == "." || file == ".." || file.find('/') != file.npos ||
          file.find('\0') != file.npos) {
        fail(concat("weight_map: '", short_name(file), "' is no file beside the index"));
      }
      number = shards_.size();
      shards_.push_back({file, nullptr});
    }
    for (const auto& [tensor_name, file] : map->items()) {
      entries_.push_back({tensor_name, numbers.at(file.get<std::string>())});
    }
    std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
      return natural_less(a.tensor_name, b.tensor_name);
    });
  }

  std::size_t size() const override { return entries_.size(); }
  std::string tensor_name(std::size_t index) const override { return entries_[index].tensor_name; }

  TensorInfo info(std::size_t index) const override {
    const auto [shard, within] = find(index);
    return shard->info(within);
  }
  std::unique_ptr<TensorSource> open(std::size_t index) const override {
    const auto [shard, within] = find(index);
    return shard->open(within);
  }
  Member describe(std::size_t index) const override {
    try {
      const auto [shard, within] = find(index);
      return shard->describe(within);
    } catch (const Error& error) {
      return {tensor_name(index), concat("(", error.what(), ")"), {}, {}};
    }
  }
  // Shard by shard.
  std::int64_t place(std::size_t index) const override {
    return static_cast<std::int64_t>(entries_[index].shard << 32 | index);
  }

 private:
  struct Shard {
    std::string file;
    std::shared_ptr<const TensorSet> tensors;  // null as long as nobody asks
  };

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(concat(printable(name()), ": ", what));
  }

  // Every key once: which of two counts would be a guess.
  Json parse(ByteSource& bytes) const {
    std::vector<std::byte> text;
    bytes.read(text, kMaxBytes + 1);
    if (text.size() > kMaxBytes) {
      fail(concat("an index of shards of more than ", kMaxBytes, " bytes"));
    }
    std::vector<std::set<std::string>> keys;
    const auto see = [&](int, Json::parse_event_t event, Json& value) {
      if (event == Json::parse_event_t::object_start) keys.emplace_back();
      if (event == Json::parse_event_t::object_end) keys.pop_back();
      if (event == Json::parse_event_t::key &&
          !keys.back().insert(value.get<std::string>()).second) {
        fail(concat("key '", short_name(value.get<std::string>()), "' is there twice"));
      }
      return true;
    };
    const auto* const begin = reinterpret_cast<const char*>(text.data());
    try {
      return Json::parse(begin, begin + text.size(), see);
    } catch (const Json::parse_error& error) {
      fail(concat("not valid JSON at byte ", error.byte));
    }
  }

  std::pair<std::shared_ptr<const TensorSet>, std::size_t> find(std::size_t index) const {
    const Entry& entry = entries_[index];
    Shard& shard = shards_[entry.shard];
    if (!shard.tensors) {
      try {
        shard.tensors = open_safetensors(open_file((folder_ / shard.file).string()));
      } catch (const Error& error) {
        throw Error(concat(printable(name()), ": tensor '", short_name(entry.tensor_name),
                           "': ", error.what()),
                    error);
      }
    }
    const auto within = shard.tensors->find(entry.tensor_name);
    if (!within) {
      fail(concat("tensor '", short_name(entry.tensor_name), "' is not in its shard ",
                  printable(shard.file)));
    }
    return {shard.tensors, *within};
  }

  std::filesystem::path folder_;
  std::vector<Entry> entries_;
  mutable std::vector<Shard> shards_;
};

}  // namespace

bool is_index_of_shards(std::string_view path) noexcept { return path.ends_with(".index.json"); }

std::unique_ptr<TensorSet> open_shards(std::unique_ptr<ByteSource> bytes, const std::string& path) {
  return std::make_unique<ShardedSet>(*bytes, path);
}

}  // namespace lnorm
