#pragma once

// LNORM_FOR_PROCESSORS before a definition: g++ compiles the function, and what it calls, three times, for every x86-64, for AVX2 and for
// AVX-512. The program takes the best one when it starts. Results are the same, since products and sums are not fused. clang wants the
// attribute on each declaration. The sanitizers instrument the choice, which is made before they are ready.
#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define LNORM_FOR_PROCESSORS [[gnu::flatten, gnu::target_clones("default", "avx2", "avx512f")]]
#else
#define LNORM_FOR_PROCESSORS
#endif
