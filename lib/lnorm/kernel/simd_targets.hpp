// SIMD code is compiled for these targets. This comes before Highway's headers.

#pragma once

// Targets that would bring nothing: they differ from others in what is not used here, or have vectors
// whose length is not known when this is compiled.
#ifdef LNORM_ONE_SIMD_TARGET
#define LNORM_X86_TARGETS_LEFT_OUT (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3)
#else
#define LNORM_X86_TARGETS_LEFT_OUT HWY_SSSE3
#endif
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS                                                                    \
  (LNORM_X86_TARGETS_LEFT_OUT | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | \
   HWY_RVV)
#endif

// Every AArch64 has NEON. Told that nothing is to be found out at run time, Highway compiles for it without target
// attributes, which the implicit constructors of structs of vectors would not have.
#if defined(__aarch64__)
#define TOOLCHAIN_MISS_SYS_AUXV_H
#endif
