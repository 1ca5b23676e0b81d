#include "io/transfer.h"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/invariant.h"

namespace varve::io {

namespace {

constexpr unsigned kMaxRetries = 100;  // of results without progress; no device needs more than a few

bool aligned(std::uint64_t value) { return value % kBlockSize == 0; }

bool inside(const IoRequest& request, const Geometry& geometry) {
  return request.offset <= geometry.size_bytes && request.length <= geometry.size_bytes - request.offset;
}

int check_buffers(const IoRequest& request) {
  if (request.iov.empty() || request.iov.size() > kMaxIov) return EINVAL;
  std::uint64_t total = 0;
  for (const iovec& part : request.iov) {
    if (part.iov_len == 0 || !aligned(part.iov_len)) return EINVAL;
    if (!aligned(reinterpret_cast<std::uintptr_t>(part.iov_base))) return EINVAL;
    total += part.iov_len;
  }
  return total == request.length ? 0 : EINVAL;
}

// A medium that fails says ENODATA and more such, which would be taken for an answer about a file.
Errc code_of(int error) {
  if (is_lack_of_room(error)) return Errc::no_space;
  switch (const Errc code = errc_from_errno(error)) {
    case Errc::in_use:
    case Errc::invalid:
    case Errc::no_memory:
    case Errc::read_only:
    case Errc::unsupported:
      return code;
    default:
      return Errc::io;
  }
}

std::string why_text(const BlockDevice& device, int error) {
  return is_lack_of_room(error) ? fmt::format("{}: {}", std::strerror(error), way_to_room(device)) : std::strerror(error);
}

}  // namespace

int check_request(const IoRequest& request, const Geometry& geometry, bool read_only) {
  if (request.kind == IoKind::flush) return 0;
  if (read_only && request.kind != IoKind::read) return EROFS;
  if (!aligned(request.offset) || !aligned(request.length) || request.length == 0) return EINVAL;
  if (!inside(request, geometry)) return EINVAL;
  if (request.kind == IoKind::discard) return geometry.supports_discard ? 0 : EOPNOTSUPP;
  return check_buffers(request);
}

const char* name_of(IoKind kind) {
  switch (kind) {
    case IoKind::read:
      return "read";
    case IoKind::write:
      return "write";
    case IoKind::flush:
      return "flush";
    case IoKind::discard:
      return "discard";
  }
  return "?";
}

bool is_lack_of_room(int error) { return error == ENOSPC || error == EDQUOT; }

const char* way_to_room(const BlockDevice& device) {
  return device.geometry().is_block_device ? "make room in the storage behind the device" : "make room on the host, where the image lies";
}

Error failure(const BlockDevice& device, int error, const std::string& what) {
  const std::string text = fmt::format("{} failed: {}", what, why_text(device, error));
  return is_lack_of_room(error) ? Error(Errc::no_space, text + ", unmount, mount again") : Error(Errc::io, text);
}

Status outcome_of(const BlockDevice& device, const IoRequest& request) {
  if (request.error == 0) return {};
  const bool is_flush = request.kind == IoKind::flush;
  const std::string range = is_flush ? "" : fmt::format(" of {} bytes at byte {}", request.length, request.offset);
  return Error(code_of(request.error),
               fmt::format("{}: {}{} failed: {}", device.name(), name_of(request.kind), range, why_text(device, request.error)));
}

void Transfer::start() {
  progress_.done = 0;
  progress_.retries = 0;
  progress_.rest.clear();
}

Transfer::Next Transfer::advance(std::int64_t result) {
  const bool moves_data = request_.kind == IoKind::read || request_.kind == IoKind::write;
  if (result == -EINTR || result == -EAGAIN) return retry(static_cast<int>(-result));
  if (result < 0) {
    error_ = static_cast<int>(-result);
    return Next::failed;
  }
  if (!moves_data) return Next::finished;
  if (static_cast<std::uint64_t>(result) >= request_.length - progress_.done) return Next::finished;
  if (result == 0) {  // end of file or device where the geometry promised bytes
    error_ = EIO;
    return Next::failed;
  }
  // Direct I/O can go on only at an aligned place: a part of a block is transferred again.
  const std::uint64_t blocks = static_cast<std::uint64_t>(result) / kBlockSize;
  if (blocks == 0) return retry(EIO);
  progress_.retries = 0;
  progress_.done += blocks * kBlockSize;
  INVARIANT(progress_.done < request_.length);
  skip_to_done();
  return Next::again;
}

Transfer::Next Transfer::retry(int error) {
  if (++progress_.retries <= kMaxRetries) return Next::again;
  error_ = error;
  return Next::failed;
}

void Transfer::skip_to_done() {
  progress_.rest.clear();
  std::uint64_t skip = progress_.done;
  for (const iovec& part : request_.iov) {
    if (skip >= part.iov_len) {
      skip -= part.iov_len;
      continue;
    }
    progress_.rest.push_back(iovec{static_cast<std::byte*>(part.iov_base) + skip, part.iov_len - skip});
    skip = 0;
  }
  INVARIANT(!progress_.rest.empty());
}

}  // namespace varve::io
