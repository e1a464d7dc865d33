#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "lnorm.h"
#include "support/catch.hpp"

// lnorm.h in this process, so that the sanitizers watch it. docs/c.md has an example in C, which is compiled and run as it stands.

namespace {

struct Free {
  void operator()(lnorm_job* job) const { lnorm_job_free(job); }
};
using Job = std::unique_ptr<lnorm_job, Free>;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}
bool begins(const std::string& text, const std::string& part) { return text.starts_with(part); }

Job job_of(const char* command) { return Job(lnorm_job_new(command)); }

lnorm_tensor tensor_of(const std::vector<float>& elements, const std::vector<std::int64_t>& shape) {
  return {const_cast<float*>(elements.data()),
          "float32",
          static_cast<std::int32_t>(shape.size()),
          0,
          shape.data(),
          nullptr};
}

std::vector<float> random_floats(std::size_t count) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(1, 2);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

const std::vector<std::int64_t> kShape{6, 16};

// Layer norm in plain doubles.
std::vector<double> normalized(const std::vector<float>& x, std::size_t length) {
  std::vector<double> y;
  for (std::size_t row = 0; row < x.size(); row += length) {
    double mean = 0;
    double variance = 0;
    for (std::size_t i = 0; i < length; ++i) mean += x[row + i] / static_cast<double>(length);
    for (std::size_t i = 0; i < length; ++i) variance += std::pow(x[row + i] - mean, 2);
    const double s = std::sqrt(variance / static_cast<double>(length) + 1e-5);
    for (std::size_t i = 0; i < length; ++i) y.push_back((x[row + i] - mean) / s);
  }
  return y;
}

bool are_close(const std::vector<float>& found, const std::vector<double>& expected) {
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!(std::fabs(found[i] - expected[i]) <= 1e-6)) return false;
  }
  return found.size() == expected.size();
}

}  // namespace

TEST_CASE("a job computes what is bound, wherever it lies") {
  const std::vector<float> x = random_floats(96);
  const std::vector<double> expected = normalized(x, 16);
  std::vector<float> y(96);
  const Job job = job_of("apply");
  REQUIRE(job);
  const lnorm_tensor input = tensor_of(x, kShape);
  REQUIRE(lnorm_job_bind(job.get(), "input", &input) == 0);

  SECTION("as the result says it is") {
    lnorm_tensor info;
    REQUIRE(lnorm_job_result(job.get(), "rstd", &info) == 0);
    CHECK(std::string(info.dtype) == "float64");
    CHECK(std::vector(info.shape, info.shape + info.ndim) == std::vector<std::int64_t>{6, 1});
    REQUIRE(lnorm_job_result(job.get(), "y", &info) == 0);
    CHECK(std::string(info.dtype) == "float32");
    CHECK(std::vector(info.shape, info.shape + info.ndim) == kShape);
    CHECK(lnorm_job_set(job.get(), "rms", nullptr) == 0);
    CHECK(lnorm_job_result(job.get(), "mean", &info) == 1);
  }
  SECTION("in C order") {
    const lnorm_tensor result = tensor_of(y, kShape);
    REQUIRE(lnorm_job_bind_result(job.get(), "y", &result) == 0);
    REQUIRE(lnorm_job_run(job.get()) == 0);
    CHECK(are_close(y, expected));
  }
  SECTION("from its last row up, and into every second row of more") {
    std::vector<float> reversed(96);
    std::vector<float> wide(192, -1);
    for (std::size_t i = 0; i < 96; ++i) reversed[(5 - i / 16) * 16 + i % 16] = x[i];
    const std::int64_t up[] = {-64, 4};
    const std::int64_t apart[] = {128, 4};
    lnorm_tensor from = tensor_of(reversed, kShape);
    from.data = reversed.data() + 80;
    from.strides = up;
    lnorm_tensor to = tensor_of(wide, kShape);
    to.strides = apart;
    REQUIRE(lnorm_job_bind(job.get(), "input", &from) == 0);
    REQUIRE(lnorm_job_bind_result(job.get(), "y", &to) == 0);
    REQUIRE(lnorm_job_run(job.get()) == 0);
    for (std::size_t i = 0; i < 96; ++i) {
      y[i] = wide[i / 16 * 32 + i % 16];
      CHECK(wide[i / 16 * 32 + 16 + i % 16] == -1);
    }
    CHECK(are_close(y, expected));
  }
  SECTION("in the other byte order, and over the input") {
    std::vector<float> swapped = x;
    for (float& value : swapped) {
      auto* const bytes = reinterpret_cast<unsigned char*>(&value);
      std::swap(bytes[0], bytes[3]);
      std::swap(bytes[1], bytes[2]);
    }
    lnorm_tensor from = tensor_of(swapped, kShape);
    from.flags = LNORM_SWAPPED;
    const lnorm_tensor to = tensor_of(swapped, kShape);
    REQUIRE(lnorm_job_bind(job.get(), "input", &from) == 0);
    REQUIRE(lnorm_job_bind_result(job.get(), "y", &to) == 0);
    REQUIRE(lnorm_job_run(job.get()) == 0);
    CHECK(are_close(swapped, expected));
  }
}

TEST_CASE("several tensors of a job are paired by their names") {
  const std::vector<float> x = random_floats(96);
  const std::vector<float> ones(16, 1);
  const std::vector<float> twos(16, 2);
  const std::vector<std::int64_t> length{16};
  const lnorm_tensor input = tensor_of(x, kShape);
  const lnorm_tensor one = tensor_of(ones, length);
  const lnorm_tensor two = tensor_of(twos, length);
  std::vector<float> y(96);
  const Job apply = job_of("apply");
  const lnorm_tensor result = tensor_of(y, kShape);
  lnorm_job_bind(apply.get(), "input", &input);
  lnorm_job_bind(apply.get(), "weight", &two);
  lnorm_job_bind_result(apply.get(), "y", &result);
  REQUIRE(lnorm_job_run(apply.get()) == 0);

  const Job job = job_of("check");
  for (const char* const name : {"h.0", "h.1"}) {
    REQUIRE(lnorm_job_bind_member(job.get(), "input", name, &input) == 0);
    REQUIRE(lnorm_job_bind_member(job.get(), "output", name, &result) == 0);
    REQUIRE(lnorm_job_bind_member(job.get(), "weight", name, name[2] == '0' ? &two : &one) == 0);
  }
  CHECK(lnorm_job_run(job.get()) == 1);
  CHECK(contains(lnorm_job_text(job.get()), "h.1"));
  CHECK(contains(lnorm_job_text(job.get()), "1 differs"));
  CHECK(begins(
      lnorm_job_json(job.get()),
      R"({"schema":2,"command":"check","tensors":[{"name":"h.0","verdict":"correctly rounded")"));
  // What is bound again takes the place of the first.
  REQUIRE(lnorm_job_bind_member(job.get(), "output", "h.0", &input) == 0);
  REQUIRE(lnorm_job_bind_member(job.get(), "weight", "h.1", &two) == 0);
  CHECK(lnorm_job_run(job.get()) == 1);
  CHECK(contains(lnorm_job_text(job.get()), "h.0: differs"));
  CHECK(contains(lnorm_job_text(job.get()), "h.1: correctly rounded"));
  CHECK(contains(lnorm_job_text(job.get()), "2 tensors, 1 correctly rounded, 1 differs"));
}

TEST_CASE("a job's errors say what does not fit, in the job's names") {
  const std::vector<float> x = random_floats(96);
  const lnorm_tensor input = tensor_of(x, kShape);
  const Job job = job_of("apply");
  const auto error = [&](int status, int fault) {
    CHECK(status == 2);
    CHECK(lnorm_job_fault(job.get()) == fault);
    return std::string(lnorm_job_error(job.get())) + '|' + lnorm_job_hint(job.get());
  };
  const auto bind = [&](lnorm_tensor tensor) {
    return lnorm_job_bind(job.get(), "input", &tensor);
  };
  CHECK(error(lnorm_job_run(job.get()), LNORM_INVALID) ==
        "input is missing: nothing is bound to it|");
  CHECK(error(lnorm_job_bind(job.get(), "input", nullptr), LNORM_INVALID) ==
        "input: is a null pointer, expected a tensor|");
  CHECK(error(bind({nullptr, "float32", 2, 0, kShape.data(), nullptr}), LNORM_INVALID) ==
        "input: has no data|");
  CHECK(begins(error(bind({nullptr, "float33", 2, 0, kShape.data(), nullptr}), LNORM_INVALID),
               "input: has dtype 'float33', expected bool, int8 to int64,"));
  CHECK(error(bind({nullptr, "float32", 65, 0, kShape.data(), nullptr}), LNORM_INVALID) ==
        "input: has 65 axes, expected 0 to 64|");
  const std::int64_t negative[] = {2, -1};
  CHECK(error(bind({nullptr, "float32", 2, 0, negative, nullptr}), LNORM_INVALID) ==
        "input: has shape (2, -1), expected extents of 0 or more|");
  CHECK(error(lnorm_job_set(job.get(), "eps_onn", "std"), LNORM_UNKNOWN) ==
        "there is no option eps_onn|did you mean eps_on?");
  CHECK(error(lnorm_job_set(job.get(), "to", "npy"), LNORM_UNKNOWN) ==
        "to has no meaning here: results and reports are in memory|");
  CHECK(error(lnorm_job_set(job.get(), "rms", "1"), LNORM_INVALID) ==
        "rms takes no value, found 1|");
  CHECK(error(lnorm_job_set(job.get(), "eps", nullptr), LNORM_INVALID) == "eps takes a value|");
  CHECK(begins(error(lnorm_job_set(job.get(), "eps_on", "sd"), LNORM_INVALID),
               "eps_on: 'sd' is not"));
  REQUIRE(bind(input) == 0);
  CHECK(error(lnorm_job_run(job.get()), LNORM_INVALID) ==
        "no result is bound: nothing would be computed|");
  CHECK(error(lnorm_job_bind_result(job.get(), "dx", &input), LNORM_UNKNOWN) ==
        "lnorm apply has no result dx|");
  lnorm_tensor read_only = input;
  read_only.flags = LNORM_READ_ONLY;
  CHECK(error(lnorm_job_bind_result(job.get(), "y", &read_only), LNORM_INVALID) ==
        "y: is read-only, expected a tensor to write to|");
  lnorm_tensor broadcast = input;
  const std::int64_t none[] = {0, 4};
  broadcast.strides = none;
  CHECK(error(lnorm_job_bind_result(job.get(), "y", &broadcast), LNORM_INVALID) ==
        "y: has elements that share memory, expected a place for each|");
  std::vector<float> y(96);
  const std::vector<std::int64_t> other{96};
  const lnorm_tensor flat = tensor_of(y, other);
  REQUIRE(lnorm_job_bind_result(job.get(), "y", &flat) == 0);
  CHECK(error(lnorm_job_run(job.get()), LNORM_INVALID) ==
        "y: is float32 of shape (96), expected float32 of shape (6, 16)|");
  REQUIRE(lnorm_job_bind(job.get(), "gamma", &input) == 0);
  CHECK(error(lnorm_job_run(job.get()), LNORM_INVALID) ==
        "weight has shape (6, 16), but the normalized shape is (16)|");
  CHECK(lnorm_job_role_at_fault(job.get()) == std::string("weight"));
  CHECK(!job_of("aply"));
  CHECK(lnorm_option_kind("apply", "eps-on") == LNORM_VALUE);
  CHECK(lnorm_option_kind("apply", "gamma") == LNORM_TENSOR);
  CHECK(lnorm_option_kind("compare", "rename") == LNORM_REPEATED);
  CHECK(lnorm_option_kind("apply", "keepdim") == LNORM_NEGATED);
  CHECK(lnorm_option_kind("apply", "eps_onn") == LNORM_NO_OPTION);
}

TEST_CASE("null pointers and tensors beyond memory are errors of a job") {
  CHECK(lnorm_job_new(nullptr) == nullptr);
  for (const char* const of_files : {"show", "report", "nonsense"}) {
    CHECK(lnorm_job_new(of_files) == nullptr);
  }
  CHECK(lnorm_option_kind(nullptr, "eps") == LNORM_NO_OPTION);
  CHECK(lnorm_job_run(nullptr) == 2);
  CHECK(std::string(lnorm_job_error(nullptr)).empty());
  CHECK(lnorm_job_fault(nullptr) == LNORM_INVALID);
  const Job job = job_of("apply");
  const std::vector<float> x = random_floats(96);
  lnorm_tensor tensor = tensor_of(x, kShape);
  CHECK(lnorm_job_set(job.get(), nullptr, "1") == 2);
  CHECK(lnorm_job_bind(job.get(), nullptr, &tensor) == 2);
  CHECK(contains(lnorm_job_error(job.get()), "the role is a null pointer"));
  CHECK(lnorm_job_bind_member(job.get(), "input", nullptr, &tensor) == 2);
  CHECK(lnorm_job_result(job.get(), "y", nullptr) == 2);
  const std::int64_t huge[] = {std::int64_t{1} << 62, 4};
  tensor.shape = huge;
  CHECK(lnorm_job_bind(job.get(), "input", &tensor) == 2);
  const std::int64_t far[] = {INT64_MAX, 4};
  tensor = tensor_of(x, kShape);
  tensor.strides = far;
  CHECK(lnorm_job_bind(job.get(), "input", &tensor) == 2);
  CHECK(std::string(lnorm_job_error(job.get())) == "input: has strides that leave memory");
  CHECK(std::string(lnorm_job_role_at_fault(job.get())) == "input");
  tensor.strides = nullptr;
  tensor.flags = 4;
  CHECK(lnorm_job_bind(job.get(), "input", &tensor) == 2);
  // One option by two of its names.
  REQUIRE(lnorm_job_set(job.get(), "gamma", "2") == 0);
  CHECK(lnorm_job_set(job.get(), "gamma", "3") == 0);
  CHECK(lnorm_job_set(job.get(), "weight", "2") == 2);
  CHECK(std::string(lnorm_job_error(job.get())) == "weight is given twice, as gamma and weight");
}

TEST_CASE("one tensor of a set goes by its name") {
  const std::vector<float> x = random_floats(96);
  const lnorm_tensor tensor = tensor_of(x, kShape);
  const Job job = job_of("compare");
  lnorm_job_bind_member(job.get(), "actual", "a", &tensor);
  lnorm_job_bind_member(job.get(), "expected", "b", &tensor);
  CHECK(lnorm_job_run(job.get()) == 1);
}

TEST_CASE("a job is canceled from another thread") {
  const std::vector<std::int64_t> shape{2048, 512};
  const std::vector<float> x = random_floats(std::size_t{2048} * 512);
  const lnorm_tensor input = tensor_of(x, shape);
  const Job job = job_of("mutants");
  REQUIRE(lnorm_job_bind(job.get(), "input", &input) == 0);
  std::atomic<bool> has_ended = false;
  std::thread canceler([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    lnorm_job_cancel(job.get());
  });
  const int status = lnorm_job_run(job.get());
  has_ended = true;
  canceler.join();
  CHECK(status == 2);
  CHECK(lnorm_job_fault(job.get()) == LNORM_CANCELED);
  // The next run goes on, and so do others.
  REQUIRE(lnorm_job_set(job.get(), "kernels", "ddof-1") == 0);
  CHECK(lnorm_job_run(job.get()) <= 1);
  const Job next = job_of("stats");
  REQUIRE(lnorm_job_bind(next.get(), "input", &input) == 0);
  CHECK(lnorm_job_run(next.get()) == 0);
}

TEST_CASE("a job of inputs has its tensors") {
  const Job job = job_of("inputs");
  REQUIRE(lnorm_job_set(job.get(), "shape", "3,50") == 0);
  REQUIRE(lnorm_job_run(job.get()) == 0);
  CHECK(contains(lnorm_job_json(job.get()), "\"ordinary.x\""));
  lnorm_tensor x;
  REQUIRE(lnorm_job_result(job.get(), "ordinary.x", &x) == 0);
  CHECK(std::vector(x.shape, x.shape + x.ndim) == std::vector<std::int64_t>{3, 50});
  CHECK(static_cast<const float*>(x.data)[0] != 0);
  CHECK(lnorm_job_result(job.get(), "ordinary.z", &x) == 2);
}
