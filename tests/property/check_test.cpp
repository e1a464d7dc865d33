// The verdicts of lnorm check on emulated kernels, whose code is their own.

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iostream>
#include <random>
#include <regex>
#include <set>
#include <string>
#include <utility>

#include "lnorm/core/text.hpp"
#include "lnorm/diagnosis/wrong_kernels.hpp"
#include "support/catch.hpp"
#include "support/elements.hpp"
#include "support/emulated_check.hpp"
#include "support/files.hpp"
#include "support/pace.hpp"

namespace {

using emulated::Kernel;
using emulated::Order;
using emulated::Tensor;
using lnorm::Check;
using lnorm::DType;
using lnorm::Verdict;

struct Judged {
  Check check;
  Tensor x;
  Tensor y;
};

// A float32 kernel on 64 ordinary rows, with weight and bias.
Judged judged(const std::string& id, std::int64_t n, const lnorm::Formula& formula = {},
              DType dtype = DType::float32, int input = 0) {
  std::mt19937_64 random(static_cast<std::uint64_t>(n) + 17);
  const Kernel kernel{DType::float32, {Order::Kind::blocks, 32}, dtype, dtype, formula, id};
  Judged result{{}, emulated::input(input, 64, n, dtype, random), {}};
  const emulated::Affine affine = emulated::affine(1, n, dtype, random);
  result.y = emulated::run(kernel, result.x, affine.weight, affine.bias);
  result.check = emulated::check(result.x, dtype, result.y, kernel, formula, affine);
  return result;
}

std::string explanation(const Check& check) {
  const auto& found = check.diagnosis.explanations;
  return check.diagnosis.explains_all() ? found.front().id() : "none of these";
}

bool is_named(const Check& check, const std::string& id) {
  if (!check.diagnosis.explains_all()) return false;
  const auto& best = check.diagnosis.explanations.front();
  return best.id() == id ||
         std::find(best.same_as.begin(), best.same_as.end(), id) != best.same_as.end();
}

}  // namespace

TEST_CASE("no right kernel differs, and no other formula is closer", "[check]") {
  const auto seed = std::random_device()();
  const int cases = support::share(200);
  std::cout << "seed of " << cases << " right kernels: " << seed << '\n';
  std::mt19937_64 random(seed);
  for (int i = 0; i < cases; ++i) {
    const emulated::RightCase one = emulated::right_case(random);
    const Tensor x = emulated::input(one.input, one.rows, one.n, one.x_dtype, random);
    const emulated::Affine affine = emulated::affine(one.affine, one.n, one.x_dtype, random);
    const Tensor y = emulated::run(one.kernel, x, affine.weight, affine.bias);
    const Check found = emulated::check(x, one.x_dtype, y, one.kernel, {}, affine);
    INFO("seed " << seed << ", kernel " << i << ": " << one.name);
    CHECK(found.verdict != Verdict::differs);
    CHECK(!found.diagnosis.hidden);
  }
}

TEST_CASE("the wrong kernels that must be named are named", "[check]") {
  const std::set<std::string> others{
      "eps-0", "eps-1e-12", "eps-1e-8", "eps-1e-6", "eps-1e-5", "eps-on-variance", "ddof-0",
      "layer-norm",
      // Options that the emulation has not, and a residual.
      "no-residual", "residual-twice", "residual-negated", "residual-alone", "residual-after",
      "plus-residual", "rounded-sum", "weight-tiled", "weight-without-one", "weight-transposed",
      "bias-transposed", "unrounded", "unrounded-sum", "unrounded-xhat", "unrounded-product",
      // Float32 outputs cannot show these.
      "rounded-xhat", "rounded-product", "other-dtype", "truncated", "away", "saturated",
      "not-saturated",
      // Nothing leaves float16.
      "float16-overflow",
      // Kernels with that arithmetic are below.
      "float16-arithmetic", "bfloat16-arithmetic",
      // Leaves the range of float32.
      "byte-order-x",
      // Loses nothing where the mean is 0.
      "one-pass",
      // tests/cli/norms_test.cpp gives statistics.
      "own-statistics", "given-variance-biased", "given-variance-unbiased", "given-variance-root",
      "given-variance-squared"};
  constexpr std::array<std::int64_t, 2> kLengths{64, 1025};
  std::set<std::string> seen;
  for (const std::int64_t n : kLengths) {
    if (!support::takes(n == kLengths[0] ? 0 : 1)) continue;
    for (const lnorm::NamedKernel& kernel : lnorm::named_kernels(lnorm::Quantity::y, {n}, {})) {
      const std::string& id = kernel.id;
      if (others.contains(id) || !seen.insert(lnorm::concat(id, " of ", n)).second) continue;
      if (!support::takes(static_cast<int>(seen.size()), n == kLengths[0] ? 1 : 5)) continue;
      if (id.starts_with("no-tail-") && (std::stoll(id.substr(8)) >= n || n == 64)) continue;
      if (id == "warp-32") continue;
      // Of long rows, whose variance is nearly 1, it is the norm.
      if (id == "norm-of-xhat" && n > kLengths[0]) continue;
      const bool reads_on = id.starts_with("reads-on-");
      if (reads_on && std::stoll(id.substr(9)) > 2 * n) continue;
      const Check found = judged(id, n).check;
      INFO(id << ", n " << n << ": " << explanation(found));
      CHECK(found.verdict == Verdict::differs);
      // Over both axes of a matrix these are the same formula.
      CHECK(is_named(found, id == "all-rows" ? "axes-0-1" : id));
    }
  }
  CHECK(seen.size() > support::share(180));
  for (const std::string id : {"unwritten-rows", "unwritten-tail"}) {
    for (const std::int64_t n : {64, 1025}) {
      // The last elements are whole rows here.
      CHECK(explanation(judged(id, n).check) == "unwritten-rows");
      CHECK(is_named(judged(id, n).check, id));
    }
  }
  for (const DType dtype : {DType::float16, DType::bfloat16}) {
    CHECK(is_named(judged("other-dtype", 64, {}, dtype).check, "other-dtype"));
    for (const std::string id : {"rounded-product", "truncated", "away", "bfloat16-sums"}) {
      CHECK(is_named(judged(id, 200, {}, dtype).check, id));
    }
  }
  for (const int input : {2, 6}) {  // a mean of 100 deviations; 0 with a deviation of 100
    const Check one_pass = judged("one-pass", 1025, {}, DType::float32, input).check;
    CHECK(explanation(one_pass) == (input == 2 ? "one-pass" : "none of these"));
    CHECK((one_pass.verdict == Verdict::differs) == (input == 2));
  }
  lnorm::Formula rms;
  rms.rms = true;
  CHECK(is_named(judged("layer-norm", 64, rms).check, "layer-norm"));
  lnorm::Formula on_std;
  on_std.eps_on = lnorm::EpsOn::std;
  CHECK(is_named(judged("eps-on-variance", 64, on_std).check, "eps-on-variance"));
}

TEST_CASE("a wrong kernel that is in no list gets no wrong name", "[check]") {
  int number = 0;
  CHECK(explanation(judged("eps-twice", 64, {}, DType::float32, 4).check) == "eps=2e-05");
  for (const std::string id : {"other-mean", "cube-root", "row-pairs", "fixed-point",
                               "max-left-out", "clipped", "sorted"}) {
    INFO(id);
    if (!support::takes(number++)) continue;
    for (const DType dtype : {DType::float16, DType::bfloat16}) {
      CHECK(explanation(judged(id, 200, {}, dtype).check) == "none of these");
    }
    const Check found = judged(id, 200).check;
    CHECK(found.verdict == Verdict::differs);
    CHECK(explanation(found) == "none of these");
  }
}

TEST_CASE("a weight that is another in some columns is told", "[check]") {
  for (const auto& [id, where] : {std::pair("weight-every-second", "every 2nd column from 1 on"),
                                  std::pair("sign-of-column", "column 100")}) {
    for (const DType dtype : {DType::float16, DType::bfloat16, DType::float32}) {
      INFO(id);
      const Check found = judged(id, 200, {}, dtype).check;
      REQUIRE(explanation(found) == "other-affine");
      const std::string& words = found.diagnosis.explanations.front().words;
      CHECK(words.starts_with("the weight is not the one that is given"));
      CHECK(words.ends_with(std::string(", in ") + where));
    }
  }
}

TEST_CASE("rows that are the norms of other rows are told", "[check]") {
  constexpr std::int64_t kRows = 48;
  constexpr std::int64_t kLength = 40;
  std::mt19937_64 random(19);
  const Tensor x = emulated::input(0, kRows, kLength, DType::float32, random);
  const emulated::Affine affine = emulated::affine(1, kLength, DType::float32, random);
  const Kernel right;
  const Tensor y = emulated::run(right, x, affine.weight, affine.bias);
  const auto told = [&](const std::function<std::int64_t(std::int64_t)>& of) {
    Tensor moved = y;
    for (std::int64_t r = 0; r < kRows; ++r) {
      std::copy_n(y.numbers.begin() + of(r) * kLength, kLength,
                  moved.numbers.begin() + r * kLength);
    }
    const Check found = emulated::check(x, DType::float32, moved, right, {}, affine);
    if (explanation(found) != "other-rows") return explanation(found);
    return found.diagnosis.explanations.front().words;
  };
  CHECK(told([](std::int64_t r) { return (r + kRows - 5) % kRows; }) ==
        "rows are the norms of those 5 rows before them");
  CHECK(told([](std::int64_t r) { return (r + 7) % kRows; }) ==
        "rows are the norms of those 7 rows after them");
  CHECK(told([](std::int64_t r) { return kRows - 1 - r; }) ==
        "rows are the norms of the rows in reverse order");
  CHECK(told([](std::int64_t) { return 3; }) == "rows are the norm of row 3");
  CHECK(told([](std::int64_t r) { return r / 4; }) == "row i is the norm of row i / 4");
  CHECK(told([](std::int64_t r) { return r % 16; }) == "row i is the norm of row i mod 16");
  CHECK(told([](std::int64_t r) {
          return r * 31 % kRows;
        }).starts_with("rows are the norms of other rows: row "));
  // One of them is that of no row.
  Tensor other = y;
  std::rotate(other.numbers.begin(), other.numbers.begin() + 5 * kLength, other.numbers.end());
  other.numbers[7] += 0.01;
  CHECK(explanation(emulated::check(x, DType::float32, other, right, {}, affine)) ==
        "none of these");
}

TEST_CASE("a factor is told that is the root of a plain number, or beside rounded numbers",
          "[check]") {
  std::mt19937_64 random(23);
  const Tensor x = emulated::input(0, 4, 8192, DType::float32, random);
  const Kernel right{
      DType::float32, {Order::Kind::blocks, 32}, DType::bfloat16, DType::float32, {}, ""};
  const Tensor y = emulated::run(right, x, {}, {});
  for (const auto& [factor, id] :
       {std::pair(1.02, "factor=1.02"), std::pair(std::sqrt(0.5), "factor=0.707106781")}) {
    Tensor scaled = y;
    for (double& number : scaled.numbers) {
      number = emulated::rounded(number * factor, DType::bfloat16);
    }
    CHECK(explanation(emulated::check(x, DType::float32, scaled, right, {}, {})) == id);
  }
}

TEST_CASE("eps and ddof are told where they are far below the last digit", "[check]") {
  CHECK(is_named(judged("eps-1e-6", 1025, {}, DType::float16).check, "eps-1e-6"));
  CHECK(is_named(judged("ddof-1", 4096, {}, DType::bfloat16).check, "ddof-1"));
}

TEST_CASE("a plain loop is within rounding by the sums that are run, and they cover nothing else",
          "[check]") {
  std::mt19937_64 random(11);
  constexpr std::int64_t kLength = 16384;
  const Tensor x = emulated::input(1, 4, kLength, DType::float32, random);
  const Kernel loop{DType::float32, {Order::Kind::loop}, DType::float32, DType::float32, {}, ""};
  const Tensor y = emulated::run(loop, x, {}, {});
  const Check right = emulated::check(x, DType::float32, y, loop, {}, {});
  CHECK(right.verdict == Verdict::within_rounding);
  CHECK(right.judged.tree.ratio > 1);
  CHECK(right.as_loop());
  const auto differs = [&](auto change) {
    Tensor wrong = y;
    for (std::size_t i = 0; i < wrong.numbers.size(); ++i) {
      wrong.numbers[i] = emulated::rounded(change(i, wrong.numbers[i]), DType::float32);
    }
    return emulated::check(x, DType::float32, wrong, loop, {}, {}).verdict == Verdict::differs;
  };
  CHECK(differs([](std::size_t, double value) { return 1.02 * value; }));
  CHECK(differs([](std::size_t i, double value) { return i == 7 ? 1.005 * value : value; }));
  CHECK(differs([](std::size_t i, double value) { return value + (i % 2 == 0 ? 1e-4 : -1e-4); }));
  CHECK(
      differs([](std::size_t, double value) { return emulated::rounded(value, DType::float16); }));
  CHECK(differs([&](std::size_t i, double) { return x.numbers[i]; }));
}

TEST_CASE("a plain loop in float64 is within rounding where values repeat in long rows",
          "[check]") {
  std::mt19937_64 random(11);
  int rising = 0;
  while (emulated::name_of_input(rising) != "numbers that rise") ++rising;
  const Tensor x = emulated::input(rising, 2, 65536, DType::bfloat16, random);
  const Kernel loop{DType::float64, {Order::Kind::loop}, DType::float64, DType::bfloat16, {}, ""};
  const Tensor y = emulated::run(loop, x, {}, {});
  const Check found = emulated::check(x, DType::bfloat16, y, loop, {}, {});
  CHECK(found.judged.tree.ratio > 10);
  CHECK(found.verdict == Verdict::within_rounding);
}

TEST_CASE("a kernel that computes in a narrow dtype is told", "[check]") {
  for (const DType dtype : {DType::float16, DType::bfloat16}) {
    std::mt19937_64 random(5);
    const Tensor x = emulated::input(0, 64, 200, dtype, random);
    const emulated::Affine affine = emulated::affine(1, 200, dtype, random);
    const Kernel kernel{dtype, {Order::Kind::blocks, 32}, dtype, dtype, {}, ""};
    const Tensor y = emulated::run(kernel, x, affine.weight, affine.bias);
    Kernel asked = kernel;
    asked.arithmetic = DType::float32;
    const Check found = emulated::check(x, dtype, y, asked, {}, affine);
    CHECK(found.verdict == Verdict::differs);
    CHECK(explanation(found) ==
          (dtype == DType::float16 ? "float16-arithmetic" : "bfloat16-arithmetic"));
    // Noise that is larger than what the dtype rounds is none of it.
    Kernel right = asked;
    right.output = DType::float64;
    Tensor noisy = emulated::run(right, x, affine.weight, affine.bias);
    const double size = dtype == DType::float16 ? 0x1p-8 : 0x1p-5;
    std::uniform_real_distribution<double> noise(-size, size);
    for (double& y_of : noisy.numbers) y_of = emulated::rounded(y_of * (1 + noise(random)), dtype);
    const Check of_noise = emulated::check(x, dtype, noisy, asked, {}, affine);
    CHECK(of_noise.verdict == Verdict::differs);
    CHECK(explanation(of_noise) == "none of these");
  }
}

TEST_CASE("a factor of the variance is no other weight", "[check]") {
  std::mt19937_64 random(29);
  const Tensor x = emulated::input(0, 64, 100, DType::float32, random);
  const Kernel asked{
      DType::float32, {Order::Kind::blocks, 32}, DType::float32, DType::float32, {}, ""};
  for (const int kind : {0, 1}) {
    const emulated::Affine affine = emulated::affine(kind, 100, DType::float32, random);
    Kernel wrong = asked;
    wrong.wrong = "variance-factor=1.1";
    const Tensor y = emulated::run(wrong, x, affine.weight, affine.bias);
    const Check found = emulated::check(x, DType::float32, y, asked, {}, affine);
    CHECK(found.verdict == Verdict::differs);
    CHECK(explanation(found) == wrong.wrong);
  }
}

TEST_CASE("an element is within rounding up to its bound, and differs beyond it", "[check]") {
  // E_y of docs/numbers.md, for a row of four float32 elements in float16 arithmetic, without weight and bias. Sums one after another
  // lose nothing of it.
  const Tensor x{1, 4, {1, 2, 3, 6}};
  const long double u = 0x1p-11L;
  const long double t = 0x1p-14L;
  const long double mean = 3;
  const long double variance = (4 + 1 + 0 + 9) / 4.0L;
  const long double eps = 1e-5;
  const long double s = std::sqrt(variance + eps);
  const long double g = 4 * u;
  const long double e_mean = (g + u) * 3 + 2 * u * mean + t;
  const long double e_var =
      (g + 4 * u) * variance + e_mean * e_mean + 4 * u * mean * std::sqrt(variance) + t;
  // The bound of an element before its last rounding.
  const auto bound_of = [&](std::size_t i) {
    const long double s_low = std::sqrt(variance - e_var + eps) * (1 - 4 * u);
    const long double element = static_cast<long double>(x.numbers[i]);
    const long double size = std::fabs(element - mean);
    const long double e_xhat =
        (e_mean + u * size + u * element) / s_low + size * (1 / s_low - 1 / s) + u * size / s + t;
    return e_xhat + 2 * u * size / s + t;
  };
  for (std::size_t i = 0; i < 4; ++i) {
    for (const double part : {0.99, 1.01}) {
      Tensor y = x;
      for (std::size_t k = 0; k < 4; ++k) {
        y.numbers[k] = static_cast<double>((static_cast<long double>(x.numbers[k]) - mean) / s);
      }
      y.numbers[i] += part * static_cast<double>(bound_of(i));
      Kernel kernel;
      kernel.arithmetic = DType::float16;
      const Check found = emulated::check(x, DType::float32, y, kernel, {}, {});
      INFO("element " << i << ", " << part << " of the bound");
      CHECK(found.judged.tree.ratio == Approx(part).epsilon(1e-4));
      CHECK(found.verdict == (part > 1 ? Verdict::differs : Verdict::within_rounding));
    }
  }
}

TEST_CASE("the documents list the wrong kernels in the words of the program", "[check]") {
  const std::string page = support::read_file(LNORM_SOURCE_DIR "/docs/wrong-kernels.md");
  const std::regex tail("(tail-|mod )[0-9]+");  // of which there is one row
  for (const lnorm::WrongKernel& kernel : lnorm::wrong_kernels()) {
    const std::string words = "` | " + std::string(kernel.words) + " | ";
    const std::string row =
        std::regex_replace("\n| `" + std::string(kernel.id) + words, tail, "$1K");
    CAPTURE(row);
    CHECK(page.find(row) != std::string::npos);
  }
}
