// What every backend checks and does with a request in the same way.
#pragma once

#include <sys/uio.h>

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <string>

#include "io/block_device.h"

namespace varve::io {

// 0, or the errno with which a request that breaks the contract completes: EINVAL for bad alignment, EROFS for changes
// to a read-only device, EOPNOTSUPP for a discard that the device cannot do.
int check_request(const IoRequest& request, const Geometry& geometry, bool read_only);

// Calls `done` with the result set.
inline void complete(IoRequest& request, int error) {
  request.error = error;
  if (request.done) request.done(request);
}

const char* name_of(IoKind kind);

// What became of a completed request, in words that name the device and the range.
Status outcome_of(const BlockDevice& device, const IoRequest& request);

// Follows a read or write that the system may carry out in parts.
class Transfer {
 public:
  enum class Next : std::uint8_t { finished, again, failed };

  void start(IoRequest& request) {
    request_ = &request;
    done_ = 0;
    retries_ = 0;
    rest_.clear();
  }
  IoRequest& request() const { return *request_; }

  // What is left to do.
  std::uint64_t offset() const { return request_->offset + done_; }
  const iovec* iov() const { return rest_.empty() ? request_->iov.data() : rest_.data(); }
  unsigned iov_count() const { return static_cast<unsigned>(rest_.empty() ? request_->iov.size() : rest_.size()); }

  // Takes the result of a system call, a count of bytes or -errno, and says how to go on; error() is set when failed.
  Next advance(std::int64_t result);
  int error() const { return error_; }

 private:
  Next retry(int error);
  void skip_to_done();

  IoRequest* request_ = nullptr;
  std::uint64_t done_ = 0;
  unsigned retries_ = 0;
  int error_ = 0;
  boost::container::small_vector<iovec, 2> rest_;  // when done_ > 0
};

}  // namespace varve::io
