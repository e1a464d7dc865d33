#include "lnorm/io/json/json_tensor.hpp"

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "lnorm/core/error.hpp"
#include "lnorm/core/nearest.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/json/json_reader.hpp"
#include "lnorm/io/json/json_text.hpp"
#include "lnorm/io/members.hpp"

namespace lnorm {

namespace {

// The parser counts bytes in 32 bits.
constexpr std::size_t kMaxText = 0xffffffff - kJsonPadding;

std::unique_ptr<TensorSource> source_of(JsonTensor tensor) {
  return std::make_unique<HeldTensor<RawBytes>>(std::move(tensor.info), std::move(tensor.elements));
}

// The rest of a file.
RawBytes read_file(const ByteSource& bytes, std::size_t size, const InParallel& in_parallel) {
  constexpr std::size_t kPart = std::size_t{1} << 20;
  RawBytes text;
  text.reserve(size + kJsonPadding);
  text.resize(size);
  std::atomic<std::size_t> read = 0;  // less than all if the file has been cut short
  in_parallel(static_cast<std::int64_t>((size + kPart - 1) / kPart), [&](std::int64_t part) {
    const std::size_t start = static_cast<std::size_t>(part) * kPart;
    read += bytes.read_at(static_cast<std::int64_t>(start),
                          std::span(text).subspan(start, std::min(kPart, size - start)));
  });
  text.resize(read);
  return text;
}

RawBytes read_text(ByteSource& bytes, const InParallel& in_parallel) {
  // What is no text says so early: a device that has no end (/dev/zero) is not read until memory is full.
  const auto start = bytes.peek(ByteSource::kLookAhead);
  const bool is_text = std::find(start.begin(), start.end(), std::byte{}) == start.end();
  const std::size_t most = is_text ? kMaxText + 1 : start.size();
  const auto size = static_cast<std::size_t>(bytes.remaining().value_or(0));
  RawBytes text;
  if (bytes.has_random_access() && size > 0) {
    text = read_file(bytes, std::min(size, most), in_parallel);
  } else {
    bytes.read(text, most);
  }
  if (text.size() > kMaxText) bytes.fail("JSON of more than 4 GiB; use .npy for large tensors");
  return text;
}

class JsonSet final : public TensorSet {
 public:
  JsonSet(ByteSource& bytes, const InParallel& in_parallel, DType dtype)
      : TensorSet(bytes.name()), text_(read_text(bytes, in_parallel)) {
    const std::size_t size = text_.size();
    text_.resize(size + kJsonPadding, std::byte{' '});  // simdjson looks at some of it
    json_ = {bytes.name(), as_text(text_).substr(0, size), {}, in_parallel, dtype};
    members_ = json_members(json_);
    if (!members_) info(0);
  }

  std::size_t size() const override { return members_ ? members_->size() : 1; }
  std::string tensor_name(std::size_t index) const override {
    return members_ ? (*members_)[index].name : "";
  }

  TensorInfo info(std::size_t index) const override {
    if (!latest_ || latest_index_ != index) {
      latest_.reset();
      latest_ = read(index);
      latest_index_ = index;
    }
    return latest_->info;
  }

  std::unique_ptr<TensorSource> open(std::size_t index) const override {
    info(index);
    return source_of(*std::exchange(latest_, std::nullopt));
  }

  Member describe(std::size_t index) const override {
    try {
      const TensorInfo x = info(index);
      return {tensor_name(index), std::string(lnorm::name(x.dtype)), x.shape,
              static_cast<std::int64_t>(latest_->elements.size())};
    } catch (const Error&) {
      if (!members_) throw;
      const std::string_view value = (*members_)[index].value;
      const bool has_kind = value.find_first_of("\"tf{") == 0;
      return {
          tensor_name(index), std::string(has_kind ? json_kind(value[0]) : "no tensor"), {}, {}};
    }
  }

 private:
  JsonTensor read(std::size_t index) const {
    return members_ ? read_json_member(json_, (*members_)[index]) : read_json(json_);
  }

  RawBytes text_;  // with its padding
  PaddedJson json_;
  std::optional<std::vector<JsonMember>> members_;  // unless it is one tensor without a name
  // What info has read, for open.
  mutable std::optional<JsonTensor> latest_;
  mutable std::size_t latest_index_ = 0;
};

// A text at hand, which gets the padding.
PaddedJson padded(const std::string& name, std::string& text, std::optional<std::int64_t> line,
                  DType dtype) {
  const std::size_t size = text.size();
  text.resize(size + kJsonPadding);
  return {
      .name = name, .text = std::string_view(text).substr(0, size), .line = line, .dtype = dtype};
}

[[noreturn]] void fail(const PaddedJson& json, const std::string& what, std::string hint = {}) {
  const JsonText text(json.name, json.text, json.line.value_or(1));
  text.fail(text.begin(), what, std::move(hint));
}

// Whether what a line has beside its tensor is JSON, perhaps with NaN.
bool is_passed_on(const PaddedJson& json, const JsonMember& member) {
  if (nlohmann::json::accept(member.value)) return true;
  try {
    return !nlohmann::json::parse(member.value).is_discarded();
  } catch (const nlohmann::json::out_of_range&) {
    return true;  // a number that no double holds
  } catch (const nlohmann::json::exception&) {
  }
  try {
    read_json_member(json, member);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::unique_ptr<TensorSet> open_json(std::unique_ptr<ByteSource> bytes,
                                     const InParallel& in_parallel, DType dtype) {
  return std::make_unique<JsonSet>(*bytes, in_parallel, dtype);
}

std::unique_ptr<TensorSource> parse_json(const std::string& name, std::string text,
                                         std::optional<std::int64_t> line, DType dtype) {
  const PaddedJson json = padded(name, text, line, dtype);
  const auto members = json_members(json);
  if (!members) return source_of(read_json(json));
  if (members->size() != 1) {
    fail(json, concat("found an object of ", short_list(*members), ", expected one tensor"));
  }
  JsonTensor tensor = read_json_member(json, members->front());
  tensor.info.name = line ? concat(name, ':', *line) : name;
  return source_of(std::move(tensor));
}

JsonLineMember parse_json_line_member(const std::string& name, std::string text, std::int64_t line,
                                      const std::string& member, DType dtype) {
  const PaddedJson json = padded(name, text, line, dtype);
  const auto members = json_members(json);
  if (!members) fail(json, concat("found no object with a member '", short_name(member), "'"));
  const auto found = std::find_if(members->begin(), members->end(),
                                  [&](const JsonMember& other) { return other.name == member; });
  if (found == members->end()) {
    fail(json, concat("there is no member '", short_name(member), "', only ", short_list(*members)),
         hint_to_nearest(name, nearest(member, members->size(),
                                       [&](std::size_t i) { return (*members)[i].name; })));
  }
  for (const JsonMember& other : *members) {
    if (&other != &*found && !is_passed_on(json, other)) {
      fail(json, concat("member '", short_name(other.name), "' is not valid JSON"));
    }
  }
  const char* const start = found->value.data();
  const char* const stop = start + found->value.size();
  return {source_of(read_json_member(json, *found)),
          {json.text.data(), start},
          {stop, json.text.data() + json.text.size()}};
}

}  // namespace lnorm
