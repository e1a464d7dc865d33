#include <algorithm>
#include <bit>
#include <cstdlib>
#include <exception>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "job.hpp"
#include "lnorm.h"
#include "lnorm/core/dtype_table.hpp"
#include "lnorm/core/text.hpp"
#include "print_error.hpp"
#include "program.hpp"

// lnorm.h: what it says is not repeated here.

using namespace lnorm;

struct lnorm_job {
  explicit lnorm_job(const app::CommandRow& command) : job(command) {}

  app::Job job;
  std::string error;
  std::string hint;
  std::string role;
  int fault = LNORM_OK;
  TensorInfo described;  // by lnorm_job_result
};

namespace {

void fail(lnorm_job& job, int fault, const std::string& message, const std::string& hint = {}) {
  job.fault = fault;
  job.error = job.job.in_names(message);
  // A command line is of no use here.
  if (hint.find("lnorm ") == hint.npos) job.hint = job.job.in_names(hint);
  job.role = job.job.role_in(job.error);
}

// Calls work, which returns a status; 2 after an error, which is kept.
template <class Work>
int guarded(lnorm_job* job, Work work) noexcept {
  if (job == nullptr) return 2;
  try {
    job->error.clear();
    job->hint.clear();
    job->role.clear();
    job->fault = LNORM_OK;
    try {
      return work();
    } catch (const app::UnknownName& error) {
      fail(*job, LNORM_UNKNOWN, error.what(), app::hint_of(error));
    } catch (const SystemError& error) {
      fail(*job, LNORM_SYSTEM, error.what(), app::hint_of(error));
    } catch (const Error& error) {
      fail(*job, LNORM_INVALID, error.what(), app::hint_of(error));
    } catch (const app::Canceled& error) {
      fail(*job, LNORM_CANCELED, error.what());
    }
  } catch (const std::bad_alloc&) {
    job->fault = LNORM_NO_MEMORY;
    job->error = "no memory left";  // short enough to need none
  } catch (const std::exception& error) {
    job->fault = LNORM_INVALID;
    job->error = error.what();
  }
  return 2;
}

const char* given(const char* name, const char* what) {
  if (name == nullptr) throw Error(concat(what, " is a null pointer, expected a name"));
  return name;
}

// Whether no element is farther away than memory is large.
bool are_near(const Memory& memory) {
  constexpr std::int64_t kFar = std::int64_t{1} << 62;
  std::int64_t left = kFar;
  for (std::size_t i = 0; i < memory.strides.size(); ++i) {
    const std::int64_t steps = std::max<std::int64_t>(0, memory.info.shape[i] - 1);
    const std::int64_t stride = memory.strides[i];
    if (steps == 0) continue;
    if (stride <= -kFar || stride >= kFar || std::abs(stride) > left / steps) return false;
    left -= std::abs(stride) * steps;
  }
  return true;
}

Memory memory_of(const std::string& name, const lnorm_tensor* tensor) {
  const auto check = [&](bool is_right, const auto&... found) {
    if (!is_right) throw Error(concat(name, ": ", found...));
  };
  check(tensor != nullptr, "is a null pointer, expected a tensor");
  const char* const dtype_name = tensor->dtype == nullptr ? "" : tensor->dtype;
  const auto dtype = parse_dtype(dtype_name);
  const auto is_any = [](DType one) { return one != DType::float64_pair; };
  if (!dtype || !is_any(*dtype)) {
    check(false, "has dtype '", printable(dtype_name), "', expected ", dtype_list(is_any));
  }
  check(tensor->ndim >= 0 && tensor->ndim <= static_cast<int>(kMaxDims), "has ", tensor->ndim,
        " axes, expected 0 to ", kMaxDims);
  check(tensor->ndim == 0 || tensor->shape != nullptr, "has no shape");
  Memory memory;
  memory.info = {name, *dtype, {tensor->shape, tensor->shape + tensor->ndim}};
  const Shape& shape = memory.info.shape;
  check(std::all_of(shape.begin(), shape.end(), [](std::int64_t extent) { return extent >= 0; }),
        "has shape ", to_string(shape), ", expected extents of 0 or more");
  const auto count = checked_product(shape);
  check(count && *count <= std::numeric_limits<std::int64_t>::max() / 8, "has shape ",
        to_string(shape), ", which has more elements than memory");
  check(tensor->data != nullptr || *count == 0, "has no data");
  check((tensor->flags & ~std::uint32_t{LNORM_SWAPPED | LNORM_READ_ONLY}) == 0, "has flags ",
        tensor->flags, ", expected LNORM_SWAPPED and LNORM_READ_ONLY alone");
  if ((tensor->flags & LNORM_SWAPPED) != 0) {
    memory.info.byte_order =
        std::endian::native == std::endian::little ? std::endian::big : std::endian::little;
  }
  memory.data = static_cast<std::byte*>(tensor->data);
  memory.strides = c_strides(memory.info);
  if (tensor->strides != nullptr) {
    std::copy_n(tensor->strides, memory.strides.size(), memory.strides.begin());
  }
  check(*count == 0 || are_near(memory), "has strides that leave memory");
  return memory;
}

int bind(lnorm_job* job, const char* role, const char* member, const lnorm_tensor* tensor) {
  return guarded(job, [&] {
    job->job.bind(given(role, "the role"), given(member, "the name"), memory_of(role, tensor));
    return 0;
  });
}

}  // namespace

const char* lnorm_version(void) { return LNORM_VERSION; }

int lnorm_option_kind(const char* command, const char* option) {
  if (command == nullptr || option == nullptr) return LNORM_NO_OPTION;
  try {
    const app::CommandRow* const row = app::find_command(command);
    return row == nullptr ? LNORM_NO_OPTION : app::option_kind(*row, option);
  } catch (const std::exception&) {
    return LNORM_NO_OPTION;
  }
}

lnorm_job* lnorm_job_new(const char* command) {
  if (command == nullptr) return nullptr;
  try {
    const app::CommandRow* const row = app::find_command(command);
    return row == nullptr ? nullptr : std::make_unique<lnorm_job>(*row).release();
  } catch (const std::exception&) {
    return nullptr;
  }
}

void lnorm_job_free(lnorm_job* job) { const std::unique_ptr<lnorm_job> owner(job); }

int lnorm_job_set(lnorm_job* job, const char* option, const char* value) {
  return guarded(job, [&] {
    job->job.set(given(option, "the option"),
                 value == nullptr ? std::nullopt : std::optional<std::string>(value));
    return 0;
  });
}

int lnorm_job_bind(lnorm_job* job, const char* role, const lnorm_tensor* tensor) {
  return bind(job, role, "", tensor);
}

int lnorm_job_bind_member(lnorm_job* job, const char* role, const char* name,
                          const lnorm_tensor* tensor) {
  return bind(job, role, name, tensor);
}

int lnorm_job_result(lnorm_job* job, const char* result, lnorm_tensor* tensor) {
  return guarded(job, [&] {
    if (tensor == nullptr) throw Error("the tensor to describe is a null pointer");
    *tensor = {};
    const MadeTensor* const made = job->job.made(given(result, "the result"));
    if (made == nullptr) {
      const auto info = job->job.result(result);
      if (!info) return 1;
      job->described = *info;
    } else {
      job->described = made->info;
      tensor->data = const_cast<std::byte*>(made->elements.data());
      tensor->flags = LNORM_READ_ONLY;
    }
    tensor->dtype = name(job->described.dtype).data();
    tensor->ndim = static_cast<std::int32_t>(job->described.shape.size());
    tensor->shape = job->described.shape.data();
    return 0;
  });
}

int lnorm_job_bind_result(lnorm_job* job, const char* result, const lnorm_tensor* tensor) {
  return guarded(job, [&] {
    const Memory memory = memory_of(given(result, "the result"), tensor);
    if ((tensor->flags & LNORM_READ_ONLY) != 0) {
      throw Error(concat(result, ": is read-only, expected a tensor to write to"));
    }
    if ((tensor->flags & LNORM_SWAPPED) != 0) {
      throw Error(
          concat(result, ": is not in the machine's byte order, expected a tensor that is"));
    }
    job->job.bind_result(result, memory);
    return 0;
  });
}

int lnorm_job_run(lnorm_job* job) {
  return guarded(job, [&] {
    const int status = job->job.run();
    if (status == 2) fail(*job, LNORM_INVALID, job->job.notes());
    return status;
  });
}

void lnorm_job_cancel(lnorm_job* job) {
  if (job != nullptr) job->job.cancel();
}

const char* lnorm_job_text(const lnorm_job* job) { return job ? job->job.text().c_str() : ""; }
const char* lnorm_job_json(const lnorm_job* job) { return job ? job->job.json().c_str() : ""; }
const char* lnorm_job_error(const lnorm_job* job) { return job ? job->error.c_str() : ""; }
const char* lnorm_job_hint(const lnorm_job* job) { return job ? job->hint.c_str() : ""; }
const char* lnorm_job_role_at_fault(const lnorm_job* job) { return job ? job->role.c_str() : ""; }
int lnorm_job_fault(const lnorm_job* job) { return job ? job->fault : LNORM_INVALID; }

int lnorm_main(int argc, const char* const* argv) {
  if (argc < 1 || argv == nullptr) return 2;
  app::set_up_process();
  return app::run_program(argc, argv);
}
