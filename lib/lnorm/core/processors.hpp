#pragma once

// Plain loops with the vectors of several processors.

// g++ compiles a function, and what it calls, for x86-64 with AVX2 and with AVX-512 as well; which one is taken is chosen when the
// program starts. Results are the same: nothing is contracted. clang knows no such function by one declaration, and the sanitizers look
// into what chooses before they have begun.
#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define LNORM_FOR_PROCESSORS [[gnu::flatten, gnu::target_clones("default", "avx2", "avx512f")]]
#else
#define LNORM_FOR_PROCESSORS
#endif
