// What both sides of a mount agree on in INIT.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/page_size.h"
#include "base/result.h"
#include "fuse/protocol/protocol.h"

namespace varve::fuse {

struct Wishes {
  bool writeback = true;                    // the kernel collects small writes
  std::uint16_t max_background = 64;        // readahead, writeback and asynchronous direct I/O in flight
  std::uint16_t congestion_threshold = 48;  // beyond it the kernel drops readahead
  std::uint32_t max_readahead = 16u << 20;  // bytes; the kernel's own limit is usually lower
  bool ask_opens = false;                   // a round trip for each, but immutable and append-only files can refuse it
  bool xattrs = true;                       // else the kernel asks for none, nor for ACLs and capabilities
  bool allow_idmap = false;                 // mounts of it may be id-mapped; callers are then told only with what makes an inode
};

struct Agreement {
  fuse_init_out reply{};
  std::uint64_t flags = 0;  // those of the reply, both words
  bool writeback = false;
  bool setxattr_extended = false;  // SETXATTR has its long form
  bool flushes_while_asked = false;  // close(2) writes back only as long as FLUSH is answered (before Linux 5.8)
  bool drops_before_written = false;  // its cache drops pages whose WRITEs are still on their way (before Linux 6.16)
  bool leaves_setgid = false;      // of what somebody outside the group makes in a setgid directory (before Linux 6.0)

  std::vector<std::string> feature_names() const;
};

inline constexpr std::uint32_t kMaxWrite = 1u << 20;  // bytes of payload in one message

// Errc::unsupported for a protocol that
// is too old (before 7.31; Varve is tested from Linux 5.10 on, which has 7.32). `page_bytes`: the kernel counts in its pages what a message
// may have.
Result<Agreement> negotiate(const fuse_init_in& offer, const Wishes& wishes, std::size_t page_bytes = kernel_page_bytes());

// INIT's body may be shorter than fuse_init_in: what is missing reads as zero.
Result<fuse_init_in> decode_init(std::span<const std::byte> body);

// What a READ of a file asks for. Errc::io where that is more than was agreed: a shorter answer would be taken for the end of the file,
// and what is behind it for zeros.
Result<std::uint32_t> agreed_bytes(const fuse_read_in& in);

}  // namespace varve::fuse
