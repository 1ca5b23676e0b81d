#include "fuzz/structure/base_content.h"

#include <sys/stat.h>

#include <array>
#include <string>

#include <fmt/format.h>

#include "fs/engine.h"
#include "fuzz/structure/base_image.h"
#include "fuzz/target.h"
#include "snapshots/snapshot_change.h"
#include "store/store.h"
#include "support/fs_fixture.h"
#include "support/pattern.h"
#include "tree/trees.h"

namespace varve::fuzz {

namespace {

using Kind = snapshots::SnapshotChange::Kind;

struct Plan {
  const char* name;
  unsigned files;      // beside one of each type
  bool snapshots;
  bool unclean;        // with a log to replay, and an orphan
  bool in_place;       // superblocks
};
constexpr std::array<Plan, kBaseImages> kPlans{{{"small", 6, false, false, false},
                                                {"small-log", 6, false, true, false},
                                                {"large", 32, false, false, false},
                                                {"large-log", 32, false, true, false},
                                                {"snapshots", 8, true, false, false},
                                                {"snapshots-log", 8, true, true, false},
                                                {"in-place-log", 6, false, true, true},
                                                {"in-place-snapshots", 24, true, false, true}}};

class Builder {
 public:
  Builder(io::MemDevice& device, const Plan& plan) : plan_(plan), fixture_(device, test::test_options(clock_, random_)) {
    want(test::make_image(device, {.segment_blocks = 64, .superblocks_in_place = plan.in_place}));
    want(fixture_.mount());
  }

  void run() {
    make_types();
    make_files(0, plan_.files);
    want(fixture_.checkpoint());
    if (plan_.snapshots) make_snapshots();
    change_some();
    if (!plan_.unclean) return want(fixture_.unmount());
    want(fixture_.checkpoint());
    leave_log();
    want(fixture_.call([&](fs::Operation& op) { return fixture_.fs().sync(op); }));
    fixture_.crash();
  }

 private:
  template <class T>
  static void want(const Result<T>& result) {
    require(result.ok(), "a base image cannot be made: " + (result.ok() ? "" : result.error().message()));
  }

  Ino at(const std::string& path) {
    const auto found = fixture_.resolve(path);
    want(found);
    return *found;
  }

  void make(const std::string& path, std::uint32_t mode) { want(fixture_.make(path, mode)); }

  void write(const std::string& path, std::uint64_t offset, std::size_t length) {
    want(fixture_.write(at(path), offset, test::pattern_bytes(++pattern_, 0, length)));
  }

  void set_attribute(const std::string& path, const char* name, std::size_t length) {
    const auto value = test::pattern_bytes(++pattern_, 0, length);
    const Ino ino = at(path);
    want(fixture_.call([&](fs::Operation& op) { return fixture_.fs().setxattr(op, ino, name, value, 0); }));
  }

  void unlink(Ino parent, const std::string& name) {
    want(fixture_.call([&](fs::Operation& op) { return fixture_.fs().unlink(op, parent, name); }));
  }

  void allocate(const std::string& path, fs::FallocateMode mode, std::uint64_t offset, std::uint64_t length) {
    const Ino ino = at(path);
    want(fixture_.call([&](fs::Operation& op) { return fixture_.fs().fallocate(op, ino, mode, offset, length); }));
  }

  void make_types() {
    make("/a", S_IFDIR | 0755);
    make("/a/b", S_IFDIR | 0700);
    make("/a/file", S_IFREG | 0644);
    make("/a/fifo", S_IFIFO | 0644);
    write("/a/file", 0, 30000);
    allocate("/a/file", fs::FallocateMode::allocate, 65536, 20000);
    allocate("/a/file", fs::FallocateMode::punch_hole, 8192, 4096);
    set_attribute("/a/file", "user.k", 1500);
    set_attribute("/a", "user.short", 5);
    fs::NewNode link{.mode = S_IFLNK | 0777, .symlink = "a/file"};
    const auto made = fixture_.call([&](fs::Operation& op) { return fixture_.fs().make(op, kRootIno, "link", link); });
    want(made);
    fixture_.fs().forget(made->ino, 1);
    const Ino file = at("/a/file"), b = at("/a/b");
    want(fixture_.call([&](fs::Operation& op) { return fixture_.fs().link(op, file, b, "hard"); }));
    fixture_.fs().forget(file, 1);
  }

  void make_files(unsigned first, unsigned end) {
    for (unsigned i = first; i < end; ++i) {
      make(fmt::format("/a/b/n{}", i), S_IFREG | 0600);
      write(fmt::format("/a/b/n{}", i), 0, 500 + 900 * (i % 9));
    }
  }

  void make_snapshots() {
    want(fixture_.snapshot({Kind::create, "one", {}}));
    write("/a/file", 0, 9000);
    unlink(at("/a/b"), "n1");
    want(fixture_.snapshot({Kind::create, "two", {}}));
    write("/a/b/n2", 0, 5000);
    unlink(at("/a/b"), "n3");
    want(fixture_.checkpoint());
    for (std::uint64_t i = 0; i < 8; ++i) {
      want(fixture_.move(i));
      want(fixture_.checkpoint());
    }
    require(fixture_.store().trees().own_view().tables.places > 0, "a base image has no moved blocks of snapshots");
  }

  void change_some() {
    write("/a/file", 12000, 6000);
    unlink(at("/a/b"), "n0");
    make("/late", S_IFREG | 0644);
    write("/late", 4096, 9000);
  }

  // All kinds of records, and an inode without a name that a program still has open.
  void leave_log() {
    make("/new", S_IFDIR | 0755);
    make("/new/x", S_IFREG | 0644);
    write("/new/x", 0, 9000);
    want(fixture_.call([&](fs::Operation& op) { return fixture_.fs().sync(op); }));
    set_attribute("/new/x", "user.k", 40);
    allocate("/new/x", fs::FallocateMode::allocate, 16384, 8192);
    allocate("/a/file", fs::FallocateMode::punch_hole, 0, 4096);
    const Ino late = at("/late"), to = at("/new");
    want(fixture_.call([&](fs::Operation& op) { return fixture_.fs().rename(op, kRootIno, "late", to, "moved", 0); }));
    want(fixture_.call([&](fs::Operation& op) { return fixture_.fs().lookup(op, to, "moved"); }));
    unlink(to, "moved");
    unlink(at("/a/b"), "n4");
    want(fixture_.call([&](fs::Operation& op) { return fixture_.fs().fsync(op, late); }));
    write("/a/b/n5", 0, 100);
  }

  const Plan& plan_;
  test::ManualClock clock_;
  SeededRandom random_{7};
  test::FsFixture fixture_;
  std::uint64_t pattern_ = 0;
};

}  // namespace

const char* name_of_base(unsigned kind) { return kPlans.at(kind % kBaseImages).name; }

std::unique_ptr<io::MemDevice> make_base(unsigned kind) {
  auto device = std::make_unique<io::MemDevice>(std::uint64_t{format::kMinDeviceBlocks} * kBlockSize);
  Builder(*device, kPlans.at(kind)).run();
  return device;
}

}  // namespace varve::fuzz
