// What all serving threads of one mount share.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "fs/filesystem.h"
#include "fuse/operations/block_counts.h"
#include "fuse/operations/cache_flusher.h"
#include "fuse/operations/cache_probes.h"
#include "fuse/operations/status_pages.h"
#include "fuse/operations/error_log.h"
#include "fuse/operations/hidden_folder.h"
#include "fuse/operations/latencies.h"
#include "fuse/operations/listing_places.h"
#include "fuse/operations/lost_writes.h"
#include "fuse/operations/read_ahead.h"
#include "fuse/operations/snapshot_mounts.h"
#include "fuse/operations/space_watch.h"
#include "fuse/protocol/negotiation.h"
#include "fuse/transport/transport.h"

namespace varve::fuse {

// Requests served by one thread, by opcode, and how long they took.
struct alignas(64) RequestCounters {
  std::array<std::atomic<std::uint64_t>, kOpcodes> served{};
  Latencies latencies;
};

enum class Change { name, other };

// Which changes are durable before they are answered, though nobody calls fsync. The kernel leaves that to filesystems, except
// for what is written to files with sync: there it calls fsync itself.
struct DurableChanges {
  bool names = false;       // dirsync
  bool everything = false;  // sync

  bool include(Change change) const { return everything || (names && change == Change::name); }
};

// What one listing has to know of others.
struct Listings {
  ListingPlaces places;
  HiddenFolder folder;
};

// Facts about writes in the kernel's cache: some that the kernel cannot know, and some that it alone knows.
struct CachedWrites {
  CachedWrites(Transport& transport, std::function<void(Ino)> drop) : blocks(std::move(drop)), probes(transport) {}
  LostWrites lost;
  BlockCounts blocks;
  CacheProbes probes;
};

struct SessionSettings {
  Wishes wishes;
  Clock* clock = &Clock::system();
  std::string mount_point;
  std::string source;  // device or image
  std::string log{};   // where the daemon's messages are
  std::string options{};  // of the mount, as they were given
  DurableChanges durable{};
  std::string snapshots_dir{};  // the folder of snapshots, in the root; empty: there is none
  bool shows_snapshots_dir = false;  // in listings of the root, too
  std::size_t read_ahead_bytes = ReadAhead::kMostBytes;
  std::function<nlohmann::ordered_json()> device_facts{};  // parts of the status: lease, connection; any thread
};

// Thread-safe.
class Session {
 public:
  // `ended(error)` is called once, by any thread, when the kernel will send nothing more.
  Session(fs::Filesystem& fs, Transport& transport, SessionSettings settings, std::function<void(int error)> ended);

  fs::Filesystem& fs() { return fs_; }
  Transport& transport() { return transport_; }
  const SessionSettings& settings() const { return settings_; }
  Clock& clock() { return *settings_.clock; }
  ErrorLog& errors() { return errors_; }
  StatusPages& status_pages() { return status_pages_; }
  CacheFlusher& flusher() { return flusher_; }
  Listings& listings() { return listings_; }
  ReadAhead& read_ahead() { return read_ahead_; }
  LostWrites& lost_writes() { return cached_writes_.lost; }
  SpaceWatch& space_watch() { return space_watch_; }
  BlockCounts& block_counts() { return cached_writes_.blocks; }
  CacheProbes& cache_probes() { return cached_writes_.probes; }
  SnapshotMounts& snapshot_mounts() { return snapshot_mounts_; }
  RequestCounters& add_counters();

  // INIT: agrees with the kernel, once. What it returns stays valid. When the kernel has the answer, or the error:
  // initialised().
  Result<const Agreement*> initialise(const fuse_init_in& offer);
  void initialised();
  const Agreement* agreement() const { return agreed_.load(std::memory_order_acquire); }
  // With writeback the kernel dates each change of a file's content before it asks for it. It tells that time later, unless it is the one
  // that the file has already: a time of our own, a tick later, would then differ from what programs see.
  bool kernel_dates() const { return agreement() && agreement()->writeback; }
  // Blocks until INIT has been answered, or the end; Errc::shut_down then, or what INIT failed with.
  Status wait_initialised();

  // Makes the kernel ask for the attributes of an inode again. Waits for nothing, so any thread may call it.
  void drop_cached_attributes(Ino ino);

  // The kernel had accepted bytes [from, end) of a file, and the filesystem does not take them.
  void lose(Ino ino, std::uint64_t from, std::uint64_t end, Errc why);

  // Makes the kernel write back what it caches of all files, but not their times, wherever it is mounted. For a thread that
  // serves nobody, while others serve.
  void write_back();

  // DESTROY wants an answer after everything has been written: the code that ends the mount sends it by answer_destroy().
  void destroy_requested(std::uint64_t unique);
  void answer_destroy(int error);
  void end(int error);

  // Nothing is written any more, as somebody wanted it so: what would write is EIO from now on, as on other filesystems.
  void shut_down() { is_shut_down_ = true; }
  bool is_shut_down() const { return is_shut_down_.load(std::memory_order_relaxed); }

  void add_facts(nlohmann::ordered_json& status);  // of the device, the mount and its requests
  // May this caller ask for things that cost others something (trim, checkpoint)? The user of the daemon may, and root; of root's
  // daemon an administrator, as elsewhere.
  static bool may_control(const fuse_in_header& caller);

 private:
  nlohmann::ordered_json latency_json(std::uint32_t opcode) REQUIRES(mutex_);

  fs::Filesystem& fs_;
  Transport& transport_;
  const SessionSettings settings_;
  const std::function<void(int)> ended_;
  ErrorLog errors_;
  StatusPages status_pages_;
  CacheFlusher flusher_;
  Listings listings_;
  ReadAhead read_ahead_;
  CachedWrites cached_writes_;
  SpaceWatch space_watch_;
  SnapshotMounts snapshot_mounts_;
  std::atomic<bool> is_shut_down_{false};

  Mutex mutex_;
  Condition changed_;
  std::vector<std::unique_ptr<RequestCounters>> counters_ GUARDED_BY(mutex_);
  std::optional<Result<Agreement>> agreement_ GUARDED_BY(mutex_);
  std::optional<std::uint64_t> destroy_unique_ GUARDED_BY(mutex_);
  struct Connection {
    bool initialised = false, ended = false;
  };
  Connection kernel_ GUARDED_BY(mutex_);
  std::atomic<const Agreement*> agreed_{nullptr};
};

}  // namespace varve::fuse
