// Keeps what a repair overwrites, so that the device can be brought back byte by byte.
//
// The file: 8 bytes magic "VARVEUN2", u64 blocks of the device, u64 identity of the filesystem (0: not known), u32 0, u32
// CRC-32C of all that. Then records: u64 address, u32 blocks, u32 CRC-32C of the whole record without this field, u64 sequence
// from 0, and the old blocks. Each block that can be read is saved once, and its record is on the medium before it is overwritten. The
// last record has address 2^64 - 1, no blocks, but u64 with the CRC-32C of all saved blocks, in the order of the records, as
// the repair has left them. Without it the repair was cut off, and the record before may be torn: its write had not begun.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "io/block_device.h"

namespace varve::repair {

class UndoDevice : public io::BlockDevice {
 public:
  // Creates the file, which must not exist. `below` must outlive this.
  static Result<std::unique_ptr<UndoDevice>> create(io::BlockDevice& below, const std::string& path);
  ~UndoDevice() override;

  const io::Geometry& geometry() const override { return below_.geometry(); }
  const std::string& name() const override { return below_.name(); }
  bool read_only() const override { return below_.read_only(); }
  void submit(io::Reactor& reactor, io::IoRequest& request) override;
  int execute(io::IoRequest& request) override;

  // The repair has ended, well or not: writes the last record. Nothing may be written through this any more.
  Status finish();
  // Blocks that were overwritten and are not in the file: they could not be read. To bring back zeros would be worse than what
  // the repair has written.
  std::uint64_t unreadable() const;

 private:
  UndoDevice(io::BlockDevice& below, int fd) : below_(below), fd_(fd), saved_(below.geometry().blocks()) {}

  int save(const io::IoRequest& request);  // 0 or an errno
  int save_run(std::uint64_t first, std::uint64_t blocks) REQUIRES(mutex_);
  int save_bytes(std::uint64_t first, std::span<const std::byte> bytes) REQUIRES(mutex_);
  // After an error the file is what it was before; or it has no end, ever.
  int put_record(std::uint64_t first, std::uint32_t blocks, std::span<const std::byte> payload) REQUIRES(mutex_);
  bool append(std::span<const std::byte> bytes) REQUIRES(mutex_);

  io::BlockDevice& below_;
  const int fd_;
  mutable Mutex mutex_{LockRank::undo};
  // Under mutex_:
  std::vector<bool> saved_ GUARDED_BY(mutex_);
  std::vector<std::pair<std::uint64_t, std::uint32_t>> records_ GUARDED_BY(mutex_);  // address, blocks
  std::uint64_t end_ GUARDED_BY(mutex_) = 0;  // of the file's last whole record
  std::uint64_t unreadable_ GUARDED_BY(mutex_) = 0;
  bool torn_ GUARDED_BY(mutex_) = false;  // and what stands behind it cannot be taken away
};

struct UndoResult {
  std::uint64_t blocks = 0;
  bool complete = true;  // false: the file's last record is missing
};

// Writes the saved blocks back and flushes. Before the first write it reads all of the file. Errc::invalid, and nothing is
// changed: no undo file, a damaged one, or one of another device or filesystem. The same without `force` if the last record is
// missing, or if the device has been written to since the repair.
Result<UndoResult> apply_undo(io::BlockDevice& device, const std::string& path, bool force);

}  // namespace varve::repair
