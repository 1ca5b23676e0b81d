// Work with many small files, with lines at the end of one, and with a large one in a row: as in workloads.py, but with the engine alone.
#include <sys/stat.h>

#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

#include "base/buffer.h"
#include "engine_meter.h"
#include "engine_stage.h"

namespace varve::bench {

namespace {

constexpr std::uint64_t kThinkNs = 200'000;  // of a program, for each operation: the device's clock knows nothing else that takes time

class Files {
 public:
  explicit Files(const EngineSetup& setup) : setup_(setup), stage_(setup), random_(setup.seed) {
    for (std::size_t i = 0; i < data_.size(); ++i) data_.data()[i] = static_cast<std::byte>(random_.next());
    stage_.make();
    stage_.mount();
  }

  EnginePart run() {
    if (setup_.files == "untar") return untar();
    if (setup_.files == "postmark") return postmark();
    if (setup_.files == "lines") return lines();
    if (setup_.files == "stream") return stream();
    throw std::runtime_error("no such workload: " + setup_.files);
  }

 private:
  struct File {
    std::string name;
    Ino ino;
    std::uint64_t size;
  };

  std::uint64_t count(double number) const { return static_cast<std::uint64_t>(number * setup_.scale); }
  std::uint64_t between(std::uint64_t least, std::uint64_t end) { return least + random_.next() % (end - least); }
  void think() {
    stage_.clock().advance(kThinkNs);
    stage_.seal_when_due();
  }
  // As the kernel does: from the begin of a page, which it has in its cache.
  void append(Ino file, std::uint64_t at, std::uint64_t bytes) {
    const std::uint64_t from = at / kBlockSize * kBlockSize;
    stage_.write(file, from, data_.span().first(at + bytes - from));
    think();
  }
  double normal() {
    const auto share = [this] { return (static_cast<double>(random_.next() >> 11) + 1) * 0x1.0p-53; };
    return std::sqrt(-2 * std::log(share())) * std::cos(2 * M_PI * share());
  }

  EnginePart untar() {
    const Meter meter(stage_);
    const std::uint64_t files = count(2000);
    Ino folder;
    for (std::uint64_t n = 0; n < files; ++n) {
      if (n % 50 == 0) {
        fs::NewNode node;
        node.mode = S_IFDIR | 0755;
        const std::string name = fmt::format("tree{}", n);
        folder = checked(stage_.call([&](fs::Operation& op) { return stage_.fs().make(op, kRootIno, name, node); })).ino;
      }
      const auto size = std::min<std::uint64_t>(static_cast<std::uint64_t>(std::exp(8.5 + 1.3 * normal())), kMiB);
      append(stage_.make_file(folder, fmt::format("file{}", n)), 0, size);
    }
    stage_.sync();
    return meter.part("", files);
  }

  void make_mail() {
    File file{fmt::format("mail{}", random_.next() >> 24), {}, between(500, 9800)};
    file.ino = stage_.make_file(kRootIno, file.name);
    append(file.ino, 0, file.size);
    mail_.push_back(std::move(file));
  }
  void remove_mail() {
    std::swap(mail_[random_.next() % mail_.size()], mail_.back());
    check(stage_.call([&](fs::Operation& op) { return stage_.fs().unlink(op, kRootIno, mail_.back().name); }));
    mail_.pop_back();
    think();
  }
  EnginePart postmark() {
    for (int i = 0; i < 500; ++i) make_mail();
    stage_.sync();
    const Meter meter(stage_);
    const std::uint64_t transactions = count(10000);
    for (std::uint64_t n = 0; n < transactions; ++n) {
      random_.next() % 2 ? make_mail() : remove_mail();
      File& file = mail_.at(random_.next() % mail_.size());
      const std::uint64_t more = between(500, 4000);
      if (random_.next() % 2 == 0) continue;  // that one is read, from the kernel's cache
      append(file.ino, file.size, more);
      file.size += more;
    }
    stage_.sync();
    return meter.part("", transactions);
  }

  EnginePart lines() {
    constexpr std::uint64_t kLine = 100;
    const Ino file = stage_.make_file(kRootIno, "log");
    stage_.sync();
    const Meter meter(stage_);
    const std::uint64_t lines = count(5000);
    for (std::uint64_t n = 0; n < lines; ++n) {
      append(file, n * kLine, kLine);
      stage_.sync();
    }
    return meter.part("", lines);
  }

  // One file in a row; an operation is a block of it.
  EnginePart stream() {
    const Ino file = stage_.make_file(kRootIno, "stream");
    stage_.sync();
    const Meter meter(stage_);
    const std::uint64_t bytes = count(0.2 * static_cast<double>(setup_.size)) / kMiB * kMiB;
    for (std::uint64_t at = 0; at < bytes; at += kMiB) append(file, at, kMiB);
    stage_.sync();
    return meter.part("", bytes / kBlockSize);
  }

  const EngineSetup& setup_;
  Stage stage_;
  SeededRandom random_;
  AlignedBuffer data_{kMiB + kBlockSize};
  std::vector<File> mail_;
};

}  // namespace

std::vector<EnginePart> run_files(const EngineSetup& setup) {
  return {Files(setup).run()};
}

}  // namespace varve::bench
