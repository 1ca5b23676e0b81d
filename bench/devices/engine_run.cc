#include "engine_run.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "base/buffer.h"
#include "engine_meter.h"
#include "engine_stage.h"

namespace varve::bench {

namespace {

constexpr double kSecond = 1e9;
constexpr double kLongWait = 2;  // seconds, of which something is told

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
  Run(const EngineSetup& setup, const std::function<void(const std::string&)>& told) : setup_(setup), told_(told), stage_(setup) {}

  std::vector<EnginePart> all() {
    stage_.make();
    stage_.mount();
    make_file();
    const auto total = static_cast<std::uint64_t>(setup_.turns * static_cast<double>(setup_.size >> kBlockShift));
    Choice choice(blocks_, setup_.exponent, setup_.seed);
    std::vector<EnginePart> parts;
    parts.push_back(part("early", total / 3, choice));
    parts.push_back(part("late", total - total / 3, choice));
    stage_.unmount();
    return parts;
  }

 private:
  void write(std::uint64_t block, std::uint64_t blocks) {
    const auto bytes = bytes_.span().first(blocks << kBlockShift);
    for (std::uint64_t i = 0; i < blocks; ++i) {
      const std::uint64_t stamp[2] = {block + i, ++writes_};
      std::memcpy(bytes_.data() + (i << kBlockShift), stamp, sizeof stamp);
    }
    stage_.write(file_, block << kBlockShift, bytes);
  }

  // In a row, and synced.
  void make_file() {
    constexpr std::uint64_t kAtOnce = 256;
    file_ = stage_.make_file(kRootIno, "file");
    blocks_ = static_cast<std::uint64_t>(static_cast<double>(setup_.size >> kBlockShift) * setup_.full) / kAtOnce * kAtOnce;
    for (std::uint64_t at = 0; at < blocks_; at += kAtOnce) write(at, kAtOnce);
    stage_.sync();
  }

  void overwrite(std::uint64_t number, Choice& choice, std::vector<double>& waits) {
    const std::uint64_t before = stage_.clock().elapsed_ns();
    const auto meter = told_ ? std::make_optional<Meter>(stage_) : std::nullopt;
    write(choice.next(), 1);
    if (setup_.synced) stage_.sync();
    else stage_.seal_when_due();
    waits.push_back(static_cast<double>(stage_.clock().elapsed_ns() - before) / kSecond);
    if (meter && waits.back() > kLongWait) told_(spent(waits.back(), meter->part("", 1)));
    if (number % 8192 == 0 && told_) told_(look(waits));
    if (setup_.remount_after && number == setup_.remount_after) {
      stage_.unmount();
      stage_.mount();
    }
  }

  EnginePart part(const std::string& name, std::uint64_t most, Choice& choice) {
    const Meter meter(stage_);
    const std::uint64_t began = stage_.clock().elapsed_ns();
    std::vector<double> waits;
    for (std::uint64_t i = 0; i < most; ++i) {
      overwrite(i + 1, choice, waits);
      if (static_cast<double>(stage_.clock().elapsed_ns() - began) > setup_.budget_seconds * kSecond) break;
    }
    stage_.sync();
    EnginePart out = meter.part(name, waits.size());
    std::ranges::sort(waits);
    const auto count = static_cast<double>(waits.size());
    if (!waits.empty()) {
      out.longest_wait = waits.back();
      out.wait_999 = waits[static_cast<std::size_t>(std::ceil(0.999 * count)) - 1];
    }
    return out;
  }

  // On what an operation waited.
  static std::string spent(double seconds, const EnginePart& on) {
    constexpr double kMiB = 1u << 20;
    const auto mib = [](std::uint64_t bytes) { return static_cast<double>(bytes) / kMiB; };
    return fmt::format(
        "{:8.2f} s for one overwrite: {} checkpoints, {} segments, moved {}, in holes {}, nodes {}, {} chunks with {} of payload; "
        "programmed {:.1f} MiB, written {:.1f}, read {:.1f}; {}",
        seconds, on.checkpoints, on.segments, on.moved, on.in_holes, on.nodes, on.chunks, on.payload, mib(on.programmed), mib(on.written),
        mib(on.read), on.explanation);
  }

  std::string look(const std::vector<double>& waits) {
    const std::size_t from = waits.size() - std::min<std::size_t>(waits.size(), 8192);
    double longest = 0, sum = 0;
    for (std::size_t i = from; i < waits.size(); ++i) {
      longest = std::max(longest, waits[i]);
      sum += waits[i];
    }
    const fs::FilesystemStatus status = stage_.fs().status();
    return fmt::format("{:8.1f} s, {:6.2f} ms an overwrite, {:6.2f} s the longest, {} clean, {} streams ({}); {}",
                       static_cast<double>(stage_.clock().elapsed_ns()) / kSecond,
                       1e3 * sum / static_cast<double>(waits.size() - from), longest,
                       status.segments.clean, status.device_profile.streams,
                       format::name_of(status.device_profile.streams_source), status.strategy_explanation);
  }

  const EngineSetup& setup_;
  const std::function<void(const std::string&)>& told_;
  Stage stage_;
  AlignedBuffer bytes_ = AlignedBuffer::zeroed(1u << 20);
  Ino file_;
  std::uint64_t blocks_ = 0, writes_ = 0;
};

}  // namespace

std::vector<EnginePart> run_on_model(const EngineSetup& setup, const std::function<void(const std::string&)>& told) {
  return Run(setup, told).all();
}

}  // namespace varve::bench
