// The kernel table of every target that Highway can choose from at run time.

#include "lnorm/kernel/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lnorm/kernel/simd.cpp"  // compiled once more for every target
// foreach_target.h has to come before highway.h.
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#if HWY_ARCH_X86
#include <cpuid.h>
#endif

#include "lnorm/kernel/simd.hpp"

// portable.cpp does the same without vectors.
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {

extern const RowKernels kRowKernels;      // simd_row_kernels.cpp
extern const OtherKernels kOtherKernels;  // simd_other_kernels.cpp

Backend backend(const char* name) {
  static const KernelTable table{kRowKernels, kOtherKernels};
  return {name, &table};
}

}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace lnorm {

namespace {

// Highway's own choice at run time is in its shared library, which spends milliseconds on start-up to
// measure timers that nobody here asks for.
#if HWY_ARCH_X86
bool supports_f16c() {  // which compilers do not all know by name
  unsigned int eax = 0;
  unsigned int ebx = 0;
  unsigned int ecx = 0;
  unsigned int edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
bool supports_sse4() {
  return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul") &&
         __builtin_cpu_supports("aes");
}
bool supports_avx2() {
  return supports_sse4() && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && supports_f16c();
}
[[maybe_unused]] bool supports_avx512() {
  return supports_avx2() && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512cd");
}
#endif

}  // namespace

std::vector<Backend> simd_backends() {
  std::vector<Backend> backends;
#if HWY_TARGETS & HWY_AVX3
  if (supports_avx512()) backends.push_back(N_AVX3::backend("avx512"));
#endif
#if HWY_TARGETS & HWY_AVX2
  if (supports_avx2()) backends.push_back(N_AVX2::backend("avx2"));
#endif
#if HWY_TARGETS & HWY_SSE4
  if (supports_sse4()) backends.push_back(N_SSE4::backend("sse4"));
#endif
#if HWY_ARCH_ARM_A64
  backends.push_back(HWY_NAMESPACE::backend("neon"));
#endif
  return backends;
}

}  // namespace lnorm
#endif
