// A filesystem of a test: mounts an image on a device, calls it as a thread that may block, and looks at it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "compare/question.h"
#include "fs/filesystem.h"
#include "io/block_device.h"
#include "support/manual_clock.h"

namespace varve::store {
class Store;
}

namespace varve::test {

struct ImageParameters {
  std::uint32_t segment_blocks = 0;  // 0: as mkfs chooses
  std::uint64_t seed = 1;            // of everything the filesystem draws by lot
  bool superblocks_in_place = false;
  std::uint32_t tails = 0;           // bytes of the longest that stand in the tree; 0: none
};

// mkfs onto a device.
Status make_image(io::BlockDevice& device, const ImageParameters& parameters);

// Questions about snapshots. It waits for the answer. The filesystem must outlive it.
compare::Ask asking(fs::Filesystem& filesystem);

// Wherever superblocks go.
bool is_superblock_write(const io::IoRequest& request);

// Options of a test's mount: no threads, no access times, references counted, time and randomness injected.
fs::Options test_options(ManualClock& clock, Random& random);

struct ListedEntry {
  std::string name;
  Ino ino;
  std::uint8_t type = 0;
  std::uint64_t cookie = 0;

  bool operator==(const ListedEntry&) const = default;
};

// Makes a snapshot, and shows so many in place of all that there are, named "state 1" and so on, which keep the same. For looks at them: no
// checkpoint may come as long as they are there.
class PretendedSnapshots {
 public:
  PretendedSnapshots(fs::Filesystem& fs, std::uint64_t count);
  ~PretendedSnapshots();
  PretendedSnapshots(const PretendedSnapshots&) = delete;
  PretendedSnapshots& operator=(const PretendedSnapshots&) = delete;
  std::uint64_t copied() const;  // snapshots::Snapshots::copied()

 private:
  struct Real;
  store::Store& store_;
  const std::unique_ptr<Real> real_;
};

class FsFixture {
 public:
  // The device, clock and random source in `options` must outlive the fixture.
  FsFixture(io::BlockDevice& device, const fs::Options& options) : device_(device), options_(options) {}

  Status mount();
  Status unmount();
  void crash() { filesystem_.reset(); }  // without unmount: nothing more is written
  bool mounted() const { return filesystem_ != nullptr; }
  fs::Filesystem& fs() { return *filesystem_; }
  store::Store& store();
  fs::Options& options() { return options_; }
  void show(Serial snapshot) { shown_ = snapshot; }  // by all calls from now on; none: the newest state
  io::BlockDevice& device() { return device_; }

  // Tells of each call() that is about to wait, and for what: by its own thread. Set while there are no others.
  void watch_waits(std::function<void(const operation::Wait& wait)> tell) { tell_ = std::move(tell); }

  // call([&](fs::Operation& op) { return fs().getattr(op, ino); })
  template <class Function>
  auto call(Function&& function) {
    fs::Operation operation(filesystem_->operations(), fs::Caller{});
    operation.show(shown_);
    return fs::block_on(operation, [&] {
      auto result = function(operation);
      if (tell_ && result.fails_with(Errc::would_block)) tell_(operation.wait());
      return result;
    });
  }

  Result<fs::Attr> getattr(Ino ino);
  Result<fs::Attr> lookup(Ino parent, std::string_view name);  // keeps no reference
  Result<Ino> resolve(std::string_view path);
  Result<std::vector<ListedEntry>> list(Ino directory);  // with "." and ".."
  Result<std::vector<std::byte>> read(Ino ino, std::uint64_t offset, std::size_t length);
  Status write(Ino ino, std::uint64_t offset, std::span<const std::byte> data);  // of any length, in steps
  Result<fs::Attr> make(std::string_view path, std::uint32_t mode);              // keeps no reference
  Result<std::uint64_t> available_bytes();

  // What waits in memory is written, not flushed; a round of background work, where no threads do it.
  Status seal();
  Status work();
  Status checkpoint();  // with all that waits
  Status snapshot(const snapshots::SnapshotChange& change);
  // Lets checkpoints give back what deleted snapshots held. Errc::invalid: there is no end to it. Without threads.
  Status settle_deletions();
  // All that the strategy would do now; without threads it is done then, with them it goes on.
  Status clean(const std::string& strategy);
  // To that size, in bytes, if that can be done now; without threads it is done, or given up, then.
  Status resize(std::uint64_t bytes);
  // Copies what lives in the nth segment with blocks of files, modulo those that there are, and no more: what a cleaner does
  // before its checkpoint.
  Status move(std::uint64_t nth);
  // What the engine does with a file in pieces while nobody uses it, until it has asked so often whether it should stop.
  Status tidy(Ino file, std::uint64_t asks);

 private:
  io::BlockDevice& device_;
  fs::Options options_;
  std::unique_ptr<fs::Filesystem> filesystem_;
  Serial shown_;
  std::function<void(const operation::Wait&)> tell_;
};

}  // namespace varve::test
