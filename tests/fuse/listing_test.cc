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

// One program that lists it in replies of `bytes`.
class Reader {
 public:
  Reader(ListingPlaces& places, std::size_t bytes) : places_(places), space_(bytes) {}

  // One reply more; false: that was the end.
  bool read(const Directory& directory) {
    Listing listing(space_, false, from_, from_ ? places_.at(kDirectory, *from_) : std::nullopt);
    directory.list(listing);
    listing.clear();  // as where it has to be tried again
    directory.list(listing);
    if (listing.place() && !listing.ends()) places_.note(kDirectory, *listing.place(), listing.begins(), listing.stops());
    if (listing.bytes().empty()) return may_be_kept_ = listing.may_be_kept(), false;
    from_ = ListingPosition::decode(listing.next().encode());
    if (step_back_ && listing.stops().size() > 1 && !from_->at_end())  // the last one did not fit into its buffer
      from_ = ListingPosition::decode(listing.stops()[listing.stops().size() - 2].position.encode());
    may_be_kept_ = from_->at_end() && from_->may_be_kept;
    return !from_->at_end();
  }
  void step_back() { step_back_ = true; }
  bool may_be_kept() const { return may_be_kept_; }

 private:
  ListingPlaces& places_;
  std::vector<std::byte> space_;
  std::optional<ListingPosition> from_;
  bool step_back_ = false, may_be_kept_ = false;
};

// `meanwhile` is what is listed from the second reply on.
bool may_be_kept(const Directory& directory, std::size_t bytes, const Directory& meanwhile) {
  ListingPlaces places;
  Reader reader(places, bytes);
  for (bool more = reader.read(directory); more;) more = reader.read(meanwhile);
  return reader.may_be_kept();
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

// The kernel has what it was given, and throws it away when the directory is opened the next time.
TEST(Listing, of_a_directory_that_changes_is_kept_as_it_was_given) {
  const std::uint64_t a_page = kPage / kEntryBytes;
  EXPECT_TRUE(may_be_kept({300, 300}, kPage, {300, 302}));
  EXPECT_FALSE(may_be_kept({2 * a_page, 2 * a_page}, kPage, {2 * a_page, 2 * a_page + 2}));
}

// Then it is not known of which of them the kernel has what.
TEST(Listing, H59_of_two_readers_at_a_time_is_kept_only_if_nothing_changes) {
  const Directory before{300, 300}, one_gone{299, 301};
  for (const bool changes : {false, true}) {
    ListingPlaces places;
    Reader first(places, kPage), second(places, kPage);
    EXPECT_TRUE(first.read(before));
    for (bool more = second.read(before); more;) more = second.read(changes ? one_gone : before);
    EXPECT_EQ(second.may_be_kept(), !changes);
  }
}

TEST(Listing, that_ends_before_new_names_is_kept) {
  ListingPlaces places;
  Reader reader(places, kPage);
  bool more = reader.read({300, 300});
  while (more) more = reader.read({320, 320});
  EXPECT_TRUE(reader.may_be_kept());
}

TEST(Listing, is_known_where_a_small_buffer_ends) {
  const Directory directory{1000, 1000};
  ListingPlaces places;
  Reader reader(places, kPage / 4);
  reader.step_back();
  while (reader.read(directory)) {
  }
  EXPECT_TRUE(reader.may_be_kept());
}

TEST(Listing, of_a_directory_that_has_changed_often_is_kept) {
  const Directory directory{1000, (1ULL << 18) + 1};  // its positions are rounded
  EXPECT_TRUE(may_be_kept(directory, kPage, directory));
}

TEST(Listing, from_somewhere_in_the_middle_is_not_kept) {
  std::vector<std::byte> space(100 * kPage);
  Listing listing(space, false, ListingPosition{17, 300}, ListingPlaces().at(kDirectory, {17, 300}));
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
  places.note(kDirectory, {.last = 300}, true, {{{16, 300}, {}}, {{17, 300}, fill}});
  EXPECT_TRUE(places.at(kDirectory, {17, 300})->fill.full());
  EXPECT_FALSE(places.at(kDirectory, {16, 300})->fill.full());
  EXPECT_TRUE(places.at(kDirectory, {17, 300})->alone);
  EXPECT_FALSE(places.at(kDirectory, {18, 300}).has_value());
  EXPECT_FALSE(places.at(kDirectory, {17, 301}).has_value());
  EXPECT_FALSE(places.at(Ino{kDirectory.v + 1}, {17, 300}).has_value());
}

TEST(ListingPlaces, of_many_directories_the_oldest_make_room) {
  ListingPlaces places;
  for (std::uint64_t i = 1; i <= 100; ++i) places.note(Ino{i}, {.last = 300}, true, {{{17, 300}, {}}});
  EXPECT_FALSE(places.at(Ino{1}, {17, 300}).has_value());
  EXPECT_TRUE(places.at(Ino{50}, {17, 300}).has_value());
  EXPECT_TRUE(places.at(Ino{100}, {17, 300}).has_value());
}

}  // namespace
}  // namespace varve::fuse
