#include "fuse/operations/listing.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace varve::fuse {
namespace {

constexpr Ino kDirectory{7};
const std::size_t kPage = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
constexpr std::size_t kEntryBytes = 32;  // of a name of eight bytes

// A directory of names of eight bytes, "." and ".." among them so that each takes the same.
struct Directory {
  std::uint64_t names;
  std::uint64_t last_cookie;  // above those of the names if some have gone since

  // Fills the listing as far as its space goes.
  void list(Listing& listing) const {
    for (std::uint64_t cookie = listing.cookie() + 1; cookie <= names; ++cookie) {
      const std::string name = fmt::format("{:08}", cookie);
      if (!listing.add({name, Ino{100 + cookie}, 8, cookie, nullptr, cookie == names, last_cookie})) return;
    }
  }
};

// In replies of `bytes`; whether the kernel may keep it. `meanwhile` is what is listed from the second reply on.
bool may_be_kept(const Directory& directory, std::size_t bytes, const Directory& meanwhile) {
  ListingPlaces places;
  std::vector<std::byte> space(bytes);
  std::optional<ListingPosition> from;
  while (!from || !from->at_end()) {
    Listing listing(space, false, from, from ? places.fill_at(kDirectory, *from) : std::nullopt);
    (from ? meanwhile : directory).list(listing);
    if (listing.bytes().empty()) return false;
    if (listing.fill()) places.note(kDirectory, listing.next(), *listing.fill());
    from = ListingPosition::decode(listing.next().encode());
  }
  return from->may_be_kept;
}

bool may_be_kept(std::uint64_t names, std::size_t bytes) {
  const Directory directory{names, names};
  return may_be_kept(directory, bytes, directory);
}

TEST(Listing, H59_is_kept_unless_it_fills_the_last_page) {
  const std::uint64_t a_page = kPage / kEntryBytes;
  for (const std::size_t bytes : {kPage / 4, kPage, 100 * kPage}) {
    for (const std::uint64_t pages : {1U, 2U, 5U}) {
      EXPECT_TRUE(may_be_kept(pages * a_page - 1, bytes));
      EXPECT_FALSE(may_be_kept(pages * a_page, bytes));
      EXPECT_TRUE(may_be_kept(pages * a_page + 1, bytes));
    }
  }
}

TEST(Listing, entries_do_not_cross_into_the_next_page) {
  PageFill fill;
  for (std::size_t used = 0; used + 40 <= kPage; used += 40) fill.add(40);
  EXPECT_FALSE(fill.full());
  fill.add(kPage - 8);
  EXPECT_FALSE(fill.full());
  fill.add(8);
  EXPECT_TRUE(fill.full());
}

TEST(Listing, H59_of_a_directory_that_changes_meanwhile_is_not_kept) {
  const Directory before{300, 300}, one_gone{299, 301};
  EXPECT_TRUE(may_be_kept(before, kPage, before));
  EXPECT_FALSE(may_be_kept(before, kPage, one_gone));
  EXPECT_FALSE(may_be_kept(before, kPage, {300, 302})) << "one came and went";
}

TEST(Listing, from_somewhere_in_the_middle_is_not_kept) {
  std::vector<std::byte> space(100 * kPage);
  Listing listing(space, false, ListingPosition{17, 300}, ListingPlaces().fill_at(kDirectory, {17, 300}));
  Directory{300, 300}.list(listing);
  EXPECT_TRUE(listing.next().at_end());
  EXPECT_FALSE(listing.next().may_be_kept);
}

TEST(Listing, ends_where_the_directory_ended_when_it_began) {
  std::vector<std::byte> space(100 * kPage);
  Listing listing(space, false, ListingPosition{17, 20}, std::nullopt);
  Directory{300, 300}.list(listing);
  EXPECT_EQ(listing.bytes().size(), 3 * kEntryBytes);
  EXPECT_TRUE(listing.next().at_end());
}

TEST(ListingPlaces, are_those_of_one_listing_in_one_directory) {
  ListingPlaces places;
  PageFill fill;
  fill.add(kPage);
  places.note(kDirectory, {17, 300}, fill);
  EXPECT_TRUE(places.fill_at(kDirectory, {17, 300})->full());
  EXPECT_FALSE(places.fill_at(kDirectory, {18, 300}).has_value());
  EXPECT_FALSE(places.fill_at(kDirectory, {17, 301}).has_value());
  EXPECT_FALSE(places.fill_at(Ino{kDirectory.v + 64}, {17, 300}).has_value());
}

}  // namespace
}  // namespace varve::fuse
