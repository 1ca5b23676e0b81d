#include "varve/trial/workload.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <span>
#include <utility>

#include "base/descriptor.h"
#include "base/errc.h"
#include "base/mix.h"
#include "base/types.h"
#include "shared/interruptible.h"

namespace varve::tool {

namespace {

using Time = std::chrono::steady_clock;

constexpr std::size_t kPiece = 1u << 20;
constexpr std::uint64_t kMostFiles = 20'000;
constexpr unsigned kFolders = 32;

std::uint64_t bytes_of_file(std::uint64_t number) { return 1024 + mix64(number + 1) % (15u << 10); }

// How many of the new files have room in so many bytes. Each takes whole blocks.
std::uint64_t files_in(std::uint64_t room) {
  std::uint64_t number = 0;
  for (std::uint64_t taken = 0; number < kMostFiles; ++number) {
    taken += (bytes_of_file(number) + kBlockSize - 1) / kBlockSize * kBlockSize;
    if (taken > room) break;
  }
  return number;
}

double seconds_since(Time::time_point began) { return std::chrono::duration<double>(Time::now() - began).count(); }

Error failed(const std::string& path) { return Error(errc_from_errno(errno), fmt::format("{}: {}", path, errno_text())); }

// No two pieces of it are alike, and none can be compressed: what a device does with zeros says little.
class Noise {
 public:
  std::span<const std::byte> next(std::size_t bytes) {
    if (at_ + bytes > pool_.size()) {
      at_ = 0;
      for (std::size_t i = 0; i < pool_.size(); i += sizeof(std::uint64_t)) {
        const std::uint64_t value = mix64(++seed_);
        std::memcpy(pool_.data() + i, &value, sizeof value);
      }
    }
    return std::span(pool_).subspan(std::exchange(at_, at_ + bytes), bytes);
  }

 private:
  std::uint64_t seed_ = 0;
  std::vector<std::byte> pool_ = std::vector<std::byte>(4 * kPiece);
  std::size_t at_ = pool_.size();
};

Status write_at(int fd, std::span<const std::byte> bytes, std::uint64_t offset, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t done = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return failed(path);
    bytes = bytes.subspan(static_cast<std::size_t>(done));
    offset += static_cast<std::uint64_t>(done);
  }
  return {};
}

// Operations of one kind, timed one by one.
class Times {
 public:
  explicit Times(double most_seconds) : most_(most_seconds) {}

  // Does `operation` again and again, until time or `most` operations are over.
  template <class Operation>
  Status repeat(std::uint64_t most, Operation operation) {
    while (took_.size() < most && seconds_since(began_) < most_) {
      if (Interruptible::asked()) return Errc::interrupted;
      const auto before = Time::now();
      TRY(operation(took_.size()));
      took_.push_back(1000 * seconds_since(before));
    }
    return {};
  }
  std::uint64_t operations() const { return took_.size(); }

  // The rate is that of so many units, until now.
  Outcome outcome(std::string work, std::string unit, double units) const {
    Outcome found{std::move(work), std::move(unit), units / seconds_since(began_), 0, 0, took_.size()};
    if (took_.size() < 2) return found;
    std::vector<double> sorted = took_;
    std::ranges::sort(sorted);
    found.median_ms = sorted[sorted.size() / 2];
    found.longest_ms = sorted.back();
    return found;
  }

 private:
  const double most_;
  const Time::time_point began_ = Time::now();
  std::vector<double> took_;  // ms
};

class Worker {
 public:
  Worker(std::string directory, const Series& series) : directory_(std::move(directory)), series_(series) {}

  Result<std::vector<Outcome>> run() {
    for (const auto step : {&Worker::write_in_a_row, &Worker::overwrite_at_random, &Worker::append_lines, &Worker::replace_files,
                            &Worker::make_files, &Worker::read_in_a_row, &Worker::read_files, &Worker::remove_files}) {
      if (Interruptible::asked()) return Errc::interrupted;
      outcomes_.push_back(TRY((this->*step)()));
    }
    return std::move(outcomes_);
  }

 private:
  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  std::string file_path(std::uint64_t number) const { return path(fmt::format("files/{}/{}", number % kFolders, number)); }
  Times begin(const std::string& work) const {
    series_.tell(work);
    return Times(series_.effort.seconds);
  }
  Result<Descriptor> open(const std::string& name, int flags) const {
    Descriptor file(::open(name.c_str(), flags | O_CLOEXEC, 0600));
    if (!file) return failed(name);
    return file;
  }
  // Most kernels tell no FUSE filesystem of syncfs(2) (docs/posix.md). The fsync that follows makes all of before durable on Varve.
  Status sync(const std::string& name) const {
    const Descriptor file = TRY(open(name, O_RDONLY));
    if (::syncfs(file.get()) != 0 || ::fsync(file.get()) != 0) return failed(name);
    return {};
  }

  // As far as time allows: the rest of the work is done on what there is then.
  Result<Outcome> write_in_a_row() {
    Times times = begin("write in a row");
    const std::string name = path("large");
    const Descriptor file = TRY(open(name, O_RDWR | O_CREAT));
    const auto write = [&](std::uint64_t i) { return write_at(file.get(), noise_.next(kPiece), i * kPiece, name); };
    TRY(times.repeat(series_.effort.file_bytes / kPiece, write));
    if (::fsync(file.get()) != 0) return failed(name);
    large_bytes_ = times.operations() * kPiece;
    return times.outcome("write in a row", "MiB/s", static_cast<double>(times.operations()));
  }

  Result<Outcome> overwrite_at_random() {
    Times times = begin("4 KiB at random + fdatasync");
    const std::string name = path("large");
    const Descriptor file = TRY(open(name, O_RDWR));
    TRY(times.repeat(~std::uint64_t{0}, [&](std::uint64_t i) -> Status {
      TRY(write_at(file.get(), noise_.next(kBlockSize), mix64(i + 1) % (large_bytes_ / kBlockSize) * kBlockSize, name));
      if (::fdatasync(file.get()) != 0) return failed(name);
      return {};
    }));
    return times.outcome("4 KiB at random + fdatasync", "/s", static_cast<double>(times.operations()));
  }

  Result<Outcome> append_lines() {
    constexpr std::size_t kLine = 100, kPartOfLog = 4;
    Times times = begin("line of a log + fsync");
    const std::string name = path("log");
    const Descriptor file = TRY(open(name, O_RDWR | O_CREAT));
    TRY(times.repeat(series_.effort.file_bytes / kPartOfLog / kLine, [&](std::uint64_t i) -> Status {
      TRY(write_at(file.get(), noise_.next(kLine), i * kLine, name));
      if (::fsync(file.get()) != 0) return failed(name);
      return {};
    }));
    return times.outcome("line of a log + fsync", "/s", static_cast<double>(times.operations()));
  }

  // As editors and package managers save a file.
  Result<Outcome> replace_files() {
    constexpr std::size_t kBytes = 100u << 10;
    Times times = begin("save a file of 100 KiB safely");
    const std::string name = path("saved"), next = path("saved.new");
    const Descriptor folder = TRY(open(directory_, O_RDONLY | O_DIRECTORY));
    TRY(times.repeat(~std::uint64_t{0}, [&](std::uint64_t) -> Status {
      const Descriptor file = TRY(open(next, O_RDWR | O_CREAT | O_TRUNC));
      TRY(write_at(file.get(), noise_.next(kBytes), 0, next));
      if (::fsync(file.get()) != 0 || ::rename(next.c_str(), name.c_str()) != 0 || ::fsync(folder.get()) != 0) return failed(name);
      return {};
    }));
    return times.outcome("save a file of 100 KiB safely", "/s", static_cast<double>(times.operations()));
  }

  Result<Outcome> make_files() {
    for (unsigned i = 0; i < kFolders; ++i) std::filesystem::create_directories(path(fmt::format("files/{}", i)));
    Times times = begin("new files of 1 to 16 KiB + sync");
    TRY(times.repeat(files_in(series_.effort.file_bytes), [&](std::uint64_t i) -> Status {
      const std::string name = file_path(i);
      const Descriptor file = TRY(open(name, O_RDWR | O_CREAT));
      return write_at(file.get(), noise_.next(bytes_of_file(i)), 0, name);
    }));
    TRY(sync(directory_));
    files_ = times.operations();
    return times.outcome("new files of 1 to 16 KiB + sync", "files/s", static_cast<double>(files_));
  }

  Status read_all_of(const std::string& name, std::uint64_t& bytes) {
    const Descriptor file = TRY(open(name, O_RDONLY));
    for (;;) {
      const ssize_t done = ::read(file.get(), piece_.data(), piece_.size());
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) return failed(name);
      if (done == 0) return {};
      bytes += static_cast<std::uint64_t>(done);
      if (Interruptible::asked()) return Errc::interrupted;
    }
  }

  Result<Outcome> read_in_a_row() {
    TRY(series_.forget_cached());
    Times times = begin("cold read of the large file");
    std::uint64_t bytes = 0;
    TRY(times.repeat(1, [&](std::uint64_t) { return read_all_of(path("large"), bytes); }));
    return times.outcome("cold read of the large file", "MiB/s", static_cast<double>(bytes) / kPiece);
  }

  Result<Outcome> read_files() {
    Times times = begin("cold read of the new files");
    std::uint64_t bytes = 0;
    TRY(times.repeat(files_, [&](std::uint64_t i) { return read_all_of(file_path(i), bytes); }));
    return times.outcome("cold read of the new files", "files/s", static_cast<double>(times.operations()));
  }

  Result<Outcome> remove_files() {
    Times times = begin("remove the new files + sync");
    TRY(times.repeat(files_, [&](std::uint64_t i) -> Status {
      if (::unlink(file_path(i).c_str()) != 0) return failed(file_path(i));
      return {};
    }));
    TRY(sync(directory_));
    return times.outcome("remove the new files + sync", "files/s", static_cast<double>(times.operations()));
  }

  const std::string directory_;
  const Series& series_;
  Noise noise_;
  std::vector<std::byte> piece_ = std::vector<std::byte>(kPiece);
  std::vector<Outcome> outcomes_;
  std::uint64_t large_bytes_ = 0, files_ = 0;
};

}  // namespace

Json to_json(const Outcome& outcome) {
  return {{"work", outcome.work}, {"unit", outcome.unit}, {"rate", outcome.rate}, {"operations", outcome.operations},
          {"median_ms", outcome.median_ms}, {"longest_ms", outcome.longest_ms}};
}

Result<std::vector<Outcome>> run_series(const std::string& directory, const Series& series) { return Worker(directory, series).run(); }

}  // namespace varve::tool
