#include "io/mem_device.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/errc.h"
#include "io/reactor.h"
#include "io/transfer.h"

namespace varve::io {

namespace {

// Closes the descriptor of load() and save().
struct File {
  int fd;
  ~File() {
    if (fd >= 0) ::close(fd);
  }
};

Error file_error(const std::string& path, const char* action) {
  return Error(errc_from_errno(errno), fmt::format("{}: cannot {}: {}", path, action, errno_text()));
}

bool all_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace

MemDevice::MemDevice(std::uint64_t size_bytes, std::string name)
    : MemDevice(MemStore(block_of(size_bytes)), std::move(name)) {}

MemDevice::MemDevice(MemStore store, std::string name) : name_(std::move(name)), store_(std::move(store)) {
  geometry_.size_bytes = store_.blocks() * kBlockSize;
  geometry_.supports_discard = true;
  geometry_.backend = "memory";
}

Result<std::unique_ptr<MemDevice>> MemDevice::load(const std::string& path) {
  const File file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat status {};
  if (file.fd < 0 || ::fstat(file.fd, &status) != 0) return file_error(path, "read");
  auto device = std::make_unique<MemDevice>(static_cast<std::uint64_t>(status.st_size), path);
  std::vector<std::byte> buffer(64 * kBlockSize);
  for (std::uint64_t offset = 0; offset < device->geometry_.size_bytes;) {
    const ssize_t got = ::pread(file.fd, buffer.data(), buffer.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return file_error(path, "read");
    const auto bytes = std::min<std::uint64_t>(static_cast<std::uint64_t>(got), device->geometry_.size_bytes - offset);
    const std::span<const std::byte> piece(buffer.data(), bytes);
    if (!all_zero(piece)) device->poke(offset, piece);
    offset += bytes;
  }
  return device;
}

Status MemDevice::save(const std::string& path) const {
  const MemStore image = store();
  const File file{::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)};
  if (file.fd < 0 || ::ftruncate(file.fd, static_cast<off_t>(geometry_.size_bytes)) != 0)
    return file_error(path, "write");
  for (std::uint64_t index = 0; index < image.blocks(); ++index) {
    const MemStore::BlockPtr block = image.block(index);
    if (!block || all_zero(block->bytes)) continue;
    ssize_t put;
    do {
      put = ::pwrite(file.fd, block->bytes.data(), kBlockSize, static_cast<off_t>(index * kBlockSize));
    } while (put < 0 && errno == EINTR);
    if (put != static_cast<ssize_t>(kBlockSize)) return file_error(path, "write");
  }
  return {};
}

std::unique_ptr<MemDevice> MemDevice::snapshot() const {
  return std::make_unique<MemDevice>(store(), name_);
}

MemStore MemDevice::store() const {
  const Lock lock(mutex_);
  return store_;
}

void MemDevice::submit(Reactor& reactor, IoRequest& request) {
  const auto carry_out = [](void* context, IoRequest& due, std::uint64_t) {
    due.error = static_cast<MemDevice*>(context)->execute(due);
  };
  request.intercept(carry_out, this);
  reactor.finish_later(request, 0);
}

void MemDevice::peek(std::uint64_t offset, std::span<std::byte> out) const {
  const Lock lock(mutex_);
  store_.read(offset, out);
}

void MemDevice::poke(std::uint64_t offset, std::span<const std::byte> data) {
  const Lock lock(mutex_);
  store_.write(offset, data);
}

Status MemDevice::set_length(std::uint64_t bytes) {
  const Lock lock(mutex_);
  store_.resize(block_of(bytes));
  geometry_.size_bytes = store_.blocks() * kBlockSize;
  return {};
}

int MemDevice::execute(IoRequest& request) {
  const Lock lock(mutex_);
  if (const int error = check_request(request, geometry_, false)) return error;
  std::uint64_t offset = request.offset;
  switch (request.kind) {
    case IoKind::read:
      for (const iovec& part : request.iov) {
        store_.read(offset, {static_cast<std::byte*>(part.iov_base), part.iov_len});
        offset += part.iov_len;
      }
      break;
    case IoKind::write:
      for (const iovec& part : request.iov) {
        store_.write(offset, {static_cast<const std::byte*>(part.iov_base), part.iov_len});
        offset += part.iov_len;
      }
      break;
    case IoKind::discard:
      store_.clear(block_of(offset), block_of(request.length));
      break;
    case IoKind::flush:
      break;
  }
  return 0;
}

}  // namespace varve::io
