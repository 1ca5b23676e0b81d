#include "mkfs/probe.h"

#include <blkid/blkid.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <type_traits>

#include "base/buffer.h"

namespace varve::mkfs {

namespace {

// Of the start and the end: superblocks, labels and tables lie there.
constexpr std::uint64_t kEdgeBytes = 4 << 20;

// A file in memory with the size of the device and its edges, since the library reads descriptors only.
class Edges {
 public:
  Edges() : fd_(::memfd_create("varve-probe", MFD_CLOEXEC)) {}
  ~Edges() {
    if (fd_ >= 0) ::close(fd_);
  }
  Edges(const Edges&) = delete;
  Edges& operator=(const Edges&) = delete;

  int fd() const { return fd_; }

  Status copy(io::BlockDevice& device) {
    const std::uint64_t size = device.geometry().size_bytes;
    if (fd_ < 0 || ::ftruncate(fd_, static_cast<off_t>(size)) != 0) return errc_from_errno(errno);
    const std::uint64_t length = std::min(size, kEdgeBytes);
    TRY(copy(device, 0, length));
    return copy(device, size - length, length);
  }

 private:
  Status copy(io::BlockDevice& device, std::uint64_t offset, std::uint64_t length) {
    AlignedBuffer bytes(length);
    TRY(device.read(offset, bytes.span()));
    if (::pwrite(fd_, bytes.data(), length, static_cast<off_t>(offset)) != static_cast<ssize_t>(length))
      return errc_from_errno(errno);
    return {};
  }

  const int fd_;
};

struct FreeProbe {
  void operator()(blkid_probe probe) const { blkid_free_probe(probe); }
};
using Probe = std::unique_ptr<std::remove_pointer_t<blkid_probe>, FreeProbe>;

std::string value(const Probe& probe, const char* name) {
  const char* text = nullptr;
  return blkid_probe_lookup_value(probe.get(), name, &text, nullptr) == 0 && text ? text : "";
}

std::string description(const Probe& probe) {
  const std::string type = value(probe, "TYPE"), usage = value(probe, "USAGE");
  if (type.empty()) return fmt::format("a partition table of type {}", value(probe, "PTTYPE"));
  if (usage == "filesystem") return fmt::format("a filesystem of type {}", type);
  if (usage == "raid") return fmt::format("a member of a RAID or a pool, of type {}", type);
  if (usage == "crypto") return fmt::format("an encrypted volume of type {}", type);
  return fmt::format("content of type {}", type);
}

}  // namespace

Result<std::optional<std::string>> probe_content(io::BlockDevice& device) {
  Edges edges;
  TRY(edges.copy(device));
  const Probe probe(blkid_new_probe());
  if (!probe || blkid_probe_set_device(probe.get(), edges.fd(), 0, 0) != 0) return Errc::no_memory;
  blkid_probe_enable_superblocks(probe.get(), 1);
  // Damaged content is worth a question, too.
  blkid_probe_set_superblocks_flags(probe.get(), BLKID_SUBLKS_TYPE | BLKID_SUBLKS_USAGE | BLKID_SUBLKS_BADCSUM);
  blkid_probe_enable_partitions(probe.get(), 1);
  blkid_probe_set_partitions_flags(probe.get(), BLKID_PARTS_FORCE_GPT);
  if (blkid_do_probe(probe.get()) != 0) return std::optional<std::string>();
  return std::optional(description(probe));
}

}  // namespace varve::mkfs
