// The superblock of a mounted filesystem: as it was found, as it was written last, and what the next one is to say besides the state
// of the trees. Thread-safe, but for write().
#pragma once

#include <functional>
#include <string>

#include "base/mutex.h"
#include "format/superblock.h"
#include "io/block_device.h"

namespace varve::checkpoint {

using GroupCentres = decltype(format::Superblock::group_centres);

class SuperblockKeeper {
 public:
  SuperblockKeeper(io::BlockDevice& device, const format::Superblock& found)
      : device_(device), found_(found), written_(found), label_(found.label), uuid_(found.uuid),
        centres_(found.group_centres), scrub_(found.scrub), costs_(found.costs) {}

  const format::Superblock& found() const { return found_; }
  format::Superblock written() const;  // with the label and UUID that the next one is to have
  // Both copies. By one thread at a time.
  Status write(const format::Superblock& super, const std::function<Status()>& flush);
  // Writes again what was written last, wherever a superblock belongs.
  Status restore(const std::function<Status()>& flush);
  void count_recovery();
  // What the next superblocks say. Label: at most 63 bytes, without NUL.
  void set_label(std::string label);
  void set_uuid(const format::Uuid& uuid);

  // What cleaning has learnt of the groups.
  void set_group_centres(const GroupCentres& centres);
  GroupCentres group_centres() const;
  // How far a scrub has come.
  void set_scrub_mark(const format::ScrubMark& mark);
  format::ScrubMark scrub_mark() const;
  // What cleaning was found to cost.
  void set_costs(const format::WritingCosts& costs);
  format::WritingCosts costs() const;

 private:
  io::BlockDevice& device_;
  const format::Superblock found_;
  mutable Mutex mutex_;
  format::Superblock written_ GUARDED_BY(mutex_);
  std::string label_ GUARDED_BY(mutex_);
  format::Uuid uuid_ GUARDED_BY(mutex_);
  GroupCentres centres_ GUARDED_BY(mutex_);
  format::ScrubMark scrub_ GUARDED_BY(mutex_);
  format::WritingCosts costs_ GUARDED_BY(mutex_);
};

}  // namespace varve::checkpoint
