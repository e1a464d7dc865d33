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

struct Shard {
  std::int64_t number = 0;
  std::shared_ptr<const TensorSet> tensors = nullptr;  // as long as nobody asks
};
using Shards = std::map<std::string, Shard>;  // by the names of their files

struct Entry {
  std::string tensor_name;
  Shards::value_type* shard;
};

class ShardedSet final : public TensorSet {
 public:
  explicit ShardedSet(ByteSource& bytes)
      : TensorSet(bytes.name()), folder_(std::filesystem::path(name()).parent_path()) {
    const Json index = parse(bytes);
    const auto map = index.is_object() ? index.find("weight_map") : index.end();
    if (map == index.end() || !map->is_object()) {
      fail("is no index of shards: it has no object \"weight_map\"");
    }
    for (const auto& [tensor_name, file] : map->items()) {
      if (!file.is_string()) {
        fail(concat("weight_map: '", short_name(tensor_name), "' is no name of a file"));
      }
      entries_.push_back({tensor_name, &*shards_.try_emplace(file.get<std::string>()).first});
    }
    std::int64_t number = 0;
    for (auto& [file, shard] : shards_) {
      if (file.empty() || file == "." || file == ".." || file.find('/') != file.npos ||
          file.find('\0') != file.npos) {
        fail(concat("weight_map: '", short_name(file), "' is no file beside the index"));
      }
      shard.number = number++;
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
    return entries_[index].shard->second.number << 32 | static_cast<std::int64_t>(index);
  }

 private:
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
    try {
      return Json::parse(as_text(text), see);
    } catch (const Json::parse_error& error) {
      fail(concat("not valid JSON at byte ", error.byte));
    }
  }

  std::pair<std::shared_ptr<const TensorSet>, std::size_t> find(std::size_t index) const {
    const std::string& tensor_name = entries_[index].tensor_name;
    auto& [file, shard] = *entries_[index].shard;
    if (!shard.tensors) {
      try {
        shard.tensors = open_safetensors(open_file((folder_ / file).string()));
      } catch (const Error& error) {
        throw Error(
            concat(printable(name()), ": tensor '", short_name(tensor_name), "': ", error.what()),
            error);
      }
    }
    const auto within = shard.tensors->find(tensor_name);
    if (!within) {
      fail(concat("tensor '", short_name(tensor_name), "' is not in its shard ", printable(file)));
    }
    return {shard.tensors, *within};
  }

  std::filesystem::path folder_;
  Shards shards_;  // opened as tensors of them are asked for
  std::vector<Entry> entries_;
};

}  // namespace

bool is_index_of_shards(std::string_view path) noexcept { return path.ends_with(".index.json"); }

std::unique_ptr<TensorSet> open_shards(std::unique_ptr<ByteSource> bytes) {
  return std::make_unique<ShardedSet>(*bytes);
}

}  // namespace lnorm
