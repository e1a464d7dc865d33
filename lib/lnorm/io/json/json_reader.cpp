#include "lnorm/io/json/json_reader.hpp"

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <unordered_set>

#include "lnorm/core/dtype_table.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/json/json_number.hpp"
#include "lnorm/io/json/json_numbers.hpp"
#include "lnorm/io/json/json_text.hpp"
#include "lnorm/io/members.hpp"

namespace lnorm {

namespace {

namespace ondemand = simdjson::ondemand;

static_assert(kJsonPadding >= simdjson::SIMDJSON_PADDING);

// From here on looking at a text once more, before anything is made of it, pays.
constexpr std::size_t kLargeText = std::size_t{16} << 20;

// What Python's str() makes of a list.
constexpr const char* kReadPython =
    "what Python prints becomes JSON by sed -E 's/np\\.[a-z0-9_]+\\(([^()]*)\\)/\\1/g; y/()/[]/; "
    "s/nan/NaN/g; s/inf/Infinity/g; "
    "s/None/null/g; "
    "s/True/1/g; s/False/0/g' < 'FILE' > 'FILE.json'";

constexpr std::size_t kMaxKeys = 1'000'000;

// Walks one JSON text. Nesting is followed by recursion, which kMaxDims bounds.
class JsonReader {
 public:
  explicit JsonReader(const PaddedJson& json)
      : text_(json.name, json.text, json.line.value_or(1)), in_parallel_(json.in_parallel) {
    tensor_.info.name = json.line ? concat(json.name, ':', *json.line) : json.name;
    tensor_.info.dtype = json.dtype;
  }

  JsonTensor read() {
    const std::string_view content = text_behind_mark();
    return read_value_alone(content, value_of(content));
  }

  JsonTensor read_member(const JsonMember& member) {
    tensor_.info.name = concat(tensor_.info.name, ':', member.name);
    member_ = concat("['", member.name, "']");
    return read_value_alone(member.value, member.value);
  }

  std::optional<std::vector<JsonMember>> members() {
    const std::string_view content = text_behind_mark();
    const std::string_view value = value_of(content);
    if (value.front() != '{') return std::nullopt;
    check_depth(value);
    ondemand::object object = parse_object(content, value);
    std::vector<JsonMember> members = members_of(object, value.data());
    check_at_end();
    const auto is_field = [](const JsonMember& member) {
      return member.name == "shape" || member.name == "data" || member.name == "dtype";
    };
    const bool is_alone = members.size() == 1 && members[0].name == "data";
    const bool are_fields = !members.empty() && std::ranges::all_of(members, is_field);
    const bool is_tensor = contains(members, "shape") && contains(members, "data");
    if (is_tensor || (are_fields && !is_alone)) return std::nullopt;
    return members;
  }

 private:
  std::string_view text_behind_mark() const {
    const std::string_view content = behind_mark(text_.text());
    if (content.starts_with(kByteOrderMark))
      text_.fail(content.data(), "found a second byte order mark");
    return content;
  }

  std::string_view value_of(std::string_view content) const {
    const std::string_view value = trimmed_json(content);
    if (value.empty()) text_.fail(text_.end(), "found no value, expected a tensor");
    return value;
  }

  void check_depth(std::string_view value) const {
    // simdjson's index takes four bytes for every bracket: of what is all brackets it is not to be made. There
    // may be an object of objects of lists.
    const bool look = value.size() >= kLargeText;
    if (const char* const at = look ? text_.deeper_than(kMaxDims + 2, value.data()) : nullptr) {
      text_.fail(at, concat("lists are nested deeper than ", kMaxDims));
    }
  }

  ondemand::object parse_object(std::string_view content, std::string_view value) {
    parse(content);
    ondemand::object object;
    check(document_.get_object().get(object), value.data());
    return object;
  }

  // value: of content, at its ends; content is followed by SIMDJSON_PADDING bytes.
  JsonTensor read_value_alone(std::string_view content, std::string_view value) {
    if (read_json_numbers(value, tensor_, in_parallel_)) return std::move(tensor_);
    check_depth(value);
    if (value.front() == '{') {
      ondemand::object object = parse_object(content, value);
      const std::vector<JsonMember> members = members_of(object, value.data());
      check_at_end();
      read_described(content, object, members, value.data());
    } else if (value.front() == '[') {
      parse(content);
      ondemand::array array;
      check(document_.get_array().get(array), value.data());
      read_array(array, value.data(), 0);
      check_at_end();
    } else {
      read_root_scalar(value);
    }
    return std::move(tensor_);
  }

  const char* location() {
    const char* at = nullptr;
    const bool unknown = document_.current_location().get(at) != simdjson::SUCCESS;
    return unknown || at > text_.end() ? text_.end() : at;
  }

  void check(simdjson::error_code error, const char* start) {
    if (error == simdjson::SUCCESS) return;
    if (error == simdjson::INCOMPLETE_ARRAY_OR_OBJECT) {
      const char* const end = text_.end_of_value(start);
      if (end != nullptr && !text_.is_blank_from(end)) text_.fail_after_value(end);
      text_.fail(start, "what starts here is not closed: a ']' or '}' is missing");
    }
    if (error == simdjson::TAPE_ERROR) {
      const char* const at = location();
      const std::string_view before = trimmed_json({text_.begin(), at});
      if (before.ends_with(',') && *at == '}') text_.fail(at, "found a comma before }");
      text_.fail(at, concat("found ", text_.found(at), ", expected ",
                            expected_behind(before, *start == '{')));
    }
    text_.fail(location(), concat("not valid JSON: ", simdjson::error_message(error)));
  }

  // The grammar's next word.
  static std::string_view expected_behind(std::string_view before, bool is_object) {
    const auto begins_member = [](std::string_view text) {
      return text.ends_with('{') || text.ends_with(',');
    };
    if (is_object && begins_member(before)) return "a name in double quotes";
    if (is_object && before.size() > 1 && before.ends_with('"')) {
      const std::size_t quote = before.rfind('"', before.size() - 2);
      if (begins_member(trimmed_json(before.substr(0, quote)))) return "':'";
    }
    return "',' or the end of the list or object";
  }

  // content: followed by SIMDJSON_PADDING bytes.
  void parse(std::string_view content) {
    const simdjson::padded_string_view padded(content, content.size() + simdjson::SIMDJSON_PADDING);
    const simdjson::error_code error = parser_.iterate(padded).get(document_);
    if (error == simdjson::UTF8_ERROR) text_.fail_utf8();
    if (error == simdjson::UNCLOSED_STRING || error == simdjson::UNESCAPED_CHARS) {
      text_.fail_string();
    }
    if (error != simdjson::SUCCESS) {
      text_.fail(text_.begin(), concat("not valid JSON: ", simdjson::error_message(error)));
    }
  }

  void check_at_end() {
    const char* rest = nullptr;
    if (document_.current_location().get(rest) != simdjson::OUT_OF_BOUNDS)
      text_.fail_after_value(rest);
  }

  // Throws if a key is there twice: which of the two counts would be a guess.
  std::vector<JsonMember> members_of(ondemand::object& object, const char* at) {
    std::vector<JsonMember> members;
    std::unordered_set<std::string_view> seen;  // of the text, or of simdjson's buffer of strings
    for (auto result : object) {
      ondemand::field field;
      check(std::move(result).get(field), at);
      const char* const key_at = field.key().raw() - 1;
      std::string_view key;
      check(field.unescaped_key().get(key), key_at);
      if (!seen.insert(key).second) {
        text_.fail(key_at, concat("key '", short_name(key), "' is there twice"));
      }
      if (members.size() == kMaxKeys) {
        text_.fail(key_at, concat("an object has more than ", kMaxKeys, " members"));
      }
      const std::string_view token = field.value().raw_json_token();
      if (token.find_first_of("]},:") == 0) {
        text_.fail(token.data(), concat("found ", text_.found(token.data()), ", expected a value"));
      }
      members.push_back({std::string(key), whole_value(token)});
    }
    return members;
  }

  // What begins with a token.
  std::string_view whole_value(std::string_view token) const {
    if (!token.starts_with('[') && !token.starts_with('{')) return trimmed_json(token);
    const char* const end = text_.end_of_value(token.data());
    const char* const stop = end == nullptr ? text_.end() : end;
    return {token.data(), static_cast<std::size_t>(stop - token.data())};
  }

  // The value of one of the keys, which are all that the object has. By its place: simdjson's own search does
  // not decode escapes, and what it decodes has room for every string of the text once only.
  ondemand::value field(ondemand::object& object, const std::vector<JsonMember>& members,
                        std::string_view key, const char* at) {
    auto before = find(members, key) - members.begin();
    bool not_empty;
    check(object.reset().get(not_empty), at);
    ondemand::value value;
    for (auto result : object) {
      ondemand::field field;
      check(std::move(result).get(field), at);
      if (before-- > 0) continue;
      value = field.value();
      break;
    }
    return value;
  }

  using Members = std::vector<JsonMember>;

  static Members::const_iterator find(const Members& members, std::string_view key) {
    return std::find_if(members.begin(), members.end(),
                        [&](const JsonMember& member) { return member.name == key; });
  }
  static bool contains(const Members& members, std::string_view key) {
    return find(members, key) != members.end();
  }

  // {"shape", "data", "dtype"}; or, as servers of models have it, {"name", "shape", "datatype", "data"} [KServe's Open
  // Inference Protocol].
  void read_described(std::string_view content, ondemand::object& object, const Members& names,
                      const char* at) {
    if (!contains(names, "shape") || !contains(names, "data")) {
      const bool has_one = contains(names, "shape") || contains(names, "data");
      text_.fail(at, concat("found an object of ", short_list(names), ", expected ",
                            has_one ? R"("shape" and "data")" : "a tensor"));
    }
    const std::string_view key = contains(names, "datatype") ? "datatype" : "dtype";
    for (const JsonMember& member : names) {
      const bool is_known =
          member.name == "shape" || member.name == "data" || member.name == key ||
          ((member.name == "name" || member.name == "parameters") && key == "datatype");
      if (is_known) continue;
      text_.fail(member.value.data(), concat("key '", short_name(member.name),
                                             R"(' is not known beside "shape" and "data")"));
    }
    if (contains(names, key)) {
      ondemand::value value = field(object, names, key, at);
      const char* const value_at = value.raw_json_token().data();
      std::string_view text;
      if (value.get_string().get(text) != simdjson::SUCCESS) {
        text_.fail(value_at, concat('"', key, R"(" is not a string, such as "float32")"));
      }
      const auto parsed = parse_dtype(lower_case(text));
      if (!parsed) {
        text_.fail(value_at, concat("dtype '", printable(text), "' is not supported, expected ",
                                    dtype_list(&DTypeRow::name)));
      }
      tensor_.info.dtype = *parsed;
    }
    const Shape shape = read_shape(object, names, at);
    const auto count = checked_product(shape);
    if (!count)
      text_.fail(at, concat("shape ", to_string(shape), " has more than 2^63 - 1 elements"));
    ondemand::value data = field(object, names, "data", at);
    const char* const data_at = data.raw_json_token().data();
    parser_ = ondemand::parser();  // whose index may take as much memory as the elements
    if (!read_json_numbers(find(names, "data")->value, tensor_, in_parallel_)) {
      object = parse_object(content, {at, 1});
      data = field(object, names, "data", at);
      read_value(data, 0);
    }
    const std::int64_t read = element_count(extents_);
    if (extents_ != shape && (extents_.size() > 1 || read != *count)) {
      text_.fail(data_at, concat(R"("data" has shape )", to_string(extents_), ", expected ",
                                 counted(*count, "element"), " for shape ", to_string(shape)));
    }
    extents_ = shape;
  }

  Shape read_shape(ondemand::object& object, const Members& names, const char* at) {
    ondemand::value value = field(object, names, "shape", at);
    const char* const value_at = value.raw_json_token().data();
    const auto what = R"("shape" is not a list of sizes, such as [2, 3])";
    ondemand::array array;
    if (value.get_array().get(array) != simdjson::SUCCESS) text_.fail(value_at, what);
    Shape shape;
    for (auto result : array) {
      ondemand::value element;
      check(std::move(result).get(element), value_at);
      std::int64_t extent;
      if (element.get_int64().get(extent) != simdjson::SUCCESS || extent < 0)
        text_.fail(value_at, what);
      if (shape.size() == kMaxDims) {
        text_.fail(value_at, concat(R"("shape" has more than )", kMaxDims, " dimensions"));
      }
      shape.push_back(extent);
    }
    return shape;
  }

  // The place of an element or a row, as in "row 2" or "[2][0]".
  std::string index_path(std::size_t depth) const {
    std::string path;
    for (std::size_t i = 0; i < depth; ++i) path += concat("[", index_[i], "]");
    return depth == 0 ? "the value" : path;
  }

  std::string row_path(std::size_t depth) const {
    if (depth == 0) return "the list";
    return depth == 1 ? concat("row ", index_[0]) : concat("row ", index_path(depth));
  }

  void read_value(ondemand::value& value, std::size_t depth) {
    const char* const at = value.raw_json_token().data();
    if (*at == ']') text_.fail(at, "found a comma before ]");
    const bool must_be_list = rank_known_ && depth < extents_.size();
    if (must_be_list && *at != '[') {
      fail_kind(*at, at, depth, concat("a list of ", extents_[depth]));
    }
    if (must_be_list || (!rank_known_ && *at == '[')) {
      ondemand::array array;
      check(value.get_array().get(array), at);
      return read_array(array, at, depth);
    }
    rank_known_ = true;
    read_scalar(value, depth);
  }

  void read_array(ondemand::array& array, const char* at, std::size_t depth) {
    if (depth == kMaxDims) text_.fail(at, concat("lists are nested deeper than ", kMaxDims));
    // The first list of each depth says how long the others must be.
    const bool first = depth == extents_.size();
    if (first) {
      extents_.push_back(-1);
      index_.push_back(0);
    }
    std::int64_t count = 0;
    for (auto result : array) {
      ondemand::value element;
      check(std::move(result).get(element), at);
      if (first || count < extents_[depth]) {
        index_[depth] = count;
        read_value(element, depth + 1);
      }
      ++count;
    }
    if (first) {
      rank_known_ = true;  // an empty list has nothing below it that would tell
      extents_[depth] = count;
    } else if (count != extents_[depth]) {
      text_.fail(at, concat(row_path(depth), " has ", counted(count, "element"), ", expected ",
                            extents_[depth]));
    }
  }

  void read_scalar(ondemand::value& value, std::size_t depth) {
    const std::string_view token = value.raw_json_token();
    if (append_json_element(value, tensor_.info.dtype, tensor_.elements)) return;
    fail_scalar(value, trimmed_json(token), token.data(), depth);
  }

  // simdjson reads a number at the root by other rules than one in a list: make it a list.
  void read_root_scalar(std::string_view content) {
    if (content.find_first_of("]},:") == 0) {
      text_.fail(content.data(),
                 concat("found ", text_.found(content.data()), ", expected a tensor"));
    }
    const simdjson::padded_string list(concat("[", content, "]"));
    parse(list);
    ondemand::array array;
    check(document_.get_array().get(array), content.data());
    ondemand::value value;
    check((*array.begin()).get(value), content.data());
    const std::string_view token = trimmed_json(value.raw_json_token());
    if (!append_json_element(value, tensor_.info.dtype, tensor_.elements)) {
      fail_scalar(value, token, content.data(), 0);
    }
    if (token.size() < content.size()) text_.fail_after_value(content.data() + token.size());
  }

  [[noreturn]] void fail_scalar(ondemand::value& value, std::string_view token, const char* at,
                                std::size_t depth) {
    const std::string_view expected = "a number";
    const bool is_word = token == "true" || token == "false";
    if (is_word || token.find_first_of(R"("[{)") == 0) fail_kind(token[0], at, depth, expected);
    const auto shown = concat(index_path(depth), " is '", printable(token.substr(0, 40)),
                              token.size() > 40 ? "..." : "", "'");
    double number;
    const auto parsed = std::from_chars(token.data(), token.data() + token.size(), number);
    const bool is_not_finite = token == "NaN" || token == "Infinity" || token == "-Infinity";
    if (is_not_finite || parsed.ec == std::errc::result_out_of_range ||
        value.get_double().get(number) == simdjson::SUCCESS) {
      text_.fail(at, concat(shown, ", which is not a value of ", name(tensor_.info.dtype)));
    }
    if (depth == 0) {
      text_.fail(at, concat(shown, ", expected ", expected),
                 hint_for_table(text_.name(), text_.text()));
    }
    const bool is_of_python = token.find_first_of("nifNTF-(") == 0 && token != "-";
    text_.fail(at, concat(shown, ", expected ", expected),
               is_of_python ? hint_about(text_.name(), kReadPython) : "");
  }

  [[noreturn]] void fail_kind(char first, const char* at, std::size_t depth,
                              std::string_view expected) const {
    // The body of a request to a server of models is a list of tensors.
    const bool has_data =
        text_.from(at).substr(0, 4096).find(R"("data")") != std::string_view::npos;
    const bool is_plain = member_.find_first_of("\\\"$`!\n") == std::string::npos;  // to a shell
    text_.fail(
        at, concat(index_path(depth), " is ", json_kind(first), ", expected ", expected),
        first == '{' && depth == 1 && has_data && is_plain
            ? hint_about(
                  text_.name(),
                  concat(R"(the first object becomes a file by python3 -c "import json, sys; )",
                         "json.dump(json.load(sys.stdin)", member_,
                         R"sh([0], sys.stdout)" < 'FILE' > 'FILE.json')sh"))
        : first == 't' || first == 'f' ? "1 stands for true, 0 for false"
                                       : "");
  }

  JsonText text_;
  std::string member_;  // as Python has it, or empty
  InParallel in_parallel_;
  ondemand::parser parser_;
  ondemand::document document_;
  JsonTensor tensor_;
  Shape& extents_ = tensor_.info.shape;  // as far as they are known
  std::vector<std::int64_t> index_;
  bool rank_known_ = false;
};

}  // namespace

std::string_view json_kind(char first) noexcept {
  return first == '"'                   ? "a string"
         : first == 't' || first == 'f' ? "a boolean"
         : first == '['                 ? "a list"
         : first == '{'                 ? "an object"
                                        : "a number";
}

std::string short_list(const std::vector<JsonMember>& members) {
  return short_list(members.size(), [&](std::size_t i) { return members[i].name; });
}

JsonTensor read_json(const PaddedJson& json) { return JsonReader(json).read(); }

std::optional<std::vector<JsonMember>> json_members(const PaddedJson& json) {
  return JsonReader(json).members();
}

JsonTensor read_json_member(const PaddedJson& json, const JsonMember& member) {
  return JsonReader(json).read_member(member);
}

}  // namespace lnorm
