// Fuzz target for what comes over a network: streams of changes, tokens, and marks of interrupted receives.
#pragma once

#include "fuzz/target.h"

namespace varve::fuzz {

// The bytes as they are; then what makes sense of them, in their order and with right checksums, through a receiver that is interrupted.
void streams(Input input);
std::vector<std::vector<std::byte>> stream_seeds();

}  // namespace varve::fuzz
