// INIT, and reading message bodies.
#include "fuse/protocol/negotiation.h"

#include <gmock/gmock.h>

#include <cstring>

#include "fuse/protocol/message_reader.h"

namespace varve::fuse {
namespace {

using ::testing::Contains;
using ::testing::Not;

fuse_init_in offer_of_everything() {
  fuse_init_in offer{};
  offer.major = 7;
  offer.minor = 45;
  offer.max_readahead = 131072;
  offer.flags = ~0U;
  offer.flags2 = ~0U;
  return offer;
}

TEST(Negotiation, TakesWhatItNeedsAndNothingElse) {
  const Agreement agreed = *negotiate(offer_of_everything(), {}, 4096);
  const std::uint32_t flags = agreed.reply.flags;
  for (const std::uint32_t bit : {FUSE_PARALLEL_DIROPS, FUSE_HANDLE_KILLPRIV_V2, FUSE_WRITEBACK_CACHE, FUSE_POSIX_ACL,
                                  FUSE_EXPORT_SUPPORT, FUSE_EXPLICIT_INVAL_DATA, FUSE_CACHE_SYMLINKS, FUSE_MAX_PAGES,
                                  FUSE_READDIRPLUS_AUTO, FUSE_ASYNC_DIO, FUSE_DONT_MASK, FUSE_SETXATTR_EXT})
    EXPECT_TRUE(flags & bit) << std::hex << bit;
  for (const std::uint32_t bit : {FUSE_ATOMIC_O_TRUNC, FUSE_AUTO_INVAL_DATA, FUSE_POSIX_LOCKS, FUSE_FLOCK_LOCKS,
                                  FUSE_HANDLE_KILLPRIV, FUSE_SPLICE_READ})
    EXPECT_FALSE(flags & bit) << std::hex << bit;
  EXPECT_EQ(agreed.reply.flags2, 0U);
  EXPECT_EQ(agreed.reply.major, 7U);
  EXPECT_EQ(agreed.reply.minor, kMinorVersion);
  EXPECT_EQ(agreed.reply.max_write, 1U << 20);
  EXPECT_EQ(agreed.reply.max_pages, 256U);
  EXPECT_EQ(agreed.reply.time_gran, 1U);
  EXPECT_EQ(agreed.reply.max_readahead, 131072U);
  EXPECT_THAT(agreed.feature_names(), Contains("parallel_dirops"));
}

TEST(Negotiation, NeverAgreesToMoreThanIsOffered) {
  fuse_init_in offer = offer_of_everything();
  offer.minor = 34;
  offer.flags = FUSE_ASYNC_READ | FUSE_PARALLEL_DIROPS;
  const Agreement agreed = *negotiate(offer, {});
  EXPECT_EQ(agreed.reply.flags, offer.flags);
  EXPECT_EQ(agreed.reply.flags2, 0U) << "not announced by FUSE_INIT_EXT";
  EXPECT_EQ(agreed.reply.minor, 34U);
  EXPECT_FALSE(agreed.writeback);
  EXPECT_FALSE(agreed.setxattr_extended);
}

TEST(Negotiation, KnowsWhichKernelsDropWhatIsStillBeingWritten) {
  fuse_init_in offer = offer_of_everything();
  for (const auto& [minor, drops] : {std::pair{43U, true}, std::pair{45U, false}}) {
    offer.minor = minor;
    EXPECT_EQ(negotiate(offer, {})->drops_before_written, drops) << minor;
    EXPECT_EQ(negotiate(offer, {.writeback = false})->drops_before_written, drops) << "what is mapped waits there";
  }
}

// A READ of 256 pages of 64 KiB would be one of 16 MiB.
TEST(Negotiation, TheKernelCountsItsOwnPages) {
  const auto max_pages = [](std::size_t page_bytes) { return negotiate(offer_of_everything(), {}, page_bytes)->reply.max_pages; };
  EXPECT_EQ(max_pages(4096), 256);
  EXPECT_EQ(max_pages(16u << 10), 64);
  EXPECT_EQ(max_pages(64u << 10), 16);
  EXPECT_EQ(max_pages(2u << 20), 1);
}

TEST(Negotiation, NoMoreIsReadAtOnceThanWasAgreed) {
  fuse_read_in in{};
  in.size = kMaxWrite;
  EXPECT_EQ(*agreed_bytes(in), kMaxWrite);
  in.size = kMaxWrite + 1;
  EXPECT_TRUE(agreed_bytes(in).fails_with(Errc::io));
}

TEST(Negotiation, OpensCanBeAskedFor) {
  EXPECT_THAT(negotiate(offer_of_everything(), {})->feature_names(), Contains("no_open"));
  EXPECT_THAT(negotiate(offer_of_everything(), {.ask_opens = true})->feature_names(), Not(Contains("no_open")));
}

TEST(Negotiation, IdMappedMountsAreAllowedWhereTheKernelHasThem) {
  fuse_init_in offer = offer_of_everything();
  EXPECT_EQ(negotiate(offer, {.allow_idmap = true})->reply.flags2, 1U << 8);
  EXPECT_THAT(negotiate(offer, {.allow_idmap = true})->feature_names(), Contains("allow_idmap"));
  offer.flags2 = 0;
  EXPECT_EQ(negotiate(offer, {.allow_idmap = true})->reply.flags2, 0U);
}

TEST(Negotiation, AclsGoWithExtendedAttributes) {
  EXPECT_THAT(negotiate(offer_of_everything(), {})->feature_names(), Contains("posix_acl"));
  EXPECT_THAT(negotiate(offer_of_everything(), {.xattrs = false})->feature_names(), Not(Contains("posix_acl")));
}

TEST(Negotiation, WritebackCanBeDeclined) {
  const Agreement agreed = *negotiate(offer_of_everything(), {.writeback = false});
  EXPECT_FALSE(agreed.writeback);
  EXPECT_FALSE(agreed.reply.flags & FUSE_WRITEBACK_CACHE);
  EXPECT_THAT(agreed.feature_names(), Not(Contains("writeback_cache")));
}

TEST(Negotiation, RefusesOldKernels) {
  fuse_init_in offer = offer_of_everything();
  offer.minor = 30;
  EXPECT_TRUE(negotiate(offer, {}).fails_with(Errc::unsupported));
  offer = offer_of_everything();
  offer.major = 8;
  EXPECT_TRUE(negotiate(offer, {}).fails_with(Errc::unsupported));
}

TEST(Negotiation, ShortOffersReadAsZeros) {
  const fuse_init_in offer = offer_of_everything();
  const auto bytes = std::as_bytes(std::span(&offer, 1));
  EXPECT_EQ(decode_init(bytes.first(16))->flags2, 0U);
  EXPECT_EQ(decode_init(bytes)->flags2, ~0U);
  EXPECT_FALSE(decode_init(bytes.first(15)).ok());
}

std::span<const std::byte> message_of(const std::string& text) { return std::as_bytes(std::span(text)); }

TEST(MessageReader, NeverReadsBeyondTheEnd) {
  const std::string three("abc");
  MessageReader reader(message_of(three));
  EXPECT_TRUE(reader.take<std::uint32_t>().fails_with(Errc::invalid));
  EXPECT_TRUE(reader.take_string().fails_with(Errc::invalid)) << "no NUL";
  EXPECT_TRUE(reader.take_bytes(4).fails_with(Errc::invalid));
  EXPECT_TRUE(reader.take_bytes(3).ok());
  EXPECT_TRUE(reader.take_bytes(0).ok());
  EXPECT_FALSE(MessageReader().take_name().ok());
}

TEST(MessageReader, NamesAreWhatADirectoryCanHold) {
  const std::string longest(255, 'n'), too_long(256, 'n');
  EXPECT_EQ(*MessageReader(message_of(longest + '\0')).take_name(), longest);
  EXPECT_TRUE(MessageReader(message_of(too_long + '\0')).take_name().fails_with(Errc::name_too_long));
  EXPECT_TRUE(MessageReader(message_of(std::string(1, '\0'))).take_name().fails_with(Errc::invalid));
  EXPECT_TRUE(MessageReader(message_of(std::string("a/b\0", 4))).take_name().fails_with(Errc::invalid));
}

// As a ring has it: what is asked stands apart from names and data.
TEST(MessageReader, GoesOnInTheSecondPiece) {
  const std::uint64_t number = 42;
  const std::string second("name\0data", 9);
  MessageReader reader(std::as_bytes(std::span(&number, 1)), message_of(second));
  EXPECT_EQ(*reader.take<std::uint64_t>(), 42U);
  EXPECT_EQ(*reader.take_name(), "name");
  EXPECT_EQ(reader.take_bytes(4)->size(), 4U);
  EXPECT_TRUE(reader.rest().empty());
  MessageReader only_second({}, message_of(second));
  EXPECT_EQ(*only_second.take_name(), "name");
}

TEST(MessageReader, TakesStringsOneAfterTheOther) {
  const std::string two("from\0to\0", 8);
  MessageReader reader(message_of(two));
  EXPECT_EQ(*reader.take_name(), "from");
  EXPECT_EQ(*reader.take_name(), "to");
  EXPECT_TRUE(reader.rest().empty());
}

}  // namespace
}  // namespace varve::fuse
