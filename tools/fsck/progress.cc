#include "fsck/progress.h"

#include <unistd.h>

#include <algorithm>
#include <ostream>
#include <string_view>
#include <utility>

#include "shared/progress_meter.h"
#include "shared/terminal.h"

namespace varve::fsck {

namespace {

class PercentProgress : public check::Progress {
 public:
  void update(const char* phase, std::uint64_t done, std::uint64_t total) override {
    const auto percent = total == 0 ? 100 : static_cast<unsigned>(std::min<std::uint64_t>(100, done * 100 / total));
    if (phase == phase_ && percent / step() == percent_ / step()) return;
    phase_ = phase;
    percent_ = percent;
    show(phase, percent, done, total);
  }

 protected:
  virtual unsigned step() const = 0;  // percent between two lines
  virtual void show(const char* phase, unsigned percent, std::uint64_t done, std::uint64_t total) = 0;

 private:
  std::string_view phase_;
  unsigned percent_ = 0;
};

class TerminalProgress : public check::Progress {
 public:
  TerminalProgress(std::ostream& out, Clock& clock)
      : meter_(out, ProgressMeter::Kind::overwritten, [] { return size_of_terminal(STDOUT_FILENO).columns; }, clock) {}

  void update(const char* phase, std::uint64_t done, std::uint64_t total) override {
    if (phase != std::exchange(phase_, phase)) meter_.restart();
    const double share = total == 0 ? 1 : std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
    meter_.show([&] { return fmt::format("{:<10}{:>3.0f} %", phase, 100 * share); }, share);
  }

 private:
  ProgressMeter meter_;
  std::string_view phase_;
};

class LineProgress : public PercentProgress {
 public:
  explicit LineProgress(std::ostream& out) : out_(out) {}

 private:
  unsigned step() const override { return 10; }
  void show(const char* phase, unsigned percent, std::uint64_t, std::uint64_t) override {
    out_ << fmt::format("{}: {} %\n", phase, percent) << std::flush;
  }
  std::ostream& out_;
};

// For another program, as fsck(8) and systemd know it from other filesystems: "pass done total device".
class DescriptorProgress : public PercentProgress {
 public:
  DescriptorProgress(int descriptor, std::string device) : descriptor_(descriptor), device_(std::move(device)) {}

 private:
  unsigned step() const override { return 1; }
  void show(const char* phase, unsigned, std::uint64_t done, std::uint64_t total) override {
    if (phase != std::exchange(shown_, phase)) ++pass_;
    const std::string line = fmt::format("{} {} {} {}\n", pass_, done, total, device_);
    if (::write(descriptor_, line.data(), line.size()) < 0) descriptor_ = -1;  // nobody listens: no matter
  }
  int descriptor_;
  std::string device_;
  std::string_view shown_;
  unsigned pass_ = 0;
};

}  // namespace

std::unique_ptr<check::Progress> make_progress(const ProgressChoice& choice, std::ostream* out, bool terminal,
                                               const std::string& device, Clock& clock) {
  if (choice.wanted && choice.descriptor > 0) return std::make_unique<DescriptorProgress>(choice.descriptor, device);
  if (!out) return nullptr;
  if (terminal) return std::make_unique<TerminalProgress>(*out, clock);
  if (choice.wanted) return std::make_unique<LineProgress>(*out);
  return nullptr;
}

}  // namespace varve::fsck
