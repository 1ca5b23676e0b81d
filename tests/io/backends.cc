#include "io/backends.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "io/mem_device.h"
#include "io/nbd_server.h"
#include "remote/open_device.h"

namespace varve::io::test {

std::string TempImage::temp_directory() {
  const char* directory = std::getenv("TMPDIR");
  return directory && *directory ? directory : "/tmp";
}

TempImage::TempImage(std::uint64_t bytes, const std::string& directory) : path_(directory + "/varve-io-XXXXXX") {
  const int fd = ::mkstemp(path_.data());
  if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
    ADD_FAILURE() << "no image in " << directory << ": " << std::strerror(errno);
  }
  if (fd >= 0) ::close(fd);
}

TempImage::~TempImage() { ::unlink(path_.c_str()); }

std::string name_of(Backend backend) {
  switch (backend) {
    case Backend::uring:
      return "uring";
    case Backend::threads:
      return "threads";
    case Backend::uring_buffered:
      return "uring_buffered";
    case Backend::threads_buffered:
      return "threads_buffered";
    case Backend::uring_tmpfs:
      return "uring_tmpfs";
    case Backend::memory:
      return "memory";
    case Backend::threads_on_ring:
      return "threads_on_ring";
    case Backend::uring_on_poll:
      return "uring_on_poll";
    case Backend::nbd:
      return "nbd";
    case Backend::nbd_on_poll:
      return "nbd_on_poll";
    case Backend::rbd:
      return "rbd";
  }
  return "?";
}

// An image of the cluster of which the environment names the ceph.conf: VARVE_TEST_CEPH (tests/mount/ceph_test.py).
class RbdDisk {
 public:
  RbdDisk(std::string conf, std::uint64_t bytes) : conf_(std::move(conf)), name_("rbd/contract" + std::to_string(::getpid())) {
    EXPECT_TRUE(run("create --size " + std::to_string(bytes) + "B " + name_));
  }
  ~RbdDisk() { EXPECT_TRUE(run("rm --no-progress " + name_)); }
  RbdDisk(const RbdDisk&) = delete;
  RbdDisk& operator=(const RbdDisk&) = delete;

  std::string uri() const { return "rbd:" + name_ + ":conf=" + conf_; }

 private:
  bool run(const std::string& words) const { return std::system(("rbd -c '" + conf_ + "' " + words).c_str()) == 0; }

  std::string conf_, name_;
};

Opened::Opened() = default;
Opened::Opened(Opened&&) noexcept = default;
Opened& Opened::operator=(Opened&&) noexcept = default;
Opened::~Opened() = default;

Opened open_backend(Backend backend, std::uint64_t bytes) {
  Opened opened;
  if (backend == Backend::memory) {
    opened.device = std::make_unique<MemDevice>(bytes);
    return opened;
  }
  OpenOptions options;
  options.force_threads = backend == Backend::threads || backend == Backend::threads_buffered || backend == Backend::threads_on_ring;
  options.buffered = backend == Backend::uring_buffered || backend == Backend::threads_buffered;
  const auto skip = [&](const std::string& why) {
    [&] { GTEST_SKIP() << why; }();
    return Opened();
  };
  if (backend == Backend::rbd) {
    const char* conf = std::getenv("VARVE_TEST_CEPH");
    if (!conf) return skip("no cluster is named: ctest -R mount_ceph starts one");
    opened.disk = std::make_unique<RbdDisk>(conf, bytes);
    auto device = remote::open_device(opened.disk->uri(), options);
    if (!device.ok()) ADD_FAILURE() << device.error().message();
    else opened.device = std::move(device).value();
    return opened;
  }
  const bool wants_ring = backend != Backend::nbd && backend != Backend::nbd_on_poll && !options.force_threads;
  if (wants_ring && Reactor::probe_ring() != 0) return skip("no io_uring here");
  if (backend == Backend::nbd || backend == Backend::nbd_on_poll) {
    if (!NbdServer::is_there()) return skip("no nbdkit here, or no libnbd in this build");
    opened.server = std::make_unique<NbdServer>(std::vector<std::string>{"memory", std::to_string(bytes)});
    auto device = remote::open_device(opened.server->uri(), options);
    if (!device.ok()) ADD_FAILURE() << device.error().message();
    else opened.device = std::move(device).value();
    return opened;
  }
  const bool tmpfs = backend == Backend::uring_tmpfs;
  if (tmpfs && ::access("/dev/shm", W_OK) != 0) return skip("no /dev/shm");
  opened.image = std::make_unique<TempImage>(bytes, tmpfs ? "/dev/shm" : TempImage::temp_directory());
  auto device = remote::open_device(opened.image->path(), options);
  if (!device.ok()) {
    ADD_FAILURE() << device.error().message();
  } else {
    opened.device = std::move(device).value();
  }
  return opened;
}

std::unique_ptr<Reactor> make_reactor(Backend backend, unsigned depth) {
  const bool without_ring = backend == Backend::threads || backend == Backend::threads_buffered ||
                            backend == Backend::memory || backend == Backend::uring_on_poll || backend == Backend::nbd_on_poll;
  return Reactor::make(without_ring ? ReactorKind::poll : ReactorKind::best, depth);
}

void drain(Reactor& reactor) {
  while (reactor.in_flight() > 0) reactor.wait(-1);
}

IoRequest& Batch::add(IoKind kind, std::uint64_t block, std::size_t blocks) {
  IoRequest& request = requests_.emplace_back();
  AlignedBuffer& buffer = buffers_.emplace_back(blocks * kBlockSize);
  request.kind = kind;
  request.offset = block * kBlockSize;
  if (kind == IoKind::read || kind == IoKind::write) request.add(buffer.data(), buffer.size());
  request.done = [this](IoRequest&) { ++completed_; };
  return request;
}

IoRequest& Batch::read(std::uint64_t block, std::size_t blocks) { return add(IoKind::read, block, blocks); }

IoRequest& Batch::write(std::uint64_t block, std::uint64_t seed, std::size_t blocks) {
  IoRequest& request = add(IoKind::write, block, blocks);
  fill_pattern(buffers_.back().data(), block, seed, blocks);
  return request;
}

IoRequest& Batch::flush() { return add(IoKind::flush, 0, 0); }

IoRequest& Batch::discard(std::uint64_t block, std::uint64_t blocks) {
  IoRequest& request = add(IoKind::discard, block, 0);
  request.length = blocks * kBlockSize;
  return request;
}

void Batch::submit_all(BlockDevice& device, Reactor& reactor) {
  for (IoRequest& request : requests_) device.submit(reactor, request);
}

std::size_t Batch::failed() const {
  return static_cast<std::size_t>(
      std::count_if(requests_.begin(), requests_.end(), [](const IoRequest& request) { return request.error != 0; }));
}

namespace {

std::uint64_t word(std::uint64_t block, std::uint64_t seed, std::size_t index) {
  return (block * 0x9E3779B97F4A7C15ULL) ^ (seed << 32) ^ index;
}

}  // namespace

void fill_pattern(std::byte* data, std::uint64_t block, std::uint64_t seed, std::size_t blocks) {
  constexpr std::size_t kWords = kBlockSize / sizeof(std::uint64_t);
  for (std::size_t i = 0; i < blocks * kWords; ++i) {
    const std::uint64_t value = word(block + i / kWords, seed, i % kWords);
    std::memcpy(data + i * sizeof value, &value, sizeof value);
  }
}

bool has_pattern(const std::byte* data, std::uint64_t block, std::uint64_t seed, std::size_t blocks) {
  AlignedBuffer expected(blocks * kBlockSize);
  fill_pattern(expected.data(), block, seed, blocks);
  return std::memcmp(data, expected.data(), expected.size()) == 0;
}

bool is_zero(const std::byte* data, std::size_t bytes) {
  return std::all_of(data, data + bytes, [](std::byte b) { return b == std::byte{0}; });
}

Status put(BlockDevice& device, std::uint64_t block, std::uint64_t seed, std::size_t blocks) {
  AlignedBuffer data(blocks * kBlockSize);
  fill_pattern(data.data(), block, seed, blocks);
  return device.write(block * kBlockSize, data.span());
}

bool block_has(BlockDevice& device, std::uint64_t block, std::uint64_t seed) {
  AlignedBuffer data(kBlockSize);
  EXPECT_TRUE(device.read(block * kBlockSize, data.span()).ok());
  return seed ? has_pattern(data.data(), block, seed) : is_zero(data.data(), data.size());
}

bool block_has(const MemDevice& device, std::uint64_t block, std::uint64_t seed) {
  AlignedBuffer data(kBlockSize);
  device.peek(block * kBlockSize, data.span());
  return seed ? has_pattern(data.data(), block, seed) : is_zero(data.data(), data.size());
}

}  // namespace varve::io::test
