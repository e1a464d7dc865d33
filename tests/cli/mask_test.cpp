#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "lnorm/core/shape.hpp"
#include "support/catch.hpp"
#include "support/commands.hpp"
#include "support/files.hpp"
#include "support/json.hpp"

// --mask: every figure is that of the elements that are left. The oracle is a tensor of these alone.

namespace {

using namespace support;
using nlohmann::json;

// Two tensors that differ here and there, and by anything where the mask is 0.
struct Masked : Workplace {
  lnorm::Shape shape;
  std::vector<float> actual;
  std::vector<float> expected;
  std::vector<char> kept;

  // Of three dimensions; one of the mask is 1.
  Masked(lnorm::Shape its_shape, std::size_t broadcast) : shape(std::move(its_shape)) {
    std::mt19937_64 random(5);
    std::normal_distribution<float> normal;
    lnorm::Shape of_mask = shape;
    of_mask[broadcast] = 1;
    std::vector<float> mask(static_cast<std::size_t>(lnorm::element_count(of_mask)));
    for (float& number : mask) number = random() % 3 == 0 ? 0.0F : 0.25F;
    for (std::int64_t i = 0; i < lnorm::element_count(shape); ++i) {
      lnorm::Shape at = lnorm::index_of(i, shape);
      at[broadcast] = 0;
      const std::int64_t place = (at[0] * of_mask[1] + at[1]) * of_mask[2] + at[2];
      kept.push_back(static_cast<char>(mask[static_cast<std::size_t>(place)] != 0));
      expected.push_back(normal(random));
      actual.push_back(random() % 7 == 0 ? normal(random) : expected.back());
      if (kept.back() != 0) continue;
      actual.back() = random() % 2 == 0 ? std::numeric_limits<float>::quiet_NaN() : 1e30F;
    }
    write("a.npy", npy_of<float>(shape, actual));
    write("e.npy", npy_of<float>(shape, expected));
    write("m.npy", npy_of<float>(of_mask, mask));
    write("a_left.npy", npy_of_floats(left(actual)));
    write("e_left.npy", npy_of_floats(left(expected)));
  }

  std::vector<float> left(const std::vector<float>& all) const {
    std::vector<float> result;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (kept[i] != 0) result.push_back(all[i]);
    }
    return result;
  }

  json report(const Words& words) const {
    return support::parsed_json(run(words + "--json"_w).out);
  }
};

std::vector<double> doubles_of(const json& numbers) { return numbers.get<std::vector<double>>(); }

}  // namespace

TEST_CASE("with a mask compare finds what it finds in the elements that are left", "[mask]") {
  for (const std::size_t broadcast : {0U, 1U, 2U}) {
    const Masked files({4, 31, 50}, broadcast);
    const json left = files.report("compare a_left.npy e_left.npy"_w);
    REQUIRE(left.at("mismatched") > 0);
    for (const Words& axes : {""_w, "--axes 1,2"_w, "--axes 0"_w, "--axes 0,2"_w}) {
      CAPTURE(broadcast, axes);
      const json found = files.report("compare a.npy e.npy --mask m.npy"_w + axes);
      for (const std::string key : {"equal", "elements", "mismatched", "failed", "tolerance", "ulp",
                                    "non_finite_on_one_side"}) {
        if (!left.contains(key)) continue;
        CAPTURE(key);
        CHECK(found.at(key) == left.at(key));
      }
      CHECK(found.at("greatest_absolute_difference").at("value") ==
            left.at("greatest_absolute_difference").at("value"));
      CHECK(found.at("errors").at("equal_bits") == left.at("errors").at("equal_bits"));
      CHECK(found.at("errors").at("root_mean_square").get<double>() ==
            Approx(left.at("errors").at("root_mean_square").get<double>()).epsilon(1e-12));
      // The worst is one that is left, where it lies in the whole tensor.
      const json& worst = found.at("worst").at("elements").front();
      const json& index = worst.at("index");
      const auto place = static_cast<std::size_t>(
          (index[0].get<int>() * 31 + index[1].get<int>()) * 50 + index[2].get<int>());
      CHECK(files.kept[place] != 0);
      CHECK(worst.at("actual") == static_cast<double>(files.actual[place]));
    }
    CHECK(files.run("compare a.npy a.npy --mask m.npy --max-ulp 0 -q"_w).status == 0);
    CHECK(contains(files.run("compare a.npy e.npy --mask m.npy"_w).out, " left out by the mask"));
  }
  const Masked files({3, 4, 5}, 0);
  CHECK(files.fault(
            "compare a.npy e.npy --mask [1,0]"_w,
            {"--mask has shape (2), which does not broadcast to (3, 4, 5), that of a.npy"}) == "");
  files.fault("compare a.npy e.npy --mask none.npy"_w, {"none.npy"});
  CHECK(files.fault("compare a.npy e.npy --mask [[[0]]] --max-ulp 0"_w,
                    {"--mask leaves no elements of a.npy, expected some to compare"}) == "");
  CHECK(contains(files.shell("cat m.npy | lnorm compare a.npy - --mask -").err,
                 "standard input is named for two inputs"));
  CHECK(files.shell("cat m.npy | lnorm compare a.npy a.npy --mask - -q").status == 0);
}

TEST_CASE("a fit is that of the elements that are left", "[mask]") {
  const Masked files({4, 31, 50}, 0);
  std::vector<float> shifted;
  for (std::size_t i = 0; i < files.expected.size(); ++i) {
    shifted.push_back(files.kept[i] != 0 ? files.expected[i] + 2 : 7.0F);
  }
  files.write("s.npy", npy_of<float>(files.shape, shifted));
  CHECK(files.report("compare s.npy e.npy"_w).at("fit") == nullptr);
  CHECK(files.report("compare s.npy e.npy --mask m.npy"_w).at("fit") ==
        json{{"scale", 1.0}, {"offset", 2.0}});
}

TEST_CASE("with a mask check judges what is left of rows that are normalized whole", "[mask]") {
  const Masked files({6, 10, 40}, 0);
  files.shell("lnorm e.npy --unbiased -o wrong.npy; lnorm e.npy -o right.npy; cp e.npy x.npy");
  const auto hidden = [&](const std::string& name) {
    std::vector<float> y;
    const json rows = support::parsed_json(files.shell("lnorm convert " + name + " --to json").out);
    for (const json& matrix : rows) {
      for (const json& row : matrix) {
        for (const double number : doubles_of(row)) y.push_back(static_cast<float>(number));
      }
    }
    for (std::size_t i = 0; i < y.size(); ++i) {
      if (files.kept[i] == 0) y[i] = i % 2 == 0 ? 3.0F : std::numeric_limits<float>::infinity();
    }
    files.write(name, npy_of<float>(files.shape, y));
  };
  hidden("right.npy");
  hidden("wrong.npy");
  const std::ptrdiff_t left = std::count(files.kept.begin(), files.kept.end(), 1);
  CHECK(files.run("check x.npy right.npy -q"_w).status == 1);
  const json right = files.report("check x.npy right.npy --mask m.npy --max-ulp 0"_w);
  CHECK(right.at("verdict") == "correctly rounded");
  CHECK(right.at("elements") == left);
  CHECK(right.at("correctly_rounded") == left);
  CHECK(right.at("agrees") == true);
  const json wrong = files.report("check x.npy wrong.npy --mask m.npy"_w);
  CHECK(wrong.at("verdict") == "differs");
  CHECK(wrong.at("elements") == left);
  CHECK(wrong.at("cause").at("ids") == json{"ddof-1"});
  CHECK(wrong.at("cause").at("explained") == 1.0);
  CHECK(wrong.at("beyond_rounding") <= left);
  CHECK(files.run("check x.npy wrong.npy --mask [[[0]]] -q"_w).status == 2);
}

TEST_CASE("with a mask stats has the input's elements that are left", "[mask]") {
  const Masked files({3, 8, 5}, 1);
  for (const Words& options : {"--axes 2"_w, "--axes 0,1"_w, "--axes 1 --ddof 1"_w, "--groups 4"_w,
                               "--axes 2 --rows 5:17"_w}) {
    CAPTURE(options);
    const json found = files.report("stats e.npy --mask m.npy"_w + options);
    const json all = files.report("stats e.npy"_w + options);
    REQUIRE(found.at("rows").size() == all.at("rows").size());
    // The elements of the row, by the index of the other axes.
    for (const json& row : found.at("rows")) {
      CHECK(!row.contains("output"));
      std::vector<double> left;
      for (std::int64_t i = 0; i < 120; ++i) {
        const lnorm::Shape at = lnorm::index_of(i, files.shape);
        const auto index = row.at("index").get<lnorm::Shape>();
        const bool is_here =
            options == "--axes 0,1"_w          ? at[2] == index[0]
            : options == "--axes 1 --ddof 1"_w ? at[0] == index[0] && at[2] == index[1]
            : options == "--groups 4"_w        ? at[0] == index[0] && at[1] / 2 == index[1]
                                               : at[0] == index[0] && at[1] == index[1];
        const auto place = static_cast<std::size_t>(i);
        if (is_here && files.kept[place] != 0) left.push_back(files.expected[place]);
      }
      const json& input = row.at("input");
      if (left.empty()) {
        CHECK(input.at("mean") == "NaN");
        continue;
      }
      double sum = 0;
      for (const double x : left) sum += x;
      const double mean = sum / static_cast<double>(left.size());
      CHECK(input.at("mean").get<double>() == Approx(mean).margin(1e-12));
      CHECK(input.at("max") == *std::max_element(left.begin(), left.end()));
      const std::size_t ddof = options.back() == "1" ? 1 : 0;
      if (left.size() <= ddof) {
        CHECK(input.at("variance") == "NaN");
        continue;
      }
      double squares = 0;
      for (const double x : left) squares += (x - mean) * (x - mean);
      CHECK(input.at("variance").get<double>() ==
            Approx(squares / static_cast<double>(left.size() - ddof)));
    }
  }
  // Histograms are those of a tensor of the elements that are left, but for the rows.
  files.write("left.npy", npy_of_floats(files.left(files.actual)));
  const auto bars = [&](const Words& words) {
    const std::string text = files.run("stats"_w + words + "--histogram"_w).out;
    const std::size_t begin = text.find("elements of the input");
    const std::size_t output = text.find("elements of the output");
    const std::size_t end = output == text.npos ? text.find("means of the input rows") : output;
    return text.substr(begin, end - begin);
  };
  CHECK(bars("a.npy --mask m.npy"_w) == bars("left.npy"_w));
  CHECK(!contains(files.run("stats a.npy --mask m.npy --histogram"_w).out, "of the output"));
  // Features over rows, of which some elements are left.
  const json features = files.report("stats a.npy --features --mask m.npy"_w);
  CHECK(features.at("first_non_finite_index") == nullptr);
  for (std::int64_t c = 0; c < 5; ++c) {
    std::vector<double> left;
    for (std::size_t i = static_cast<std::size_t>(c); i < files.actual.size(); i += 5) {
      if (files.kept[i] != 0) left.push_back(files.actual[i]);
    }
    double sum = 0;
    double largest = 0;
    for (const double x : left) {
      sum += x;
      largest = std::max(largest, std::fabs(x));
    }
    const json& feature = features.at("features").at(static_cast<std::size_t>(c));
    CHECK(feature.at("mean").get<double>() ==
          Approx(sum / static_cast<double>(left.size())).epsilon(1e-12));
    CHECK(feature.at("absmax") == largest);
    CHECK(feature.at("non_finite") == 0);
  }
  // NaN and 1e30 lie where the mask is 0.
  files.shell(
      "cp a.npy b.npy && python3 -c 'import zipfile; z = zipfile.ZipFile(\"s.npz\", \"w\"); "
      "z.write(\"a.npy\"); z.write(\"b.npy\")'");
  const json set = files.report("stats s.npz --mask m.npy"_w);
  CHECK(set.at("tensors").front().at("non_finite_elements") == 0);
  const auto left = files.left(files.actual);
  const float largest = *std::max_element(
      left.begin(), left.end(), [](float a, float b) { return std::fabs(a) < std::fabs(b); });
  CHECK(set.at("tensors").front().at("largest").at("value") == static_cast<double>(largest));
  CHECK(files.fault("stats e.npy --mask m.npy --softmax"_w,
                    {"--softmax has no effect beside --mask"}) == "");
}
