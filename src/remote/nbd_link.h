// What an NBD device does with its requests: the connections, what waits, what was sent, and what happens when a connection is lost.
//
// The rule. A lost connection says nothing about what the server has done, and the server may have been started anew: everything that no
// flush has made safe may be gone. Therefore every write is kept until then (write_journal.h). When one connection is lost all are
// given up. After a new beginning all kept writes, acknowledged or not, are sent again, in their order where they overlap. Only then
// follows anything else: flushes that were not answered, reads, new writes. So what a flush promises holds however often
// the server dies, and a flush may be repeated, which BlockDevice's contract forbids for one that has *failed*. An answered
// failure of a flush, or of a repeated write that had been acknowledged, is final.
//
// Before anything is written on a new connection, the guard of the device (io/write_guard.h) must have looked at it again: it may
// be another's by now, or empty. The guard's own writes are not repeated, since nobody knows what they would meet. They end with
// ENOTCONN then, which is no error of the device.
//
// A server that still works on what it got through a connection that has broken could write that later than what was sent again. A
// killed server does not: its connections end when its last system call has. For the others the link waits half a second before
// it goes on.
//
// Patience. When no connection could be had for so long, or a request was not answered for so long, the device has failed for good:
// all changes end with EIO, and failure() says why. It is the same when the guard could not look for so long while changes wait
// for it. Reads still work if the server comes back.
#pragma once

#include <poll.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "io/block_device.h"
#include "remote/nbd_connection.h"
#include "remote/write_journal.h"

namespace varve::remote {

struct NbdSettings {
  std::string uri;
  std::uint64_t patience_ns = 30'000'000'000;
  std::size_t journal_bytes = std::size_t{32} << 20;
  unsigned connections = 4;  // where the server allows more than one
};

// Belongs to one thread, but for ask(), failure() and connection(). Requests have begun elsewhere; it finishes them.
class NbdLink {
 public:
  NbdLink(NbdSettings settings, const NbdExport& facts, std::unique_ptr<NbdConnection> first);
  ~NbdLink();

  void add(io::IoRequest& request);
  // Takes what has come, sends what can be sent, connects, gives up. To be called after each wait.
  void turn();
  // What to wait for, and for how long at most (milliseconds).
  void list(std::vector<pollfd>& waits) const;
  void notify(const std::vector<pollfd>& waits, std::size_t first);
  int wait_ms() const;
  bool is_idle() const { return jobs_.empty(); }

  // Any thread.
  void ask(io::WriteGuard* guard);
  std::string failure() const;
  io::Connection connection() const;

 private:
  enum class Stage : std::uint8_t { down, connecting, settling, repeating, serving };

  struct Job {  // a request, until all of its parts have been answered
    io::IoRequest* request = nullptr;
    std::size_t parts = 0;
    int error = 0;
    bool flush_after = false;  // durable, where the server has no such writes
    std::list<Job>::iterator self;
  };
  struct Part {
    Job* job = nullptr;  // null: a flush of the link's own
    NbdKind kind = NbdKind::read;
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    std::byte* data = nullptr;  // null for a write that is to be copied
    std::uint64_t at = 0;       // of the request's bytes
  };
  struct Sent {
    NbdLink* link = nullptr;
    Part part;
    WriteJournal::Entry* entry = nullptr;
    std::uint64_t mark = 0;  // of a flush: what it covers
    std::uint64_t time_ns = 0;
    std::size_t lane = 0;
    int error = 0;
    std::list<Sent>::iterator self;
  };
  struct Lane {
    std::unique_ptr<NbdConnection> connection;
    std::uint64_t bytes = 0;  // on their way
  };
  struct Queues {
    std::deque<Part> by_guard, reads, changes;
  };
  struct Outage {
    std::uint64_t since_ns = 0;      // 0: all is well
    std::uint64_t next_ns = 0;       // the next attempt
    std::uint64_t connected_ns = 0;  // when it was over the last time
    std::uint64_t connected_boot_ns = 0;  // the same by boot_time_ns(), as the lease counts: in its sleep another may have taken the device
    std::string why;
  };

  // While the machine sleeps no patience is lost: the network has been away, and has to come back first.
  static std::uint64_t now_ns();
  void split(Job& job);
  void split_read(Job& job);
  bool is_refused(const io::IoRequest& request) const;

  void land();
  void take_answer(Sent& sent);
  void take_write(Sent& sent);
  void finish_part(Job* job, int error);
  static void finish(const Job& job, int error);

  void look_after_connections(std::uint64_t now);
  void lose(const std::string& why, std::uint64_t now);
  void take_back(Sent& sent);
  void fail(const std::string& why);
  void set_away(std::uint64_t since_ns);
  void connect(std::uint64_t now);
  void advance(std::uint64_t now);
  std::string why_different() const;

  void send_all(std::uint64_t now);
  void send_changes(std::uint64_t now);
  bool may_write();
  void repeat_writes(std::uint64_t now);
  bool can_repeat(const WriteJournal::Entry& entry) const;
  bool send_change(const Part& part, std::uint64_t now);
  void send(const Part& part, WriteJournal::Entry* entry, std::uint64_t now);
  bool has_window() const;
  std::uint64_t part_limit() const;

  const NbdSettings settings_;
  const NbdExport facts_;
  WriteJournal journal_;
  std::vector<Lane> lanes_;
  std::list<Job> jobs_;
  Queues queues_;
  std::list<Sent> wire_;  // in the order of sending
  std::vector<Sent*> landed_;
  Stage stage_ = Stage::connecting;
  Outage outage_;
  std::size_t repeated_ = 0;      // entries of the journal that have been sent again
  bool own_flush_ = false;        // under way
  std::uint64_t held_since_ns_ = 0;  // what is to be sent, by the guard; 0: it is not
  mutable Mutex mutex_{LockRank::nbd_guard};
  io::WriteGuard* guard_ GUARDED_BY(mutex_) = nullptr;
  std::string failure_ GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> away_since_ns_{0};  // copies of the outage, for connection()
  std::atomic<std::uint64_t> renewals_{0};
};

}  // namespace varve::remote
