// Keeps what a repair overwrites, so that the device can be brought back byte by byte.
//
// The file: 8 bytes magic "VARVEUN1", u64 blocks of the device; then per record u64 address, u32 blocks, u32 CRC-32C of all
// that follows up to the end of the record, u64 sequence from 0, and the old blocks. Each block is saved once, and is on
// the medium before it is overwritten. A torn last record counts for nothing: its write had not begun.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

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
  std::unique_ptr<io::IoQueue> make_queue() override;
  int execute(io::IoRequest& request) override;

  std::uint64_t saved_blocks() const { return saved_blocks_; }

 private:
  friend class UndoQueue;
  UndoDevice(io::BlockDevice& below, int fd) : below_(below), fd_(fd), saved_(below.geometry().blocks()) {}

  int save(const io::IoRequest& request);  // 0 or an errno
  int save_run(std::uint64_t first, std::uint64_t blocks);

  io::BlockDevice& below_;
  const int fd_;
  std::mutex mutex_;
  // Under mutex_:
  std::vector<bool> saved_;
  std::uint64_t saved_blocks_ = 0;
  std::uint64_t sequence_ = 0;
};

struct UndoResult {
  std::uint64_t blocks = 0;
};

// Writes the saved blocks back and flushes. Errc::invalid: no undo file, or of a device of another size.
Result<UndoResult> apply_undo(io::BlockDevice& device, const std::string& path);

}  // namespace varve::repair
