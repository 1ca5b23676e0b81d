#include <algorithm>
#include <cstring>

#include "fuse/operations/listing.h"
#include "fuse/operations/operations.h"
#include "fuse/operations/request.h"

namespace varve::fuse {

namespace {

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
