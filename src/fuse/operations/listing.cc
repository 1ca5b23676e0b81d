#include "fuse/operations/listing.h"

#include <array>
#include <cstring>

#include "fuse/operations/attributes.h"
#include "fuse/operations/kept_node.h"
#include "fuse/operations/request.h"

namespace varve::fuse {

void Listing::clear() {
  used_ = 0;
  place_ = place_there_;
  stops_.clear();
  last_.reset();
  if (from_) last_ = from_->last;
}

bool Listing::add(const fs::DirectoryEntry& entry) {
  if (!last_) {  // it begins
    last_ = entry.last_cookie;
    place_ = ListingPlace{.last = entry.last_cookie};
  }
  if (entry.cookie > *last_) return false;
  const std::size_t head = plus_ ? FUSE_NAME_OFFSET_DIRENTPLUS : FUSE_NAME_OFFSET;
  const std::size_t bytes = FUSE_REC_ALIGN(head + entry.name.size());
  if (bytes > space_.size() - used_) return false;
  std::byte* at = space_.data() + used_;
  used_ += bytes;
  if (place_) place_->fill.add(FUSE_REC_ALIGN(FUSE_NAME_OFFSET + entry.name.size()));
  next_ = position_after(entry);
  if (place_) stops_.push_back({next_, place_->fill});
  std::memset(at + bytes - sizeof(std::uint64_t), 0, sizeof(std::uint64_t));
  const std::optional<Ino> number = snapshot_ ? KeptNode{snapshot_, entry.ino}.encode() : entry.ino;
  if (plus_) {
    // "." and "..", and what has no number: node 0, which the kernel does not look at.
    const fuse_entry_out out =
        entry.attr && number ? to_entry(blocks_ ? blocks_->with_unseen(*entry.attr) : *entry.attr, *number) : fuse_entry_out{};
    std::memcpy(at, &out, sizeof out);
    at += sizeof out;
  }
  fuse_dirent dirent{};
  dirent.ino = number.value_or(entry.ino).v;
  dirent.off = next_.encode();
  dirent.namelen = static_cast<std::uint32_t>(entry.name.size());
  dirent.type = entry.type;
  std::memcpy(at, &dirent, FUSE_NAME_OFFSET);
  std::memcpy(at + FUSE_NAME_OFFSET, entry.name.data(), entry.name.size());
  return true;
}

ListingPosition Listing::position_after(const fs::DirectoryEntry& entry) const {
  const bool ends = entry.is_last || entry.cookie == *last_;
  const bool may_be_kept = ends && place_ && place_->may_be_kept(place_->last == entry.last_cookie);
  return {.cookie = ends ? *last_ : entry.cookie, .last = *last_, .may_be_kept = may_be_kept};
}

void reply_end_of_listing(Request& r, bool may_be_kept) {
  static constexpr std::array<std::byte, sizeof(std::uint64_t)> kNoEntry{};
  static_assert(kNoEntry.size() < FUSE_NAME_OFFSET);
  r.reply_bytes(std::span(kNoEntry).first(may_be_kept ? 0 : kNoEntry.size()));
}

void reply_listing(Request& r, const Listing& listing) {
  if (listing.bytes().empty()) reply_end_of_listing(r, listing.may_be_kept());
  else r.reply_bytes(listing.bytes());
}

}  // namespace varve::fuse
