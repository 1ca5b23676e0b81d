// Entry of a libFuzzer program; VARVE_FUZZ_TARGET is the target's function.
#include "fuzz/target.h"

namespace varve::fuzz {
void VARVE_FUZZ_TARGET(Input input);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  varve::fuzz::VARVE_FUZZ_TARGET(std::as_bytes(std::span(data, size)));
  return 0;
}
