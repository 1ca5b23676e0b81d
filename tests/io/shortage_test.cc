// Requests that want a thread where there is none to be had.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "io/backends.h"
#include "io/file_device.h"

namespace varve::io::test {
namespace {

constexpr std::uint64_t kImageBytes = 1 << 20;
constexpr std::uint64_t kRequests = 20;

void limit_threads(rlim_t most) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NPROC, &limit) != 0) std::_Exit(2);
  limit.rlim_cur = std::min(most, limit.rlim_max);
  if (::setrlimit(RLIMIT_NPROC, &limit) != 0) std::_Exit(3);
}

// The limit does not hold for root.
void drop_privileges() {
  constexpr uid_t kNobody = 65534;
  if (::geteuid() == 0 && ::setresuid(kNobody, kNobody, kNobody) != 0) std::_Exit(4);
}

OpenFile image_as_device(const TempImage& image) {
  OpenFile file;
  file.fd = ::open(image.path().c_str(), O_RDWR | O_CLOEXEC);
  file.name = "image";
  file.geometry.size_bytes = kImageBytes;
  file.geometry.is_block_device = file.geometry.supports_discard = true;
  return file;
}

bool writes_arrive(BlockDevice& device, Reactor& reactor, std::uint64_t seed) {
  Batch writes;
  for (std::uint64_t block = 0; block < kRequests; ++block) writes.write(block, seed);
  writes.submit_all(device, reactor);
  reactor.kick();
  if (writes.completed() > 0) return false;  // never from there
  drain(reactor);
  Batch reads;
  for (std::uint64_t block = 0; block < kRequests; ++block) reads.read(block);
  reads.submit_all(device, reactor);
  drain(reactor);
  for (std::uint64_t block = 0; block < kRequests; ++block)
    if (!has_pattern(reads.data(block), block, seed)) return false;
  return writes.completed() == kRequests && reads.completed() == kRequests && writes.failed() + reads.failed() == 0;
}

// What follows ends with 0 if all is well. Where something throws, its reactor would wait for ever for what it lost.

[[noreturn]] void go_through_threads(const TempImage& image) noexcept {
  FileDevice device(image_as_device(image), false);
  const auto reactor = Reactor::make();
  drop_privileges();
  limit_threads(0);
  if (!writes_arrive(device, *reactor, 1)) std::_Exit(5);
  limit_threads(RLIM_INFINITY);
  if (!writes_arrive(device, *reactor, 2)) std::_Exit(6);
  std::_Exit(0);
}

int error_of_discard(BlockDevice& device, Reactor& reactor) {
  Batch batch;
  batch.discard(0, 1);
  batch.submit_all(device, reactor);
  reactor.kick();
  if (batch.completed() > 0) std::_Exit(7);
  drain(reactor);
  return batch.completed() == 1 ? batch[0].error : -1;
}

[[noreturn]] void discard_beside_a_ring(const TempImage& image) noexcept {
  FileDevice device(image_as_device(image), true);
  device.no_ring_discards();
  const auto reactor = Reactor::make();
  drop_privileges();
  limit_threads(0);
  if (error_of_discard(device, *reactor) != ENOTTY) std::_Exit(8);  // not really a block device
  if (!writes_arrive(device, *reactor, 1)) std::_Exit(9);
  limit_threads(RLIM_INFINITY);
  if (error_of_discard(device, *reactor) != ENOTTY) std::_Exit(10);
  std::_Exit(0);
}

TEST(NoThread, RequestsAreCarriedOutByWhoeverWaits) {
  const TempImage image(kImageBytes);
  EXPECT_EXIT(go_through_threads(image), ::testing::ExitedWithCode(0), "");
}

TEST(NoThread, ADiscardIsCarriedOutByWhoeverWaits) {
  if (Reactor::probe_ring() != 0) GTEST_SKIP() << "no io_uring here";
  const TempImage image(kImageBytes);
  EXPECT_EXIT(discard_beside_a_ring(image), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace varve::io::test
