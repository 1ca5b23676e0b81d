#include <algorithm>
#include <cstring>

#include "fuse/operations/attributes.h"
#include "fuse/protocol/listing_position.h"
#include "fuse/operations/operations.h"
#include "fuse/operations/request.h"

namespace varve::fuse {

namespace {

// Packs directory entries into a reply, in the plain form or with attributes.
class Listing {
 public:
  Listing(std::span<std::byte> space, bool plus, std::uint64_t last) : space_(space), plus_(plus), last_(last) {}

  // False: no room for it, or behind the end.
  bool add(const fs::DirectoryEntry& entry) {
    if (entry.cookie > last_) return false;
    const std::size_t head = plus_ ? FUSE_NAME_OFFSET_DIRENTPLUS : FUSE_NAME_OFFSET;
    const std::size_t bytes = FUSE_REC_ALIGN(head + entry.name.size());
    if (bytes > space_.size() - used_) return false;
    std::byte* at = space_.data() + used_;
    used_ += bytes;
    std::memset(at + bytes - sizeof(std::uint64_t), 0, sizeof(std::uint64_t));
    if (plus_) {
      // "." and "..": node 0, which the kernel does not look at.
      const fuse_entry_out out = entry.attr ? to_entry(*entry.attr) : fuse_entry_out{};
      std::memcpy(at, &out, sizeof out);
      at += sizeof out;
    }
    fuse_dirent dirent{};
    dirent.ino = entry.ino.v;
    dirent.off = ListingPosition{entry.cookie, last_}.encode();
    dirent.namelen = static_cast<std::uint32_t>(entry.name.size());
    dirent.type = entry.type;
    std::memcpy(at, &dirent, FUSE_NAME_OFFSET);
    std::memcpy(at + FUSE_NAME_OFFSET, entry.name.data(), entry.name.size());
    return true;
  }

  std::span<const std::byte> bytes() const { return space_.first(used_); }
  void clear() { used_ = 0; }

 private:
  std::span<std::byte> space_;
  bool plus_;
  std::uint64_t last_;
  std::size_t used_ = 0;
};

// The kernel takes a reference to every inode that a reply with attributes names.
void count_references(fs::Filesystem& fs, std::span<const std::byte> listing) {
  while (!listing.empty()) {
    fuse_direntplus entry;
    std::memcpy(&entry, listing.data(), FUSE_NAME_OFFSET_DIRENTPLUS);
    if (entry.entry_out.nodeid) fs.count_reference(Ino{entry.entry_out.nodeid});
    listing = listing.subspan(FUSE_REC_ALIGN(FUSE_NAME_OFFSET_DIRENTPLUS + entry.dirent.namelen));
  }
}

void list_from(Request& r, ListingPosition position, std::uint32_t bytes, bool plus) {
  if (position.at_end()) return r.reply_bytes({});
  auto listing = std::make_shared<Listing>(r.reply_space(bytes), plus, position.last);
  r.serve(
      [&r, listing, cookie = position.cookie, plus] {
        listing->clear();
        return r.fs().readdir(r.operation(), r.node(), cookie, plus,
                              [&](const fs::DirectoryEntry& entry) { return listing->add(entry); });
      },
      [&r, listing, plus] {
        if (plus) count_references(r.fs(), listing->bytes());
        r.reply_bytes(listing->bytes());
      });
}

Status list(Request& r, bool plus) {
  const auto in = TRY(r.body().take<fuse_read_in>());
  const std::uint32_t bytes = std::min(in.size, kMaxWrite);
  const auto position = in.offset ? ListingPosition::decode(in.offset) : std::nullopt;
  if (position) {
    list_from(r, *position, bytes, plus);
  } else {  // from the start
    r.serve([&r] { return r.fs().last_cookie(r.operation(), r.node()); },
            [&r, bytes, plus](std::uint64_t last) { list_from(r, {0, last}, bytes, plus); });
  }
  return {};
}

}  // namespace

Status readdir(Request& r) { return list(r, false); }
Status readdirplus(Request& r) { return list(r, true); }

}  // namespace varve::fuse
