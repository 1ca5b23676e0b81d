// One request to a device, with everything that it needs on its way: nothing is allocated for it.
#pragma once

#include <sys/uio.h>

#include <boost/container/small_vector.hpp>
#include <boost/intrusive/list.hpp>
#include <boost/intrusive/slist.hpp>
#include <cstdint>
#include <functional>

#include "base/types.h"

struct io_uring_sqe;

namespace varve::io {

class BlockDevice;
class Reactor;

enum class IoKind : std::uint8_t { read, write, flush, discard };

inline constexpr std::size_t kMaxIov = 1024;

// Something that the ring of a reactor carries out (Reactor::submit). It belongs to its user and stays where it is until
// complete() has returned true.
struct RingEntry : boost::intrusive::slist_base_hook<> {
  struct Calls {
    void (*prepare)(RingEntry& entry, io_uring_sqe& to);  // fills everything but user_data
    bool (*complete)(RingEntry& entry, int result);       // false: prepare() and carry it out again
  };
  const Calls* calls = nullptr;
};

// Owned by the submitter; it and its buffers stay untouched from submit() until `done` is called.
struct IoRequest : RingEntry, boost::intrusive::list_base_hook<> {
  IoKind kind = IoKind::read;
  bool durable = false;                          // write: completes when it is on the medium
  bool by_guard = false;                         // of the lease: does not wait for what waits for it; a write is never repeated (ENOTCONN)
  std::uint64_t offset = 0;                      // bytes; read, write, discard
  std::uint64_t length = 0;                      // bytes; for discard; sum of iov for read and write
  boost::container::small_vector<iovec, 2> iov;  // read, write; at most kMaxIov entries
  int error = 0;                                 // out: 0 or a positive errno
  bool was_held = false;                         // out: it has waited for room (holding_device.h), so how long it took says nothing
  std::function<void(IoRequest&)> done;          // called once, inside poll() or wait() of the reactor
  void (*abandoned)(IoRequest&) = nullptr;       // called instead, if the reactor ends before

  void add(void* data, std::size_t bytes) {
    iov.push_back(iovec{data, bytes});
    length += bytes;
  }

  // Whether the device may hold something else afterwards.
  bool changes() const { return kind == IoKind::write || kind == IoKind::discard; }

  // For the reactor and the device that carries it out.
  BlockDevice* carrier = nullptr;
  bool is_counted = false;  // by a HoldingDevice

  // The one that it was submitted to last; null: it never was.
  Reactor* reactor() const { return reactor_; }

  // --- for devices that stand on others ---
  // after(context, request, note) is called when the device below has completed it, before what was set earlier and
  // `done`. It may change `error`.
  using After = void (*)(void* context, IoRequest& request, std::uint64_t note);
  void intercept(After after, void* context, std::uint64_t note = 0) { interceptors_.push_back({after, context, note}); }
  // Inside such a call: it has not been completed. The caller submits it again, now or later (Reactor::begin_elsewhere).
  void take_back() { taken_back_ = true; }

  // --- for Reactor and Transfer, which carry it out: nobody else touches what follows ---
  struct Interceptor {
    After after;
    void* context;
    std::uint64_t note;
  };
  struct Progress {  // of what the system carries out in parts
    std::uint64_t done = 0;
    unsigned retries = 0;
    boost::container::small_vector<iovec, 2> rest;  // when done > 0
  };

  void complete(int result);

  Reactor* reactor_ = nullptr;
  boost::container::small_vector<Interceptor, 3> interceptors_;
  bool taken_back_ = false;
  Progress progress_;
};

}  // namespace varve::io
