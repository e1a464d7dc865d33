#include "lnorm/io/json/json_numbers.hpp"

#include <nlohmann/json.hpp>

#include "lnorm/core/text.hpp"
#include "lnorm/pipeline/executor.hpp"
#include "support/catch.hpp"
#include "support/elements.hpp"
#include "support/files.hpp"
#include "support/pace.hpp"

namespace lnorm {
namespace {

using namespace support;
std::string nested(const Shape& shape, const std::vector<double>& values, const char* blank) {
  std::string text;
  const auto write = [&](auto& self, std::size_t axis, std::size_t first, std::size_t count) {
    if (axis == shape.size()) {
      text += nlohmann::json(values[first]).dump();
      return;
    }
    const auto extent = static_cast<std::size_t>(shape[axis]);
    text += concat('[', blank);
    for (std::size_t i = 0; i < extent; ++i) {
      if (i > 0) text += concat(',', blank);
      self(self, axis + 1, first + i * (count / extent), count / extent);
    }
    text += concat(blank, ']');
  };
  write(write, 0, 0, values.size());
  return text;
}

std::optional<JsonTensor> read_slices(std::string_view list, const InParallel& in_parallel) {
  JsonTensor tensor;
  if (!read_json_numbers(list, tensor, in_parallel)) return std::nullopt;
  return tensor;
}

TEST_CASE("large lists of numbers are read in slices", "[io][json]") {
  const std::vector<Shape> shapes{{60'000},         {1, 60'000},     {60'000, 1},
                                  {300, 200},       {3, 20'000},     {20'000, 3},
                                  {1, 1, 60'000},   {2, 30'000, 1},  {7, 1, 9000},
                                  {30, 1, 40, 50},  {5, 6, 7, 8, 9}, {2, 2, 2, 2, 2, 2, 2, 2, 300},
                                  {1, 20'000, 1, 3}};
  int number = 0;
  for (const Shape& shape : shapes) {
    const auto values = normals(element_count(shape), 1);
    for (const char* const blank : {"", " \n\t "}) {
      CAPTURE(to_string(shape), blank);
      if (!support::takes(number++, 4)) continue;
      const std::string text = nested(shape, values, blank);
      for (const InParallel& in_parallel : {InParallel(one_by_one), lnorm::in_parallel(3)}) {
        const auto found = read_slices(text, in_parallel);
        REQUIRE(found);
        CHECK(found->info.shape == shape);
        CHECK((elements_of<double>(found->elements) == values));
      }
    }
  }
}

TEST_CASE("what is no tensor is not read in slices", "[io][json]") {
  std::mt19937 random(7);
  std::size_t read = 0;
  for (const Shape& shape : {Shape{50'000}, Shape{50'000, 1}, Shape{100, 500}, Shape{8, 2500, 3}}) {
    const auto values = normals(element_count(shape), 1);
    const std::string good = nested(shape, values, "");
    for (int i = 0; i < support::share(60, 4); ++i) {
      std::string text = good;
      // One or two characters become others, often near each other, so that counts may stay as they were.
      std::size_t at = random() % text.size();
      for (int change = 0; change < 1 + i % 3; ++change) {
        if (i % 2 == 0) at = std::min(text.find_first_of(",[]", at), text.size() - 1);
        const std::string_view with = "[],10 \"{:";
        text[at] = with[random() % (i % 4 == 0 ? 3 : with.size())];
        at = (at + random() % 2000) % text.size();
      }
      const auto found = read_slices(text, one_by_one);
      if (!found) continue;
      ++read;
      CAPTURE(to_string(shape), i);
      const Nested expected = parse_nested(text);  // by another parser
      CHECK(found->info.shape == expected.shape);
      CHECK((elements_of<double>(found->elements) == expected.elements));
    }
  }
  CHECK(read > 0);
}

TEST_CASE("lists that only add up to a tensor are not read in slices", "[io][json]") {
  const auto row = [](std::size_t count) {
    std::string text = "[0";
    for (std::size_t i = 1; i < count; ++i) text += ",0";
    return text + "]";
  };
  const auto list = [&](const std::vector<std::size_t>& counts) {
    std::string text = "[";
    for (std::size_t i = 0; i < counts.size(); ++i) text += (i > 0 ? "," : "") + row(counts[i]);
    return text + "]";
  };
  const std::size_t large = 100'000;
  CHECK(read_slices(list({large, large}), one_by_one));
  CHECK(!read_slices(list({large, 2 * large}), one_by_one));
  CHECK(!read_slices(list({large, large + 1, large - 1}), one_by_one));
  CHECK(!read_slices(list({3, large, 2}), one_by_one));
  CHECK(!read_slices(list({2 * large}) + "]", one_by_one));
  CHECK(!read_slices("[" + list({2 * large}), one_by_one));
  CHECK(!read_slices(list({large, large}) + ",1", one_by_one));
  CHECK(!read_slices(list({large, large}) + "[]", one_by_one));
  CHECK(!read_slices(std::string(1 << 20, '['), one_by_one));
  CHECK(!read_slices(row(large) + std::string(1 << 20, ']'), one_by_one));
}

}  // namespace
}  // namespace lnorm
