#include "compare/entries.h"

#include "compare/bytes.h"
#include "format/codec.h"

namespace varve::compare {

void append_entry(const Entries::Entry& entry, Bytes& out) {
  put(out, entry.ino.v);
  put(out, entry.type);
  put(out, entry.name);
}

Result<Entries> decode_entries(std::span<const std::byte> bytes) {
  Entries found;
  format::Reader in(bytes);
  found.parent = Ino{in.varint()};
  while (in.ok() && in.left() > 0) {
    Entries::Entry entry;
    entry.ino = Ino{in.varint()};
    entry.type = static_cast<std::uint8_t>(in.varint() & 0xFF);
    entry.name = in.text(in.varint());
    found.entries.push_back(std::move(entry));
  }
  if (!in.ok()) return Error(Errc::corrupt, "an answer about names ends in the middle of one");
  return found;
}

}  // namespace varve::compare
