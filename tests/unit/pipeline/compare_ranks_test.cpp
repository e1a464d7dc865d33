#include <array>
#include <optional>

#include "lnorm/pipeline/compare.hpp"
#include "lnorm/report/reports.hpp"
#include "lnorm/report/style.hpp"
#include "support/pace.hpp"
#include "support/thread_ranks.hpp"
#include "support/written.hpp"
#include "unit/pipeline/memory_tensor.hpp"

namespace {

using lnorm::Axes;
using lnorm::Shape;
using lnorm::WorstBy;
using namespace support;

// Two tensors of float64, whose sums depend on the order in which doubles are added.
struct Pair {
  lnorm::TensorInfo info;
  std::vector<double> actual;
  std::vector<double> expected;
  bool has_random_access = true;

  MemorySource source(const std::vector<double>& elements) const {
    return source_of(info, elements, has_random_access);
  }
};

// How the elements differ.
enum class ErrorKind { equal, few, all, not_finite };

Pair make_pair(const Shape& shape, ErrorKind kind) {
  Pair pair;
  pair.info = {"x", lnorm::DType::float64, shape};
  std::mt19937_64 random(17);
  std::normal_distribution<double> normal;
  const std::array<double, 4> special{kNan, kInfinity, -kInfinity, 0};
  for (std::int64_t i = 0; i < lnorm::element_count(shape); ++i) {
    const double x = std::ldexp(normal(random), static_cast<int>(random() % 120) - 60);
    const bool differs =
        kind == ErrorKind::all || (kind != ErrorKind::equal && random() % 9000 == 0);
    pair.expected.push_back(x);
    pair.actual.push_back(differs ? x * (1 + std::ldexp(normal(random), -20)) : x);
    if (kind != ErrorKind::not_finite) continue;
    if (random() % 5000 == 0) pair.expected.back() = special[random() % special.size()];
    if (random() % 5000 == 0) pair.actual.back() = special[random() % special.size()];
    if (random() % 5000 == 0) pair.actual.back() = pair.expected.back() = kNan;
  }
  return pair;
}

struct Wanted {
  lnorm::Criteria criteria;
  lnorm::ListLimits limits;
  std::optional<Axes> row_axes;
};

std::string report(const Pair& pair, const Wanted& wanted, lnorm::Ranks& ranks) {
  MemorySource actual = pair.source(pair.actual);
  MemorySource expected = pair.source(pair.expected);
  const lnorm::Comparison found = lnorm::Comparer().compare(
      actual, expected, wanted.criteria, wanted.limits, {2, {}, &ranks}, wanted.row_axes);
  if (!ranks.is_first()) return "";
  return written([&](lnorm::ByteSink& bytes) {
    lnorm::write_json(found, bytes);
    lnorm::write_text(found, true, lnorm::Style(), bytes);
  });
}

void check_ranks(const Pair& pair, const Wanted& wanted) {
  const std::string alone = report(pair, wanted, lnorm::sole_rank());
  for (const int count : {2, 3, 5}) {
    CAPTURE(count);
    std::string together;
    on_ranks(count, [&](lnorm::Ranks& ranks) {
      const std::string text = report(pair, wanted, ranks);
      if (ranks.is_first()) together = text;
    });
    CHECK(together == alone);
  }
}

// All choices of axes that rows can go along here.
std::vector<std::optional<Axes>> choices_of_axes(std::size_t rank) {
  std::vector<std::optional<Axes>> choices{std::nullopt};
  if (rank > 0) choices.push_back(Axes{rank - 1});
  if (rank > 1) choices.push_back(Axes{0});
  if (rank > 2) choices.push_back(Axes{1, 2});
  return choices;
}

}  // namespace

TEST_CASE("a comparison is the same however many ranks make it", "[pipeline]") {
  const Shape shape = GENERATE(Shape{}, Shape{0, 3}, Shape{3}, Shape{1, 200'000}, Shape{200'000, 1},
                               Shape{3, 50'000}, Shape{257, 769}, Shape{2, 3, 32768});
  const ErrorKind kind =
      GENERATE(ErrorKind::equal, ErrorKind::few, ErrorKind::all, ErrorKind::not_finite);
  CAPTURE(shape, static_cast<int>(kind));
  const Pair pair = make_pair(shape, kind);
  lnorm::Criteria criteria;
  criteria.tolerance = lnorm::Tolerance{1e-9, 0};
  static int choice = 0;
  for (const std::optional<Axes>& axes : choices_of_axes(shape.size())) {
    const auto by = static_cast<WorstBy>((choice + static_cast<int>(kind)) % 3);
    CAPTURE(choice, lnorm::name(by));
    if (support::takes(choice++, 3)) check_ranks(pair, {criteria, {7, 5, by}, axes});
  }
}

TEST_CASE("ranks that find no mismatch add nothing to those of others", "[pipeline]") {
  Pair pair = make_pair({400, 500}, ErrorKind::equal);
  pair.actual[123'456] += 1;
  check_ranks(pair, {{.tolerance = lnorm::Tolerance{}}, {100, 30, WorstBy::rel}, Axes{1}});
}

TEST_CASE("rank 0 compares alone what ranks cannot read in parts", "[pipeline]") {
  Pair pair = make_pair({257, 769}, ErrorKind::all);
  pair.has_random_access = false;
  check_ranks(pair, {{}, {}, Axes{1}});
  pair.has_random_access = true;
  pair.info.order = lnorm::MemoryOrder::fortran;
  check_ranks(pair, {{}, {}, Axes{1}});
}

TEST_CASE("ranks that find other tensors do not compare them", "[pipeline]") {
  const auto compare_on_ranks = [] {
    on_ranks(3, [](lnorm::Ranks& ranks) {
      report(make_pair({40'000 + (ranks.rank() == 2 ? 1 : 0), 2}, ErrorKind::equal), {}, ranks);
    });
  };
  CHECK_THROWS_WITH(
      compare_on_ranks(),
      "x: is float64, shape (40001, 2), expected float64, shape (40000, 2), as rank 0 has it");
}
