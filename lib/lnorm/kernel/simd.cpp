// The passes in SIMD, compiled for every target that Highway can choose from at run time.

// Targets that would bring nothing: they differ from others in what is not used here, or have vectors
// whose length is not known when this is compiled.
#ifdef LNORM_WITHOUT_SSE4
#define LNORM_SSE_TARGETS (HWY_SSSE3 | HWY_SSE4)
#else
#define LNORM_SSE_TARGETS HWY_SSSE3
#endif
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS \
  (LNORM_SSE_TARGETS | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#endif

// Every AArch64 has NEON. Told that nothing is to be found out at run time, Highway compiles for it without target
// attributes, which the implicit constructors of structs of vectors would not have.
#if defined(__aarch64__)
#define TOOLCHAIN_MISS_SYS_AUXV_H
#endif

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

// Without vectors portable.cpp does the same.
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "lnorm/kernel/passes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {

Kernel kernel(const char* name) { return {name, &kPasses}; }

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
bool supports_avx512() {
  return supports_avx2() && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512cd");
}
#endif

}  // namespace

std::vector<Kernel> simd_kernels() {
  std::vector<Kernel> kernels;
#if HWY_TARGETS & HWY_AVX3
  if (supports_avx512()) kernels.push_back(N_AVX3::kernel("avx512"));
#endif
#if HWY_TARGETS & HWY_AVX2
  if (supports_avx2()) kernels.push_back(N_AVX2::kernel("avx2"));
#endif
#if HWY_TARGETS & HWY_SSE4
  if (supports_sse4()) kernels.push_back(N_SSE4::kernel("sse4"));
#endif
#if HWY_ARCH_ARM_A64
  kernels.push_back(HWY_NAMESPACE::kernel("neon"));
#endif
  return kernels;
}

}  // namespace lnorm
#endif
