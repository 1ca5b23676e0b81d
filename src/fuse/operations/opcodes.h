// The table of operations: name and handler of each opcode.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace varve::fuse {

class Request;

// Decodes the request and starts serving it; it replies by itself, now or later. An error is one of decoding, which the
// caller replies.
using Handler = Status (*)(Request&);

const char* opcode_name(std::uint32_t opcode);  // as <linux/fuse.h> calls it, without the prefix, in lower case
Handler opcode_handler(std::uint32_t opcode);   // never null: what is unknown is answered with ENOSYS
Handler handler_of(Request& request);            // also for what is asked about snapshots

}  // namespace varve::fuse
