// Owner of one io_uring.
#pragma once

#include <liburing.h>

#include <memory>

namespace varve::io {

class Ring {
 public:
  Ring() = default;
  Ring(Ring&&) noexcept = default;
  Ring& operator=(Ring&&) = delete;
  ~Ring();

  // Sets up a ring with the best flags that this kernel takes; returns 0 or an errno. The ring starts disabled where it
  // may have one user only: that is the thread that calls enable().
  int open(unsigned entries);
  int enable();

  io_uring* get() { return ring_.get(); }

 private:
  std::unique_ptr<io_uring> ring_;  // on the heap: io_uring must not move
};

}  // namespace varve::io
