// For loops that wait for another thread or a device: leaves the core's resources to its other thread for a moment.
#pragma once

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace varve {

// 40 to 140 cycles on x86. Elsewhere isb, as yield does nothing on most ARM cores; nothing on other machines.
inline void cpu_pause() {
#if defined(__x86_64__) || defined(__i386__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

}  // namespace varve
