#include "varve/care/clean_target.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/buffer.h"
#include "base/errc.h"
#include "control/mount_table.h"
#include "control/request_json.h"
#include "format/superblock.h"
#include "fs/filesystem.h"
#include "varve/volume/mount_client.h"
#include "varve/volume/own_mount.h"

namespace varve::tool {

namespace {

class Mounted final : public CleanTarget {
 public:
  explicit Mounted(std::string directory) : directory_(std::move(directory)) {}

  Status start(fs::CleanRequest request, const std::vector<std::string>& paths) override {
    MountClient client = TRY(MountClient::open(directory_));
    TRY(client.clean_report());  // other filesystems may know the ioctl
    struct stat mount {};
    if (::stat(directory_.c_str(), &mount) != 0) return failed(directory_);
    for (const std::string& path : paths) {
      struct stat file {};
      if (::lstat(path.c_str(), &file) != 0) return failed(path);
      if (file.st_dev != mount.st_dev) return Error(Errc::invalid, fmt::format("{}: not in the filesystem at {}", path, directory_));
      if (!S_ISREG(file.st_mode) && !S_ISDIR(file.st_mode))
        return Error(Errc::invalid, fmt::format("{}: neither a file nor a directory", path));
      request.roots.push_back(Ino{file.st_ino});
    }
    return client.clean(control::to_json(request));
  }
  Status stop() override {
    MountClient client = TRY(MountClient::open(directory_));
    return client.stop_clean();
  }
  // Anew each time: it must not keep the mount busy.
  Result<Json> state() override {
    MountClient client = TRY(MountClient::open(directory_));
    return client.clean_report();
  }

 private:
  static Error failed(const std::string& path) {
    return Error(errc_from_errno(errno), fmt::format("{}: {}", path, errno_text()));
  }
  const std::string directory_;
};

class Image final : public CleanTarget {
 public:
  explicit Image(OwnMount mount) : mount_(std::move(mount)) {}

  Status start(fs::CleanRequest request, const std::vector<std::string>& paths) override {
    for (const std::string& path : paths) request.roots.push_back(TRY(find(path)));
    return mount_.filesystem().start_clean(request);
  }
  Status stop() override {
    mount_.filesystem().stop_clean();
    return {};
  }
  Result<Json> state() override { return control::to_json(mount_.filesystem().clean_state()); }
  Status close() override { return mount_.close(); }

 private:
  Result<Ino> find(const std::string& path) {
    Ino at = kRootIno;
    for (std::size_t from = 0; from < path.size();) {
      const std::size_t to = std::min(path.find('/', from), path.size());
      const std::string name = path.substr(from, to - from);
      from = to + 1;
      if (name.empty() || name == ".") continue;
      fs::Operation operation(mount_.filesystem().engine(), {});
      auto found = fs::block_on(operation, [&] { return mount_.filesystem().lookup(operation, at, name); });
      if (!found.ok()) return Error(found.error().code(), fmt::format("{}: {}: {}", mount_.name(), path, found.error().message()));
      at = found->ino;
    }
    return at;
  }

  OwnMount mount_;
};

bool is_image(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  AlignedBuffer block = AlignedBuffer::zeroed(kBlockSize);
  file.read(reinterpret_cast<char*>(block.data()), kBlockSize);
  return file.good() && !format::decode_superblock(block.span()).fails_with(Errc::not_varve);  // it may be torn
}

}  // namespace

std::optional<std::string> mount_that_holds(const std::string& path) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::canonical(path, error);
  if (error || is_image(whole)) return std::nullopt;
  for (std::filesystem::path at = whole;; at = at.parent_path()) {
    if (const auto mount = control::find_mount(at)) return mount->is_varve() && at != whole ? std::optional<std::string>(at) : std::nullopt;
    if (at == at.root_path()) return std::nullopt;
  }
}

std::unique_ptr<CleanTarget> mounted_target(const std::string& directory) { return std::make_unique<Mounted>(directory); }

Result<std::unique_ptr<CleanTarget>> image_target(const std::string& path, bool dry_run) {
  return std::unique_ptr<CleanTarget>(std::make_unique<Image>(TRY(OwnMount::open(path, "varve clean", dry_run))));
}

}  // namespace varve::tool
