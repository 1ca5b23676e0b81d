#include "support/fs_fixture.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include <spdlog/spdlog.h>

#include "base/buffer.h"
#include "base/invariant.h"
#include "checkpoint/checkpoints.h"
#include "checkpoint/seals.h"
#include "cleaner/cleaner.h"
#include "cleaner/file_source.h"
#include "cleaner/mover.h"
#include "cleaner/strategy.h"
#include "compare/answer.h"
#include "compare/change_scan.h"
#include "device/io_context.h"
#include "format/make.h"
#include "fs/engine.h"
#include "jobs/clean_job.h"
#include "jobs/jobs.h"
#include "jobs/resize_job.h"
#include "segments/segment_table.h"
#include "snapshots/snapshot_change.h"
#include "snapshots/snapshots.h"
#include "store/store.h"
#include "support/settings.h"

namespace varve::test {

namespace {

constexpr std::size_t kEntriesPerCall = 50;  // small enough that tests go on from cookies
constexpr std::size_t kMaxWrite = 1u << 20;

Status write_block(io::BlockDevice& device, BlockAddr address, std::span<const std::byte> bytes) {
  AlignedBuffer block(kBlockSize);
  std::copy(bytes.begin(), bytes.end(), block.data());
  return device.write(address.v * kBlockSize, block.span());
}

}  // namespace

Status make_image(io::BlockDevice& device, const ImageParameters& parameters) {
  SeededRandom random(parameters.seed);
  format::MakeParameters make;
  make.device_blocks = device.geometry().blocks();
  make.segment_blocks = parameters.segment_blocks;
  make.superblocks_in_place = parameters.superblocks_in_place;
  static const std::uint64_t tails = number_setting("VARVE_TEST_TAILS", 0);  // small files in the tree
  make.tails.kept = parameters.tails ? parameters.tails : tails;
  make.tails.logged = make.tails.kept ? format::kUsualLoggedTail : 0;
  make.now = Timestamp{ManualClock::kStart / 1'000'000'000 - 1, 0};
  const format::EmptyFilesystem made = TRY(format::make_filesystem(make, random));
  for (const format::MadeNode& node : made.nodes) TRY(write_block(device, node.address, node.bytes));
  TRY(device.flush());
  for (const format::MadeNode& super : format::superblocks_of(made)) TRY(write_block(device, super.address, super.bytes));
  return device.flush();
}

compare::Ask asking(fs::Filesystem& filesystem) {
  return [&filesystem](const compare::Question& question) -> Result<compare::Answer> {
    fs::Operation operation(filesystem.operations(), {});
    compare::Progress progress;
    return fs::block_on(operation, [&] { return compare::answer(filesystem, operation, question, progress); });
  };
}

bool is_superblock_write(const io::IoRequest& request) {
  if (request.kind != io::IoKind::write || request.iov.empty() || request.iov[0].iov_len < kBlockSize) return false;
  const std::span block(static_cast<const std::byte*>(request.iov[0].iov_base), kBlockSize);
  return !format::decode_superblock(block).fails_with(Errc::not_varve);
}

fs::Options test_options(ManualClock& clock, Random& random) {
  // Thousands of mounts, most of them after a crash, would drown what a test has to say.
  static const bool talk = number_setting("VARVE_TEST_LOG", 0) != 0;
  if (!talk) spdlog::set_level(spdlog::level::off);
  fs::Options options;
  options.background = false;
  options.count_references = true;
  options.atime = fs::Atime::never;
  options.memory_bytes = 32u << 20;
  static const auto gap = static_cast<std::uint32_t>(number_setting("VARVE_TEST_GAP", 0));  // as on a disk that turns
  options.chunk_gap = gap;
  static const auto streams = static_cast<unsigned>(number_setting("VARVE_TEST_STREAMS", 0));  // as on a stick with one open unit
  options.streams = streams;
  options.clock = &clock;
  options.random = &random;
  return options;
}

Status FsFixture::mount() {
  filesystem_ = TRY(fs::Filesystem::mount(device_, options_));
  return {};
}

Status FsFixture::unmount() {
  TRY(filesystem_->unmount());
  filesystem_.reset();
  return {};
}

Result<fs::Attr> FsFixture::getattr(Ino ino) {
  return call([&](fs::Operation& op) { return fs().getattr(op, ino); });
}

Result<fs::Attr> FsFixture::lookup(Ino parent, std::string_view name) {
  auto attr = call([&](fs::Operation& op) { return fs().lookup(op, parent, name); });
  if (attr.ok() && options_.count_references && !shown_) fs().forget(attr->ino, 1);
  return attr;
}

Result<Ino> FsFixture::resolve(std::string_view path) {
  Ino at = kRootIno;
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    const std::string_view name = path.substr(0, slash);
    path = slash == std::string_view::npos ? std::string_view{} : path.substr(slash + 1);
    if (!name.empty()) at = TRY(lookup(at, name)).ino;
  }
  return at;
}

Result<std::vector<ListedEntry>> FsFixture::list(Ino directory) {
  std::vector<ListedEntry> all;
  std::uint64_t cookie = 0;
  for (;;) {
    std::vector<ListedEntry> batch;
    std::uint64_t last = cookie;
    TRY(call([&](fs::Operation& op) {
      batch.clear();  // a call that has to wait starts again
      last = cookie;
      return fs().readdir(op, directory, cookie, false, [&](const fs::DirectoryEntry& entry) {
        if (batch.size() == kEntriesPerCall) return false;
        batch.push_back({std::string(entry.name), entry.ino, entry.type, entry.cookie});
        last = entry.cookie;
        return true;
      });
    }));
    if (batch.empty()) return all;
    if (last == cookie) return Error(Errc::invalid, "readdir gives a cookie that does not advance");
    all.insert(all.end(), batch.begin(), batch.end());
    cookie = last;
  }
}

Result<std::vector<std::byte>> FsFixture::read(Ino ino, std::uint64_t offset, std::size_t length) {
  AlignedBuffer buffer(round_up(std::max<std::size_t>(length, 1), kBlockSize));
  const std::size_t got =
      TRY(call([&](fs::Operation& op) { return fs().read(op, ino, offset, buffer.span().first(length)); }));
  if (got > length) return Error(Errc::invalid, "read returns more than was asked for");
  return std::vector<std::byte>(buffer.data(), buffer.data() + got);
}

Status FsFixture::write(Ino ino, std::uint64_t offset, std::span<const std::byte> data) {
  for (std::size_t done = 0; done < data.size();) {
    const auto piece = data.subspan(done, std::min(kMaxWrite, data.size() - done));
    const std::size_t written =
        TRY(call([&](fs::Operation& op) { return fs().write(op, ino, offset + done, piece, fs::WriteFlags{}); }));
    if (written != piece.size()) return Error(Errc::invalid, "short write without an error");
    done += written;
  }
  return {};
}

Result<fs::Attr> FsFixture::make(std::string_view path, std::uint32_t mode) {
  const std::size_t slash = path.rfind('/');
  const Ino parent = TRY(resolve(path.substr(0, slash)));
  fs::NewNode node;
  node.mode = mode;
  auto attr = call([&](fs::Operation& op) { return fs().make(op, parent, path.substr(slash + 1), node); });
  if (attr.ok() && options_.count_references) fs().forget(attr->ino, 1);
  return attr;
}

Result<std::uint64_t> FsFixture::available_bytes() {
  const fs::SpaceInfo space = TRY(call([&](fs::Operation& op) { return fs().statfs(op); }));
  return space.available * kBlockSize;
}

Status FsFixture::seal() {
  store::Store& store = fs().engine().store();
  TRY(store.seals().seal());
  if (!options_.background) store.io().pump();
  return {};
}

Status FsFixture::clean(const std::string& strategy) {
  jobs::CleanRequest request;
  request.strategy = strategy;
  const Status started = fs().start_clean(request);
  return started.fails_with(Errc::busy) ? Status() : started;
}

Status FsFixture::resize(std::uint64_t bytes) {
  const Status started = fs().start_resize({bytes});
  const bool is_no_failure = started.fails_with(Errc::busy) || started.fails_with(Errc::no_space) || started.fails_with(Errc::invalid);
  return is_no_failure ? Status() : started;
}

Status FsFixture::move(std::uint64_t nth) {
  if (options_.background) return {};  // its cleaner is at work
  store::Store& store = fs().engine().store();
  cleaner::Mover mover(store);
  std::vector<std::vector<cleaner::LiveBlock>> segments;
  for (std::uint64_t i = 0; i < store.segments().geometry().count; ++i) {
    auto blocks = TRY(mover.live_blocks(SegmentId{i}));
    if (!blocks.empty()) segments.push_back(std::move(blocks));
  }
  if (segments.empty()) return {};
  const Status moved = mover.move(segments[nth % segments.size()]);
  return moved.fails_with(Errc::no_space) ? Status() : moved;
}

namespace {
class OneFile : public cleaner::FileSource {
 public:
  explicit OneFile(Ino file) : file_(file) {}
  Result<std::optional<Ino>> next() override { return std::exchange(file_, std::nullopt); }

 private:
  std::optional<Ino> file_;
};
}  // namespace

Status FsFixture::tidy(Ino file, std::uint64_t asks) {
  if (options_.background) return {};
  TRY(store().checkpoints().make({}));
  OneFile files(file);
  cleaner::Task task;
  task.for_room = false;
  task.tidies = true;
  task.files = &files;
  task.stop = [&asks] { return asks == 0 || --asks == 0; };
  const auto rules = TRY(fs().engine().cleaner().rules({.strategy = "defragmenting", .victims = {}, .placement = {}}));
  const cleaner::Round round = fs().engine().cleaner().run_round(task, rules);
  return round.failure ? Status(*round.failure) : Status();
}

store::Store& FsFixture::store() { return fs().engine().store(); }

Status FsFixture::checkpoint() {
  return call([&](fs::Operation& op) { return fs().checkpoint(op); });
}

Status FsFixture::snapshot(const snapshots::SnapshotChange& change) {
  return call([&](fs::Operation& op) { return fs().change_snapshot(op, change); });
}

Status FsFixture::settle_deletions() {
  constexpr int kMostSteps = 10000;
  for (int i = 0; i < kMostSteps; ++i) {
    if (!store().snapshots().deletion_is_left()) return {};
    TRY(work());
    if (fs().read_only()) return Errc::read_only;
  }
  return Error(Errc::invalid, "there is no end to giving back what deleted snapshots held");
}

Status FsFixture::work() {
  if (!options_.background) fs().engine().jobs().maintenance().work(true);
  return {};
}

struct PretendedSnapshots::Real {
  std::vector<format::SnapshotItem> items;
};

PretendedSnapshots::PretendedSnapshots(fs::Filesystem& fs, std::uint64_t count)
    : store_(fs.engine().store()), real_(new Real) {
  fs::Operation operation(fs.operations(), fs::Caller{});
  const snapshots::SnapshotChange change{snapshots::SnapshotChange::Kind::create, "real", {}};
  const Status made = fs::block_on(operation, [&] { return fs.change_snapshot(operation, change); });
  INVARIANT(made.ok());
  real_->items = store_.snapshots().list();
  std::vector<format::SnapshotItem> many;
  for (std::uint64_t serial = 1; serial <= count; ++serial) {
    format::SnapshotItem item = real_->items.back();
    item.serial = Serial{serial};
    item.name = fmt::format("state {}", serial);
    many.push_back(std::move(item));
  }
  store_.snapshots().replace(snapshots::SnapshotList(std::move(many)), false);
}

PretendedSnapshots::~PretendedSnapshots() { store_.snapshots().replace(snapshots::SnapshotList(real_->items), false); }

std::uint64_t PretendedSnapshots::copied() const { return store_.snapshots().copied(); }

}  // namespace varve::test
