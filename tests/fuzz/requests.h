// The targets of fuse/: what users and the kernel say.
#pragma once

#include "fuzz/decoders.h"

namespace varve::fuzz {

void options(Input input);   // the text behind `-o`
void requests(Input input);  // messages of a kernel that has lost its mind, control requests among them
Seeds option_seeds();
Seeds request_seeds();

}  // namespace varve::fuzz
