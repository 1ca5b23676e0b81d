#include "fuse/protocol/negotiation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace varve::fuse {

namespace {

struct Feature {
  std::uint64_t bit;
  const char* name;
};

// Always wanted. Not here, and why: ATOMIC_O_TRUNC (with OPEN mostly unanswered, O_TRUNC would get lost), AUTO_INVAL_DATA (a
// GETATTR before each cached read), HANDLE_KILLPRIV (superseded by V2). Neither are locks (local ones are the kernel's) and
// splice (the bytes pass through checksums anyway).
constexpr Feature kFeatures[] = {
    {FUSE_ASYNC_READ, "async_read"},
    {FUSE_EXPORT_SUPPORT, "export_support"},
    {FUSE_BIG_WRITES, "big_writes"},
    {FUSE_DONT_MASK, "dont_mask"},
    {FUSE_HAS_IOCTL_DIR, "ioctl_dir"},
    {FUSE_DO_READDIRPLUS, "readdirplus"},
    {FUSE_READDIRPLUS_AUTO, "readdirplus_auto"},
    {FUSE_ASYNC_DIO, "async_dio"},
    {FUSE_PARALLEL_DIROPS, "parallel_dirops"},
    {FUSE_ABORT_ERROR, "abort_error"},
    {FUSE_MAX_PAGES, "max_pages"},
    {FUSE_CACHE_SYMLINKS, "cache_symlinks"},
    {FUSE_NO_OPENDIR_SUPPORT, "no_opendir"},
    {FUSE_EXPLICIT_INVAL_DATA, "explicit_inval_data"},
    {FUSE_HANDLE_KILLPRIV_V2, "handle_killpriv_v2"},
    {FUSE_SETXATTR_EXT, "setxattr_ext"},
    {FUSE_INIT_EXT, "init_ext"},
};
constexpr Feature kWriteback{FUSE_WRITEBACK_CACHE, "writeback_cache"};
constexpr Feature kNoOpen{FUSE_NO_OPEN_SUPPORT, "no_open"};
constexpr Feature kIdmap{kAllowIdmap, "allow_idmap"};
constexpr Feature kAcl{FUSE_POSIX_ACL, "posix_acl"};

constexpr std::uint32_t kOldestMinor = 31;
// The first ones that are surely of kernels which do so: Linux 5.10, 6.1 and 6.17.
constexpr std::uint32_t kFlushesUnasked = 32, kTakesSetgid = 37, kDropsWritten = 45;

std::uint64_t wanted_flags(const Wishes& wishes) {
  std::uint64_t flags = (wishes.writeback ? kWriteback.bit : 0) | (wishes.ask_opens ? 0 : kNoOpen.bit);
  if (wishes.allow_idmap) flags |= kIdmap.bit;
  if (wishes.xattrs) flags |= kAcl.bit;
  for (const Feature& feature : kFeatures) flags |= feature.bit;
  return flags;
}

}  // namespace

std::vector<std::string> Agreement::feature_names() const {
  std::vector<std::string> names;
  for (const Feature& feature : kFeatures)
    if (flags & feature.bit) names.emplace_back(feature.name);
  for (const Feature& feature : {kWriteback, kNoOpen, kIdmap, kAcl})
    if (flags & feature.bit) names.emplace_back(feature.name);
  return names;
}

Result<Agreement> negotiate(const fuse_init_in& offer, const Wishes& wishes, std::size_t page_bytes) {
  if (offer.major != FUSE_KERNEL_VERSION || offer.minor < kOldestMinor)
    return Error(Errc::unsupported,
                 fmt::format("this kernel speaks FUSE {}.{}, Varve needs 7.{} or a later 7.x: take Linux 5.10 or later", offer.major,
                             offer.minor, kOldestMinor));
  std::uint64_t offered = offer.flags;
  if (offer.flags & FUSE_INIT_EXT) offered |= std::uint64_t{offer.flags2} << 32;

  Agreement agreement;
  agreement.flags = offered & wanted_flags(wishes);
  agreement.writeback = agreement.flags & FUSE_WRITEBACK_CACHE;
  agreement.setxattr_extended = agreement.flags & FUSE_SETXATTR_EXT;
  agreement.flushes_while_asked = offer.minor < kFlushesUnasked;
  agreement.drops_before_written = offer.minor < kDropsWritten;  // without a writeback cache what is mapped waits there
  agreement.leaves_setgid = offer.minor < kTakesSetgid;

  fuse_init_out& reply = agreement.reply;
  reply.major = FUSE_KERNEL_VERSION;
  reply.minor = std::min(offer.minor, kMinorVersion);
  reply.max_readahead = std::min(offer.max_readahead, wishes.max_readahead);
  reply.flags = static_cast<std::uint32_t>(agreement.flags);
  reply.flags2 = static_cast<std::uint32_t>(agreement.flags >> 32);
  reply.max_background = wishes.max_background;
  reply.congestion_threshold = wishes.congestion_threshold;
  reply.max_write = kMaxWrite;
  reply.max_pages = static_cast<std::uint16_t>(std::max<std::size_t>(kMaxWrite / page_bytes, 1));
  reply.time_gran = 1;
  return agreement;
}

Result<fuse_init_in> decode_init(std::span<const std::byte> body) {
  constexpr std::size_t kShortest = 16;  // major, minor, max_readahead, flags
  if (body.size() < kShortest) return Errc::invalid;
  fuse_init_in offer{};
  std::memcpy(&offer, body.data(), std::min(body.size(), sizeof offer));
  return offer;
}

Result<std::uint32_t> agreed_bytes(const fuse_read_in& in) {
  if (in.size <= kMaxWrite) return in.size;
  return Error(Errc::io, fmt::format("the kernel asks for {} bytes at once, and {} were agreed", in.size, kMaxWrite));
}

}  // namespace varve::fuse
