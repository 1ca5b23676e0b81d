#include "fragmenter.h"

#include <algorithm>
#include <fstream>
#include <random>
#include <sstream>
#include <stdexcept>

namespace varve::bench {

namespace {

using Kind = FileOperation::Kind;
constexpr std::uint64_t kKilo = 1024, kMega = 1024 * 1024;

struct Sizes {
  std::uint64_t least, most;
};
constexpr Sizes kSmall{1 * kKilo, 10 * kKilo}, kMedium{50 * kKilo, 500 * kKilo}, kLarge{1 * kMega, 10 * kMega};
constexpr Sizes kSmallUpdates{1 * kKilo, 5 * kKilo}, kMediumUpdates{10 * kKilo, 50 * kKilo};

class Fragmenter {
 public:
  Fragmenter(double scale, std::uint64_t seed) : scale_(scale), random_(seed) {}

  void create(double megabytes, Sizes sizes) {
    for (std::uint64_t left = total(megabytes); left > 0;) {
      const std::uint64_t length = std::min(left, draw(sizes));
      files_.push_back({next_, length});
      operations_.push_back({Kind::create, next_++, 0, length});
      left -= length;
    }
  }
  void remove(double share) {
    std::uint64_t all = 0;
    for (const File& file : files_) all += file.length;
    const auto wanted = static_cast<std::uint64_t>(share * static_cast<double>(all));
    for (std::uint64_t gone = 0; gone < wanted && !files_.empty();) {
      const auto at = files_.begin() + static_cast<std::ptrdiff_t>(random_() % files_.size());
      gone += at->length;
      operations_.push_back({Kind::remove, at->number, 0, 0});
      files_.erase(at);
    }
  }
  void update(double megabytes, Sizes sizes) {
    for (std::uint64_t left = total(megabytes); left > 0;) {
      const File& file = files_[random_() % files_.size()];
      const std::uint64_t length = std::min({left, draw(sizes), file.length});
      operations_.push_back({Kind::update, file.number, random_() % (file.length - length + 1), length});
      left -= length;
    }
  }
  std::vector<FileOperation> take() { return std::move(operations_); }

 private:
  struct File {
    std::uint64_t number, length;
  };
  std::uint64_t total(double megabytes) const {
    return static_cast<std::uint64_t>(megabytes * scale_ * static_cast<double>(kMega));
  }
  std::uint64_t draw(Sizes sizes) { return sizes.least + random_() % (sizes.most - sizes.least + 1); }

  const double scale_;
  std::mt19937_64 random_;
  std::vector<File> files_;
  std::vector<FileOperation> operations_;
  std::uint64_t next_ = 0;
};

const char* const kNames[] = {"create", "update", "remove"};

}  // namespace

std::vector<FileOperation> make_fragmentation(std::string_view sample, double scale, std::uint64_t seed) {
  Fragmenter f(scale, seed);
  const bool standard = sample == "standard", small = sample == "small";
  if (standard || sample == "coarse") {
    if (standard) f.create(5, kSmall);
    f.create(20, kMedium);
    f.create(75, kLarge);
    if (standard) f.update(1, kMediumUpdates), f.update(0.25, kSmallUpdates);
  } else if (small || sample == "medium") {
    f.create(10, small ? kSmall : kMedium);
    f.remove(0.2);
    f.update(5, small ? kSmallUpdates : kMediumUpdates);
  }
  return f.take();
}

void record(const std::vector<FileOperation>& operations, const std::string& path) {
  std::ofstream out(path);
  for (const FileOperation& op : operations) {
    out << kNames[static_cast<unsigned>(op.kind)] << ' ' << op.file;
    if (op.kind == Kind::update) out << ' ' << op.offset;
    if (op.kind != Kind::remove) out << ' ' << op.length;
    out << '\n';
  }
  if (!out.flush()) throw std::runtime_error("cannot write " + path);
}

std::vector<FileOperation> recorded(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot read " + path);
  std::vector<FileOperation> operations;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string name;
    FileOperation op;
    words >> name >> op.file;
    const auto* const at = std::find(std::begin(kNames), std::end(kNames), name);
    if (at == std::end(kNames)) throw std::runtime_error(path + ": no operation: " + line);
    op.kind = static_cast<Kind>(at - std::begin(kNames));
    if (op.kind == Kind::update) words >> op.offset;
    if (op.kind != Kind::remove) words >> op.length;
    if (!words) throw std::runtime_error(path + ": no operation: " + line);
    operations.push_back(op);
  }
  return operations;
}

std::map<std::uint64_t, ReplayedFile> replay(Rig& rig, const std::vector<FileOperation>& operations) {
  std::map<std::uint64_t, ReplayedFile> files;
  for (const FileOperation& op : operations) {
    const std::string name = std::to_string(op.file);
    if (op.kind == Kind::remove) {
      rig.remove(kRootIno, name);
      files.erase(op.file);
      continue;
    }
    if (op.kind == Kind::create) files[op.file] = {rig.make(kRootIno, name), op.length};
    rig.write(files.at(op.file).ino, op.offset, op.length);
  }
  return files;
}

}  // namespace varve::bench
