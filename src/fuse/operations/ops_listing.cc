#include <algorithm>
#include <cstring>

#include "fuse/operations/listing.h"
#include "fuse/operations/operations.h"
#include "fuse/operations/ops_kept.h"
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

// For the request that goes on there.
void note_place(Request& r, const Listing& listing) {
  if (!listing.place() || listing.ends()) return;
  r.session().listings().places.note(r.node(), *listing.place(), listing.begins(), listing.stops());
}

// `hides`: something in it may be hidden. `reveals`: the folder of snapshots comes first.
void serve_listing(Request& r, const std::shared_ptr<Listing>& listing, bool hides, bool reveals) {
  r.serve(
      [&r, listing, reveals] {
        listing->clear();
        return r.fs().readdir(r.operation(), r.node(), listing->cookie(), listing->plus(), [&](const fs::DirectoryEntry& entry) {
          if (reveals && listing->bytes().empty()) listing->add(snapshots_folder_entry(r, entry.last_cookie));
          return listing->add(entry);
        });
      },
      [&r, listing, hides] {
        if (listing->plus()) count_references(r.fs(), listing->bytes());
        note_place(r, *listing);
        if (hides && listing->bytes().empty()) reply_end_of_listing(r, false);
        else reply_listing(r, *listing);
      });
}

Status list(Request& r, bool plus) {
  const auto in = TRY(r.body().take<fuse_read_in>());
  const auto from = in.offset ? ListingPosition::decode(in.offset) : std::nullopt;
  const bool hides = hides_snapshots_folder(r);
  // Where something is hidden, each listing has to be asked for.
  if (from && from->at_end()) return reply_end_of_listing(r, from->may_be_kept && !hides), Status();
  const auto place = from ? r.session().listings().places.at(r.node(), *from) : std::nullopt;
  const auto listing = std::make_shared<Listing>(r.reply_space(std::min(in.size, kMaxWrite)), plus, from, place);
  listing->count_blocks(r.session().block_counts());
  const SessionSettings& settings = r.session().settings();
  const bool reveals = hides && !from && r.session().listings().folder.is_shown_to(r.header().pid);
  if (!hides || from || !settings.shows_snapshots_dir) return serve_listing(r, listing, hides, reveals), Status();
  // Unless something of that name is really there, which is in the listing anyway.
  r.serve_result([&r, &settings] { return r.fs().lookup(r.operation(), kRootIno, settings.snapshots_dir); },
                 [&r, listing](const Result<fs::Attr>& real) {
                   if (real.ok()) r.fs().forget(real->ino, 1);  // the kernel is not told of it
                   serve_listing(r, listing, true, real.fails_with(Errc::not_found));
                 });
  return {};
}

}  // namespace

Status readdir(Request& r) { return list(r, false); }
Status readdirplus(Request& r) { return list(r, true); }

}  // namespace varve::fuse
