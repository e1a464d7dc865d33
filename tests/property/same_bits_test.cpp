// Every kernel gives the same bits: on every SIMD target of this machine, in portable C++, and for rows that go
// through in parts.

#include "lnorm/kernel/layer_norm.hpp"
#include "lnorm/kernel/rounding.hpp"
#include "lnorm/pipeline/long_rows.hpp"
#include "property/data.hpp"
#include "support/pace.hpp"
#include "unit/pipeline/memory_tensor.hpp"

namespace {

using namespace property;
constexpr std::int64_t kPart = 65536;  // of a row that goes in parts

using lnorm::Affine;
using lnorm::DType;
using lnorm::Formula;

constexpr std::array kAnyFloats{DType::float8_e4m3fn, DType::float8_e5m2, DType::float8_e4m3fnuz,
                                DType::float16,       DType::bfloat16,    DType::float32,
                                DType::float64};

// Those that are to agree, the portable one first.
std::vector<const lnorm::Backend*> fast_backends() {
  std::vector<const lnorm::Backend*> result{&lnorm::find_backend("portable")};
  for (const lnorm::Backend& backend : lnorm::backends()) {
    if (backend.table != nullptr && backend.name != "portable") result.push_back(&backend);
  }
  return result;
}

// Rows of float64 of these go the exact way, which takes its time.
bool is_exact_work(const std::string& recipe) {
  return recipe == "near the largest" || recipe == "from subnormal to the largest";
}

struct Case {
  DType in;
  DType out;
  std::int64_t rows;
  std::int64_t row_length;
  Formula formula;
};

Data make_data(DType dtype, const Recipe& recipe, std::int64_t length, Random& random) {
  if (lnorm::is_floating(dtype)) {
    return floats(dtype, recipe, static_cast<int>(length), random);
  }
  return integers(dtype, static_cast<int>(length), 17, random);
}

lnorm::AffineTerm make_term(DType dtype, std::int64_t length, Random& random) {
  return term(floats(dtype, kNormal, static_cast<int>(length), random));
}

Affine random_affine(std::int64_t length, Random& random) {
  const auto some = [&] {
    if (random() % 2 == 0) return lnorm::AffineTerm();
    return make_term(kAnyFloats[random() % kAnyFloats.size()], length, random);
  };
  lnorm::AffineTerm weight = some();
  return {std::move(weight), some()};
}

std::vector<std::byte> run(const lnorm::Backend& backend, const Case& c, const std::byte* x,
                           std::endian byte_order, const Affine& affine, double* mean = nullptr,
                           double* rstd = nullptr) {
  return normalized(backend, {x, c.in, byte_order, c.rows, c.row_length}, c.out, affine, c.formula,
                    {mean, rstd});
}

// A tensor whose reads are counted as those of a file would be.
MemorySource source_of(const Data& x, const Case& c, std::endian byte_order) {
  const lnorm::TensorInfo info{"x", c.in, {c.rows, c.row_length}, byte_order};
  return {info, byte_order == std::endian::native ? x.bytes : swapped(x.bytes, c.in), true};
}

}  // namespace

TEST_CASE("this machine runs a SIMD kernel", "[kernel]") {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) CHECK(lnorm::backends().front().name != "portable");
  if (__builtin_cpu_supports("avx2")) CHECK_NOTHROW(lnorm::find_backend("avx2"));
#ifndef LNORM_SANITIZED  // one SIMD target: lib/CMakeLists.txt
  if (__builtin_cpu_supports("avx512dq")) CHECK(lnorm::backends().front().name == "avx512");
#endif
#endif
  CHECK(lnorm::backends().back().name == "reference");
}

TEST_CASE("all kernels give the same bits", "[kernel][long]") {
  const DType in = GENERATE(DType::float16, DType::bfloat16, DType::float32, DType::float64,
                            DType::boolean, DType::int8, DType::int16, DType::int32, DType::int64,
                            DType::uint8, DType::uint16, DType::uint32, DType::uint64);
  const auto backends = fast_backends();
  Random random(static_cast<std::uint64_t>(in) + 1);
  int number = static_cast<int>(in);
  for (const std::int64_t length :
       {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 130, 768, 1023, 1024, 1025, 2100}) {
    std::vector<Recipe> recipes = float_recipes();
    recipes.push_back({"some not finite", [](Random& r, DType, int i, int) {
                         return i % 41 == 3 ? std::nan("") : normal(r);
                       }});
    for (const Recipe& recipe : recipes) {
      if (!support::takes(number++, 3)) continue;
      if (length > 65 && is_exact_work(recipe.name)) continue;
      // Short rows go together where the dtypes are the same.
      const bool keeps = lnorm::is_floating(in) && length <= 65 && random() % 2 == 0;
      const Case c{in, keeps ? in : kAnyFloats[random() % kAnyFloats.size()],
                   1 + static_cast<std::int64_t>(random() % 70), length,
                   any_formula(random, length)};
      const std::int64_t rows = length > 200 ? 1 + c.rows % 3 : c.rows;
      const Case small{c.in, c.out, rows, length, c.formula};
      const Data x = make_data(in, recipe, rows * length, random);
      const Affine affine = random_affine(length, random);
      CAPTURE(lnorm::name(in), lnorm::name(c.out), rows, length, recipe.name, c.formula.eps,
              c.formula.rms, affine.weight().empty(), affine.bias().empty());
      // At an odd address, as the elements may lie in a file.
      std::vector<std::byte> moved(x.bytes.size() + 1);
      std::copy(x.bytes.begin(), x.bytes.end(), moved.begin() + 1);
      const auto other_order = swapped(x.bytes, in);
      const auto expected = run(*backends[0], small, x.bytes.data(), std::endian::native, affine);
      std::vector<double> means(static_cast<std::size_t>(rows));
      std::vector<double> rstds(means.size());
      run(*backends[0], small, x.bytes.data(), std::endian::native, affine, means.data(),
          rstds.data());
      for (const lnorm::Backend* backend : backends) {
        CAPTURE(backend->name);
        CHECK(run(*backend, small, moved.data() + 1, std::endian::native, affine) == expected);
        CHECK(run(*backend, small, other_order.data(), kOtherByteOrder, affine) == expected);
        std::vector<double> mean(means.size());
        std::vector<double> rstd(means.size());
        CHECK(run(*backend, small, x.bytes.data(), std::endian::native, affine, mean.data(),
                  rstd.data()) == expected);
        CHECK(std::memcmp(mean.data(), means.data(), 8 * mean.size()) == 0);
        CHECK(std::memcmp(rstd.data(), rstds.data(), 8 * rstd.size()) == 0);
      }
    }
  }
}

TEST_CASE("what is written past the caches is the same", "[kernel]") {
  constexpr std::int64_t kLength = 768;
  constexpr std::int64_t kRows = 3000;  // 4.5 MB and more
  const DType dtype = GENERATE(DType::float16, DType::bfloat16, DType::float32);
  Random random(8);
  const Data one = floats(dtype, kNormal, 100 * kLength, random);
  std::vector<std::byte> x;
  for (int i = 0; i < 30; ++i) x.insert(x.end(), one.bytes.begin(), one.bytes.end());
  for (const lnorm::Backend* backend : fast_backends()) {
    CAPTURE(backend->name);
    const auto all =
        run(*backend, {dtype, dtype, kRows, kLength, {}}, x.data(), std::endian::native, {});
    const auto part =
        run(*backend, {dtype, dtype, 100, kLength, {}}, x.data(), std::endian::native, {});
    for (std::size_t i = 0; i < all.size(); i += part.size()) {
      REQUIRE(std::memcmp(all.data() + i, part.data(), part.size()) == 0);
    }
  }
}

TEST_CASE("rows in parts come out as rows that are held", "[kernel][long]") {
  constexpr std::int64_t kLength = kPart + 1077;
  const std::string name =
      GENERATE(as<std::string>{}, "normal", "rising", "large mean, small deviation", "constant",
               "near the largest", "from subnormal to the largest", "one outlier");
  const DType in =
      GENERATE(DType::float16, DType::bfloat16, DType::float32, DType::float64, DType::int64);
  static int number = 0;
  if (!support::takes(number++, 3)) return;
  Random random(static_cast<std::uint64_t>(in) + 77);
  for (const Recipe& recipe : float_recipes()) {
    if (recipe.name != name) continue;
    for (const bool with_stats : {false, true}) {
      const Case c{in, kAnyFloats[random() % kAnyFloats.size()], 2, kLength,
                   any_formula(random, kLength)};
      const Data x = make_data(in, recipe, c.rows * kLength, random);
      const Affine affine = random_affine(kLength, random);
      std::vector<double> means(2);
      std::vector<double> rstds(2);
      const auto expected = run(*fast_backends()[0], c, x.bytes.data(), std::endian::native, affine,
                                means.data(), rstds.data());
      for (const lnorm::Backend* backend : fast_backends()) {
        if (is_exact_work(name) && backend != fast_backends().back()) continue;
        const int threads = 1 + static_cast<int>(random() % 4);
        const std::endian byte_order = random() % 2 == 0 ? std::endian::native : kOtherByteOrder;
        CAPTURE(recipe.name, lnorm::name(in), lnorm::name(c.out), backend->name, threads);
        MemorySource source = source_of(x, c, byte_order);
        lnorm::Plan plan = lnorm::make_plan(source.info(), {{}, c.formula, false}, c.out);
        plan.wants_mean_and_rstd = with_stats;
        MemorySink sink;
        Collector collector;
        lnorm::RowObserver* const observers[] = {&collector};
        Progress progress;
        lnorm::run_long_rows(source, plan, *backend, affine, observers, sink,
                             {threads, progress.report()});
        CHECK(sink.bytes == expected);
        CHECK(source.finished);
        CHECK(sink.finished);
        CHECK(collector.finished);
        CHECK(collector.mean.size() == (with_stats ? 2 : 0));
        if (with_stats) CHECK(std::memcmp(collector.mean.data(), means.data(), 16) == 0);
        if (with_stats) CHECK(std::memcmp(collector.rstd.data(), rstds.data(), 16) == 0);
        progress.check_end(2 * kLength);
      }
    }
  }
}

TEST_CASE("the reference takes rows in parts as it takes them whole", "[kernel]") {
  constexpr std::int64_t kLength = kPart + 5;
  Random random(12);
  const Case c{DType::float32, DType::float32, 1, kLength, {}};
  const Data x = make_data(c.in, kNormal, kLength, random);
  const Affine affine(make_term(DType::float32, kLength, random), {});
  const lnorm::Backend& reference = lnorm::find_backend("reference");
  MemorySource source = source_of(x, c, std::endian::native);
  MemorySink sink;
  lnorm::run_long_rows(source, lnorm::make_plan(source.info(), {}), reference, affine, {}, sink);
  CHECK(sink.bytes == run(reference, c, x.bytes.data(), std::endian::native, affine));
}

TEST_CASE("a bias that cancels a row in parts is seen before anything is written", "[kernel]") {
  constexpr std::int64_t kLength = kPart + 1000;
  Random random(13);
  const Case c{DType::float32, DType::float32, 1, kLength, {}};
  const Data x = make_data(c.in, kNormal, kLength, random);
  auto y = run(lnorm::find_backend("reference"), c, x.bytes.data(), std::endian::native, {});
  for (std::size_t i = 0; i < y.size(); i += 4) y[i + 3] ^= std::byte{0x80};  // -y
  const Affine affine({}, {lnorm::TensorInfo{"bias", DType::float32, {kLength}}, y, false});
  const auto expected =
      run(lnorm::find_backend("portable"), c, x.bytes.data(), std::endian::native, affine);
  for (const lnorm::Backend* backend : fast_backends()) {
    CAPTURE(backend->name);
    MemorySource source = source_of(x, c, std::endian::native);
    MemorySink sink;
    lnorm::run_long_rows(source, lnorm::make_plan(source.info(), {}), *backend, affine, {}, sink);
    CHECK(sink.bytes == expected);
  }
}

// The portable kernel has no results from floats (kernel/floats-inl.hpp). Every y here lies next to a tie, as near as a float x
// brings it: where bounds are half of what they must be, results go to the wrong side.
TEST_CASE("16- and 8-bit results from floats are those from doubles, beside every tie",
          "[kernel]") {
  const DType out = GENERATE(DType::float16, DType::bfloat16, DType::float8_e4m3fn,
                             DType::float8_e5m2, DType::float8_e4m3fnuz);
  const double mean = GENERATE(0.0, 0.3, 7.0, 3e4);  // in deviations
  const int terms = GENERATE(range(0, 4));           // 1: a weight, 2: a bias
  Random random(static_cast<std::uint64_t>(terms));
  const auto drawn = [&](int which, double otherwise) {
    return terms / which % 2 == 0 ? otherwise
                                  : static_cast<double>(static_cast<float>(normal(random)));
  };
  constexpr std::int64_t kLength = 50'000;
  Data x{DType::float32, {}, {}};
  Data weight = x;
  Data bias = x;
  const double rstd = 0.37 + uniform(random) / 10;
  for (std::int64_t i = 0; i < kLength; ++i) {
    const double w = drawn(1, 1);
    const double b = drawn(2, 0);
    append(weight, static_cast<float>(w));
    append(bias, static_cast<float>(b));
    const double y = lnorm::rounded(1.8 + uniform(random), out);
    const double tie = y + std::ldexp(ulp_of_1(out) / 2, std::ilogb(y));
    append(x, static_cast<float>((tie - b) / w / rstd + mean / rstd));
  }
  const Affine affine{terms % 2 == 0 ? lnorm::AffineTerm() : term(weight),
                      terms < 2 ? lnorm::AffineTerm() : term(bias)};
  const lnorm::GivenStatistics given{{mean / rstd}, {rstd}, {}, {}};
  const auto by = [&](const lnorm::Backend& backend) {
    std::vector<std::byte> y(static_cast<std::size_t>(kLength) * lnorm::item_size(out));
    lnorm::normalize_by(backend, given, rows_in(x), {y.data(), out}, affine, {});
    return read_all(y, out);
  };
  const std::vector<double> expected = by(*fast_backends()[0]);
  for (const lnorm::Backend* const backend : fast_backends()) {
    INFO(backend->name << ", " << name(out) << ", mean " << mean << ", terms " << terms);
    check_same(by(*backend), expected);
  }
}
