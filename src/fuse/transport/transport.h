// How messages come from the kernel and answers go back.
//
// A transport serves one mount. Each serving thread opens a port; messages come to the sinks of the ports in any
// distribution. What is in a message, and how it is answered, is the port's matter (message.h).
#pragma once

#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/types.h"
#include "fuse/transport/arrivals.h"
#include "fuse/transport/buffer_pool.h"
#include "fuse/transport/message.h"
#include "io/reactor.h"

namespace varve::fuse {

class MessageSink {
 public:
  virtual ~MessageSink() = default;

  // Before a message is taken from the kernel: gets what receiving it needs.
  virtual void prepare() = 0;
  // A message that has arrived, and is the sink's until Message::release().
  virtual void receive(Message& message) = 0;
  // The last call: unmounted (`error` 0), aborted from outside (ECONNABORTED: the mount may still be there, dead), or
  // broken (another errno).
  virtual void disconnected(int error) = 0;
};

// A serving thread's end of a transport; belongs to that thread. All its messages are released before it ends.
class Port {
 public:
  virtual ~Port() = default;
  virtual void pause() = 0;  // no messages from the next one on, until
  virtual void resume() = 0;
  // To be asked before each sleep: how long it may be at most, in ns; negative: for ever.
  virtual std::int64_t rest() { return -1; }
};

class Transport {
 public:
  virtual ~Transport() = default;

  // Delivers messages to `sink` from reactor.poll()/wait(). All four must outlive the port.
  virtual std::unique_ptr<Port> open(io::Reactor& reactor, const std::shared_ptr<BufferPool>& pool, MessageSink& sink) = 0;

  // What answers no message at hand: notifications, and the end of a mount. Thread-safe. `parts` begins with a fuse_out_header whose
  // `len` covers all of them. Returns 0 or an errno.
  virtual int send(std::span<const iovec> parts) = 0;

  // Returns when the WRITEs that the kernel has made before the call are answered (arrivals.h). `most`: background requests that it may
  // have on their way. False: that was not to be seen before the limits. For one thread at a time, which serves nobody.
  virtual bool settle(std::size_t most, const Arrivals::Limits& limits) = 0;
  virtual Arrivals::Writes writes() const = 0;  // so far
};

// Tells the kernel to forget the attributes of an inode and, if `offset` is not negative, what it caches of its content
// from there on (bytes). With such an `offset` it returns when what was dirty there has been written back. Returns 0 or
// an errno.
int notify_inval_inode(Transport& transport, Ino ino, std::int64_t offset);

// Makes the kernel send what it caches of `bytes` of an inode from `offset` on, up to the end of the file as it has it, as a NOTIFY_REPLY
// with this `unique`. Returns 0 or an errno; then none comes.
int notify_retrieve(Transport& transport, Ino ino, std::uint64_t offset, std::uint32_t bytes, std::uint64_t unique);

// Tells the kernel to forget those of these inodes that nobody has open, with all that it caches of them; waits for writing
// that is under way there. Returns 0 or an errno; EINVAL where the kernel is older than 6.18 and does not know it.
int notify_prune(Transport& transport, std::span<const Ino> inodes);

}  // namespace varve::fuse
