// What is in the frames of a stream: encode and decode. Nothing that is read is believed.
#pragma once

#include <fmt/format.h>

#include <utility>

#include "format/codec.h"
#include "send/stream.h"

namespace varve::send {

enum Kind : std::uint8_t { kBegin = 1, kDetach, kMake, kAttach, kOpen, kData, kRange, kFinish, kEnd, kCreate };

template <class... Args>
Error bad(fmt::format_string<Args...> text, Args&&... args) {
  return {Errc::corrupt, "the stream is damaged: " + fmt::format(text, std::forward<Args>(args)...)};
}

void put_state(Bytes& out, const State& state);
State state(format::Reader& in);
Result<bool> flag(format::Reader& in);

std::uint8_t encode(const Record& record, Bytes& out);  // which kind it is
Result<Record> decode(std::uint8_t kind, format::Reader& in);  // Errc::corrupt; whether all of it was read is for the caller to see

}  // namespace varve::send
