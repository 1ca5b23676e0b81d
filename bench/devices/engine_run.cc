#include "engine_run.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <stdexcept>

#include <fmt/format.h>

#include "base/buffer.h"
#include "format/make.h"
#include "fs/engine.h"
#include "fs/filesystem.h"
#include "io/mem_device.h"
#include "log/write_cost.h"
#include "cleaning/checked.h"
#include "model_device.h"
#include "models/catalogue.h"

namespace varve::bench {

namespace {

constexpr double kSecond = 1e9;

// Which block is written next: all alike, or by Zipf's law with the popular ones spread over all places.
class Choice {
 public:
  Choice(std::uint64_t blocks, double exponent, std::uint64_t seed) : random_(seed), blocks_(blocks) {
    if (exponent == 0) return;
    double sum = 0;
    for (std::uint64_t i = 0; i < blocks; ++i) sums_.push_back(sum += std::pow(static_cast<double>(i + 1), -exponent));
    places_.resize(blocks);
    std::iota(places_.begin(), places_.end(), 0U);
    for (std::uint64_t i = blocks; i > 1; --i) std::swap(places_[i - 1], places_[random_.next() % i]);
  }
  std::uint64_t next() {
    if (sums_.empty()) return random_.next() % blocks_;
    const double at = static_cast<double>(random_.next() >> 11) * 0x1.0p-53 * sums_.back();
    const auto rank = std::lower_bound(sums_.begin(), sums_.end(), at) - sums_.begin();
    return places_[std::min<std::size_t>(static_cast<std::size_t>(rank), places_.size() - 1)];
  }

 private:
  SeededRandom random_;
  std::uint64_t blocks_;
  std::vector<double> sums_;
  std::vector<std::uint32_t> places_;
};

class Run {
 public:
  Run(const EngineSetup& setup, const std::function<void(const std::string&)>& told)
      : setup_(setup), told_(told), random_(setup.seed), memory_(setup.size), model_(make_model(setup.model, setup.size)) {
    if (!model_) throw std::runtime_error("no such device: " + setup.model);
    device_ = std::make_unique<ModelDevice>(memory_, *model_, clock_, setup.discard);
  }

  std::vector<EnginePart> all() {
    make();
    mount();
    make_file();
    const auto total = static_cast<std::uint64_t>(setup_.turns * static_cast<double>(setup_.size >> kBlockShift));
    Choice choice(blocks_, setup_.exponent, setup_.seed);
    std::vector<EnginePart> parts;
    parts.push_back(part("early", total / 3, choice));
    parts.push_back(part("late", total - total / 3, choice));
    check(fs_->unmount());
    return parts;
  }

 private:
  void make() {
    format::MakeParameters parameters;
    parameters.device_blocks = device_->geometry().blocks();
    parameters.segment_blocks = setup_.segment_blocks;
    parameters.now = clock_.now();
    const auto made = checked(format::make_filesystem(parameters, random_));
    if (device_->geometry().supports_discard) check(device_->discard(0, setup_.size));
    AlignedBuffer block = AlignedBuffer::zeroed(kBlockSize);
    auto put = [&](BlockAddr at, std::span<const std::byte> bytes) {
      std::copy(bytes.begin(), bytes.end(), block.data());
      check(device_->write(at.v << kBlockShift, block.span()));
    };
    for (const format::MadeNode& node : made.nodes) put(node.address, node.bytes);
    format::encode_superblock(made.super, block.span());
    check(device_->write(0, block.span()));
    check(device_->write((made.super.device_blocks - 1) << kBlockShift, block.span()));
  }

  void mount() {
    fs::Options options;
    options.background = false;
    options.atime = fs::Atime::never;
    options.discard = setup_.discard;
    options.streams = setup_.streams;
    options.clock = &clock_;
    options.random = &random_;
    options.strategy = setup_.strategy;
    options.victims = setup_.victims;
    options.placement = setup_.placement;
    fs_ = checked(fs::Filesystem::mount(*device_, options));
  }

  template <class F>
  auto call(F&& function) {
    fs::Operation operation(fs_->engine(), fs::Caller{});
    return fs::block_on(operation, [&] { return function(operation); });
  }

  void write(std::uint64_t block, std::uint64_t blocks) {
    const auto bytes = bytes_.span().first(blocks << kBlockShift);
    for (std::uint64_t i = 0; i < blocks; ++i) {
      const std::uint64_t stamp[2] = {block + i, ++writes_};
      std::memcpy(bytes_.data() + (i << kBlockShift), stamp, sizeof stamp);
    }
    checked(call([&](fs::Operation& op) { return fs_->write(op, file_, block << kBlockShift, bytes, {}); }));
  }

  void sync() {
    check(call([&](fs::Operation& op) { return fs_->sync(op); }));
  }

  // In a row, and synced.
  void make_file() {
    constexpr std::uint64_t kAtOnce = 256;
    fs::NewNode node;
    node.mode = S_IFREG | 0644;
    file_ = checked(call([&](fs::Operation& op) { return fs_->make(op, kRootIno, "file", node); })).ino;
    blocks_ = static_cast<std::uint64_t>(static_cast<double>(setup_.size >> kBlockShift) * setup_.full) / kAtOnce * kAtOnce;
    for (std::uint64_t at = 0; at < blocks_; at += kAtOnce) write(at, kAtOnce);
    sync();
  }

  void overwrite(std::uint64_t number, Choice& choice, std::vector<double>& waits) {
    const std::uint64_t before = clock_.elapsed_ns();
    write(choice.next(), 1);
    if (setup_.synced) sync();
    else sync_when_due();
    waits.push_back(static_cast<double>(clock_.elapsed_ns() - before) / kSecond);
    if (number % 8192 == 0 && told_) told_(look(waits));
    if (setup_.remount_after && number == setup_.remount_after) {
      check(fs_->unmount());
      fs_.reset();
      mount();
    }
  }

  // As the timer of a mount does: nothing waits longer than five seconds to be durable.
  void sync_when_due() {
    const std::uint64_t since = fs_->engine().store().unawaited_since_ns();
    if (since && clock_.monotonic_ns() - since > 5 * static_cast<std::uint64_t>(kSecond)) sync();
  }

  EnginePart part(const std::string& name, std::uint64_t most, Choice& choice) {
    const Work before = model_->work();
    const EnginePart counts = counters();
    const std::uint64_t began = clock_.elapsed_ns();
    std::vector<double> waits;
    for (std::uint64_t i = 0; i < most; ++i) {
      overwrite(i + 1, choice, waits);
      if (static_cast<double>(clock_.elapsed_ns() - began) > setup_.budget_seconds * kSecond) break;
    }
    sync();
    EnginePart out = counters();
    for (auto field : {&EnginePart::moved, &EnginePart::in_holes, &EnginePart::nodes, &EnginePart::checkpoints, &EnginePart::segments})
      out.*field -= counts.*field;
    const Work& now = model_->work();
    out.name = name;
    out.operations = waits.size();
    out.seconds = static_cast<double>(clock_.elapsed_ns() - began) / kSecond;
    out.programmed = now.programmed - before.programmed;
    out.erases = now.erases - before.erases;
    out.written = now[Op::write].bytes - before[Op::write].bytes;
    out.read = now[Op::read].bytes - before[Op::read].bytes;
    out.discarded = now[Op::discard].bytes - before[Op::discard].bytes;
    std::ranges::sort(waits);
    const auto count = static_cast<double>(waits.size());
    if (!waits.empty()) {
      out.longest_wait = waits.back();
      out.wait_999 = waits[static_cast<std::size_t>(0.999 * count)];
    }
    out.explanation = fs_->status().strategy_explanation;
    return out;
  }

  EnginePart counters() const {
    const store::Counters& now = fs_->engine().store().counters();
    EnginePart out;
    out.moved = now.cleaned_blocks;
    out.in_holes = now.refilled_blocks;
    out.nodes = now.node_blocks;
    out.checkpoints = now.checkpoints;
    out.segments = now.segments_cleaned;
    return out;
  }

  std::string look(const std::vector<double>& waits) const {
    const std::size_t from = waits.size() - std::min<std::size_t>(waits.size(), 8192);
    double longest = 0, sum = 0;
    for (std::size_t i = from; i < waits.size(); ++i) {
      longest = std::max(longest, waits[i]);
      sum += waits[i];
    }
    return fmt::format("{:8.1f} s, {:6.2f} ms an overwrite, {:6.2f} s the longest, {} clean; {}",
                       static_cast<double>(clock_.elapsed_ns()) / kSecond, 1e3 * sum / static_cast<double>(waits.size() - from), longest,
                       fs_->engine().store().segments().clean(),
                       fs_->status().strategy_explanation);
  }

  const EngineSetup& setup_;
  const std::function<void(const std::string&)>& told_;
  SeededRandom random_;
  DeviceClock clock_;
  io::MemDevice memory_;
  std::unique_ptr<DeviceModel> model_;
  std::unique_ptr<ModelDevice> device_;
  std::unique_ptr<fs::Filesystem> fs_;
  AlignedBuffer bytes_ = AlignedBuffer::zeroed(1u << 20);
  Ino file_;
  std::uint64_t blocks_ = 0, writes_ = 0;
};

}  // namespace

std::vector<EnginePart> run_on_model(const EngineSetup& setup, const std::function<void(const std::string&)>& told) {
  return Run(setup, told).all();
}

}  // namespace varve::bench
