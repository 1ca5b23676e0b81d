// What every backend checks and does with a request in the same way.
#pragma once

#include <cstdint>

#include "io/block_device.h"

namespace varve::io {

// 0, or the errno with which a request that breaks the contract completes: EINVAL for bad alignment, EROFS for changes
// to a read-only device, EOPNOTSUPP for a discard that the device cannot do.
int check_request(const IoRequest& request, const Geometry& geometry, bool read_only);

const char* name_of(IoKind kind);

// The filesystem that an image lies on, or what is behind a thin volume, has no room left: a write that has failed so has not been done.
bool is_lack_of_room(int error);
// "make room on the host, where the image lies", or where it is to be made else.
const char* way_to_room(const BlockDevice& device);
// "WHAT failed: ..." of a mount, with what is to be done. Errc::no_space for lack of room, else Errc::io.
Error failure(const BlockDevice& device, int error, const std::string& what);

// What became of a completed request, in words that name the device and the range.
Status outcome_of(const BlockDevice& device, const IoRequest& request);

// A view of a read or write that the system may carry out in parts; how far that has come stands in the request.
class Transfer {
 public:
  enum class Next : std::uint8_t { finished, again, failed };

  explicit Transfer(IoRequest& request) : request_(request), progress_(request.progress_) {}
  void start();

  // What is left to do.
  std::uint64_t offset() const { return request_.offset + progress_.done; }
  const iovec* iov() const { return progress_.rest.empty() ? request_.iov.data() : progress_.rest.data(); }
  unsigned iov_count() const {
    return static_cast<unsigned>(progress_.rest.empty() ? request_.iov.size() : progress_.rest.size());
  }

  // Takes the result of a system call, a count of bytes or -errno, and says how to go on; error() is set when failed.
  Next advance(std::int64_t result);
  int error() const { return error_; }

 private:
  Next retry(int error);
  void skip_to_done();

  IoRequest& request_;
  IoRequest::Progress& progress_;
  int error_ = 0;
};

}  // namespace varve::io
