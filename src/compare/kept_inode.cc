#include "compare/kept_inode.h"

#include "compare/bytes.h"
#include "format/codec.h"

namespace varve::compare {

static_assert(kMostDataBytes <= kMostAnswerBytes);

void append(const KeptInode& inode, Bytes& out) {
  Bytes attributes, xattrs;
  format::encode_attributes(inode.attributes, attributes);
  format::encode_xattrs(inode.xattrs, xattrs);
  put(out, std::span<const std::byte>(attributes));
  put(out, std::string_view(inode.target));
  put(out, std::span<const std::byte>(xattrs));
}

Result<KeptInode> decode_inode(std::span<const std::byte> bytes) {
  format::Reader in(bytes);
  KeptInode found;
  found.attributes = TRY(format::decode_attributes(in.bytes(in.varint())));
  found.target = in.text(in.varint());
  found.xattrs = TRY(format::decode_xattrs(in.bytes(in.varint())));
  if (!in.ok() || in.left()) return Error(Errc::corrupt, "an answer about an inode makes no sense");
  return found;
}

Result<KeptInode> ask_inode(const Ask& ask, Serial snapshot, Ino ino) {
  Question question{Question::Kind::inode, {}, snapshot, {ino, format::ItemKind::attributes, 0}};
  Bytes all;
  for (;;) {
    const Answer answer = TRY(ask(question));
    all.insert(all.end(), answer.bytes.begin(), answer.bytes.end());
    if (answer.ended) return decode_inode(all);
    if (answer.bytes.empty()) return Error(Errc::corrupt, "an answer about an inode does not go on");
    question.from.offset = all.size();
  }
}

Result<Bytes> ask_data(const Ask& ask, Serial snapshot, Ino ino, std::uint64_t offset) {
  return TRY(ask({Question::Kind::data, {}, snapshot, {ino, format::ItemKind::extent, offset}})).bytes;
}

}  // namespace varve::compare
