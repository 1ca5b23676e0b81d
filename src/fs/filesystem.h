// The whole filesystem as a library, without FUSE: used by the daemon, the tools, tests and benches.
//
// Thread-safety: every member may be called from any thread at any time, with one Operation per request. Errors are
// those that POSIX names for the matching call. Permission bits are the caller's business (the kernel checks them).
// Every function with an Operation may fail with Errc::would_block; see operation/operation.h.
//
// Durability: what has been acknowledged is in order; after a crash the state is the one after some prefix of the
// acknowledged operations, and that prefix contains everything before the last completed fsync or sync.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/gate.h"
#include "base/result.h"
#include "base/types.h"
#include "format/item.h"
#include "fs/options.h"
#include "fs/snapshot_list.h"
#include "fs/status.h"
#include "log/payload.h"
#include "operation/operation.h"

namespace varve::io {
class BlockDevice;
class Reactor;
}  // namespace varve::io

namespace varve::snapshots {
struct SnapshotChange;
}

namespace varve::jobs {
struct CleanRequest;
struct CleanState;
struct ResizeRequest;
struct ResizeState;
}  // namespace varve::jobs

namespace varve::fs {

class Engine;

// Callers name these with it.
using operation::block_on;
using operation::Caller;
using operation::Operation;

struct Attr {
  Ino ino;
  std::uint32_t generation = 0;
  std::uint32_t mode = 0;  // as st_mode
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint32_t nlink = 0;
  std::uint32_t rdev = 0;
  std::uint32_t flags = 0;   // FS_*_FL
  std::uint64_t size = 0;    // bytes
  std::uint64_t blocks = 0;  // of kBlockSize
  Timestamp atime, mtime, ctime, btime;
};

// What setattr changes; unset members stay. A ctime that is not given becomes now.
struct AttrChange {
  std::optional<std::uint32_t> mode;  // permission bits only
  std::optional<std::uint32_t> uid, gid;
  std::optional<std::uint64_t> size;
  std::optional<Timestamp> atime, mtime, ctime;
  std::optional<std::uint32_t> flags;
  bool chosen_time = false;      // atime is one that the caller named, not "now"
  bool is_cut = false;           // to its size: what is set aside behind goes, also where the filesystem has a shorter file than the kernel
  bool of_open_file = false;     // times: by the kernel, which writes back its own of what it has cached; programs cannot ask so
  bool kernel_dates = false;     // of a new size: none but what is given
  bool drop_privileges = false;  // clear suid, sgid (as the kernel's KILL_SUIDGID asks) and security.capability
};

// Does a program with this mode run with the group of its file?
constexpr bool runs_with_group(std::uint32_t mode) { return (mode & S_ISGID) && (mode & S_IXGRP); }

struct NewNode {
  std::uint32_t mode = 0;  // type and permissions; the caller's umask has been applied unless a default ACL is there
  std::uint32_t rdev = 0;
  std::uint32_t umask = 0;  // applied here when the parent has no default ACL
  std::string_view symlink;  // target, for S_IFLNK
  // If they are given: groups of somebody without CAP_FSETID. What this one makes for another group, and that group may execute, is not
  // setgid then. Else the kernel has seen to that.
  std::optional<std::vector<std::uint32_t>> groups{};
};

struct DirectoryEntry {
  std::string_view name;
  Ino ino;
  std::uint8_t type = 0;     // DT_*
  std::uint64_t cookie = 0;  // where readdir goes on after this entry
  const Attr* attr = nullptr;  // readdirplus only; null for "." and ".."
  bool is_last = false;        // it is known that none follows
  // Every name that comes, goes or is given to another inode takes a cookie, and no name that comes later has one of these. So a
  // directory has changed since if this is another number than it was.
  std::uint64_t last_cookie = 0;
};

enum RenameFlags : unsigned { kRenameNoReplace = 1, kRenameExchange = 2, kRenameWhiteout = 4 };
enum XattrFlags : unsigned {
  kXattrCreate = 1,
  kXattrReplace = 2,
  kXattrDropSetgid = 1u << 16,  // an ACL is set by somebody outside the file's group
};
enum class FallocateMode : std::uint8_t { allocate, allocate_keep_size, punch_hole, zero_range, zero_range_keep_size };
enum class SeekKind : std::uint8_t { data, hole };
struct WriteFlags {
  bool from_cache = false;       // kernel writeback: times are the kernel's, set by a later setattr
  bool kernel_dates = false;     // no writeback, but its times are the kernel's as well, and a later setattr tells those that are new
  bool append = false;           // to a file opened so: pieces of one write may come in any order
  bool drop_privileges = false;  // clear suid, sgid where the group may execute, and security.capability
  bool drop_sgid = false;        // with them: sgid in any case, for somebody outside the file's group
};

class Filesystem {
 public:
  // Reads the superblocks, recovers, checkpoints when it had to recover, starts the background threads.
  static Result<std::unique_ptr<Filesystem>> mount(io::BlockDevice& device, const Options& options);
  ~Filesystem();  // without unmount(): as a crash, nothing more is written

  // An unmount comes, and threads end that wait for operations: a host that is full has Options::host_patience_ms from now on to make room.
  void limit_wait_for_room();
  // Finishes background work, frees orphans, checkpoints, marks the image clean. No operation may be under way. Limits that wait as well.
  Status unmount();

  // --- names ---
  // Functions that return an Attr for a name count one kernel reference to it (forget) if Options::count_references.
  Result<Attr> lookup(Operation&, Ino parent, std::string_view name);  // "." and ".." too
  Result<Attr> make(Operation&, Ino parent, std::string_view name, const NewNode&);  // file, directory, device, symlink
  Result<Attr> make_unnamed(Operation&, Ino parent, const NewNode&);                 // O_TMPFILE
  Result<Attr> link(Operation&, Ino ino, Ino parent, std::string_view name);
  Status unlink(Operation&, Ino parent, std::string_view name);
  Status rmdir(Operation&, Ino parent, std::string_view name);
  Status rename(Operation&, Ino from_parent, std::string_view from, Ino to_parent, std::string_view to, unsigned flags);
  void forget(Ino ino, std::uint64_t count);  // never waits; the last one frees an unlinked inode

  // Gives entries after `cookie` (0 = from the start) to `take`, some at a time: at least one unless there are no more, at
  // most until `take` returns false. The caller goes on with the cookie of the last entry it took. Cookies stay valid for
  // ever.
  Status readdir(Operation&, Ino directory, std::uint64_t cookie, bool plus,
                 const std::function<bool(const DirectoryEntry&)>& take);
  void count_reference(Ino ino);  // for each readdirplus entry handed to the kernel
  std::vector<Ino> referenced() const;  // what the kernel has references to

  // --- inodes ---
  Result<Attr> getattr(Operation&, Ino ino);
  Result<Attr> setattr(Operation&, Ino ino, const AttrChange&);
  Result<std::string> readlink(Operation&, Ino ino);
  Result<std::vector<std::byte>> getxattr(Operation&, Ino ino, std::string_view name);
  Result<std::vector<std::string>> listxattr(Operation&, Ino ino);
  Status setxattr(Operation&, Ino ino, std::string_view name, std::span<const std::byte> value, unsigned flags);
  Status removexattr(Operation&, Ino ino, std::string_view name);

  // --- data ---
  struct ReadOptions {
    bool keep_atime = false;            // O_NOATIME
    std::uint64_t* version = nullptr;   // if bytes were read: what content_version() says as long as they are current
  };
  // Bytes read (short only at end of file). `out` is best aligned to kBlockSize with a whole number of blocks: then the
  // device writes straight into it. Its content is undefined until the call succeeds.
  Result<std::size_t> read(Operation&, Ino ino, std::uint64_t offset, std::span<std::byte> out, const ReadOptions& options);
  Result<std::size_t> read(Operation& operation, Ino ino, std::uint64_t offset, std::span<std::byte> out) {
    return read(operation, ino, offset, out, {});
  }
  // Changes to a number never used before with every change of the file's bytes or size, and at other times; 0: unknown.
  std::uint64_t content_version(Ino ino) const;
  // At most 1 MiB, one atomic operation. `data` must stay unchanged until the call returns something else than
  // would_block; if a `keeper` keeps them, they are not copied and must stay unchanged as long as it lives.
  Result<std::size_t> write(Operation&, Ino ino, std::uint64_t offset, std::span<const std::byte> data, WriteFlags,
                            const log::PayloadBufferPtr& keeper = {});
  Status fallocate(Operation&, Ino ino, FallocateMode mode, std::uint64_t offset, std::uint64_t length,
                   WriteFlags flags = {});
  Result<std::uint64_t> seek(Operation&, Ino ino, std::uint64_t offset, SeekKind kind);
  // Would a file that becomes longer, so that it ends at `size`, still have blocks behind that? False where it would not become longer.
  Result<bool> has_room_behind(Operation&, Ino ino, std::uint64_t size);

  // --- durability ---
  enum class Keeps : std::uint8_t { all, all_but_times };
  Status fsync(Operation&, Ino ino, Keeps keeps = Keeps::all);  // everything acknowledged so far is durable (prefix rule)
  Status sync(Operation&);
  // Seals what stands in callers' messages (PayloadBuffer), so that they come back. For a thread that lacks them, outside of operations.
  void give_back_messages(io::Reactor& reactor);
  Status checkpoint(Operation&);      // trees on disk are as of now or later, settled
  // Reads everything live from the device in the background (scrub/scrubber.h): what was acknowledged before, and is
  // still where it was when its turn comes. Also on a read-only filesystem, which then forgets how far it came.
  Status start_scrub(Operation&, const scrub::Request& request);
  void stop_scrub();
  scrub::State scrub_state() const;
  // Cleans as asked, in the background (jobs/clean_job.h). Without background threads it is done when this returns.
  Status start_clean(const jobs::CleanRequest& request);
  void stop_clean();
  jobs::CleanState clean_state();
  // Another size, as asked, in the background (jobs/resize_job.h). Without background threads it is done when this returns.
  Status start_resize(const jobs::ResizeRequest& request);
  void stop_resize();
  jobs::ResizeState resize_state();
  std::vector<cleaner::PastRound> history();  // of cleaning, the latest rounds
  // FITRIM, in bytes of the device; returns what was discarded. Errc::invalid as of ext4: for a start beyond its end, less
  // than a block, and a `minimum` that no run of free blocks can have (they are looked for by segments).
  Result<std::uint64_t> trim(Operation&, std::uint64_t start, std::uint64_t length, std::uint64_t minimum);

  // --- snapshots (docs/snapshots.md) ---
  // Done when it returns, and durable. A new one has everything that was acknowledged before the call. Errc::exists, not_found,
  // no_space; invalid: no name for a snapshot.
  Status change_snapshot(Operation&, const snapshots::SnapshotChange& change);
  SnapshotState snapshots() const;
  // Which of them somebody uses (checkpoint/protection.h); `users` is called no more when this has returned.
  void hold_snapshots(std::function<std::vector<Serial>()> users);
  // A tool that reads a snapshot and needs it to its end (checkpoint/readers.h).
  Status hold_for_reader(Serial snapshot, std::uint64_t reader, std::uint64_t seconds);

  // --- knowledge ---
  Result<SpaceInfo> statfs(Operation&);
  // Changes a setting of the running filesystem: "strategy", "policy", "placement" (see Options), "history", "protect", "protect_every"
  // (checkpoint/protection.h); or "label", "uuid", which
  // the next checkpoint writes. Errc::invalid says what is wrong.
  Status tune(std::string_view name, std::string_view value);
  FilesystemStatus status();  // counters and state, for `varve status`
  std::string label() const;  // that the next checkpoint writes
  const format::Superblock& superblock() const;  // as mounted; only its fixed part is current
  // Whether a file may be immutable or append-only: what a checkpoint since mkfs has seen, not what was set since the last.
  bool may_have_protected_files() const;
  operation::Operations& operations();           // for making one
  Engine& engine() { return *engine_; }          // what is behind it
  bool read_only() const;
  // Writes are held for want of room on the host (io/holding_device.h), or no more. Meanwhile changes are refused with
  // Errc::host_full. Called again while that lasts, it ends the waits of each fsync with the same error. Thread-safe.
  void set_host_full(bool is_full);
  bool host_full() const;
  // Another Options::memory_bytes, and memory_limit_bytes: caches drop what is too much. Payload that waits is sealed, and a checkpoint
  // follows, where these take too much. Once more with the same: caches drop what has become clean. By one thread at a time.
  void bound_memory(std::size_t bytes, std::size_t process_bytes);
  // From now on nothing is written any more, as after a failed write: the device is not to be trusted. Thread-safe.
  void stop_writing(const Error& why);

 private:
  SpaceInfo space() const REQUIRES_SHARED(the_gate);  // without inodes
  Status expect_room_on_host() const;  // Errc::host_full, for what would wait without a word for as long as it lacks
  Status rename(std::string_view setting, std::string_view value);
  Status protect(std::string_view setting, std::string_view value);
  void begin_protection();
  void drop_passing_snapshots();
  Status reap_orphans();
  Status sync_all();
  explicit Filesystem(std::unique_ptr<Engine> engine);
  std::unique_ptr<Engine> engine_;
};

}  // namespace varve::fs
