#include "remote/nbd_device.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <vector>

#include "io/reactor.h"
#include "io/transfer.h"
#include "remote/nbd_trust.h"
#include "remote/open_nbd.h"

namespace varve::remote {

namespace {

io::Geometry geometry_of(const NbdExport& facts) {
  io::Geometry geometry;
  geometry.size_bytes = facts.size / kBlockSize * kBlockSize;
  geometry.supports_discard = facts.can_trim;
  geometry.direct = true;
  geometry.may_be_shared = true;
  geometry.backend = "nbd";
  return geometry;
}

Status check(const NbdExport& facts, const std::string& name, io::Access access) {
  if (facts.least > kBlockSize)
    return Error(Errc::unsupported, fmt::format("{}: the server takes requests of {} bytes and more only; Varve's blocks have {}", name,
                                                facts.least, kBlockSize));
  if (access == io::Access::read_only) return {};
  if (facts.read_only)
    return Error(Errc::read_only, fmt::format("{}: the export is read-only: only read-only use is possible, as mount -o ro", name));
  if (!facts.can_flush)
    return Error(Errc::unsupported, fmt::format("{}: the server has no flush, so that nothing written there could be made safe: only "
                                                "read-only use is possible (see the server's options)", name));
  return {};
}

}  // namespace

Result<std::unique_ptr<io::BlockDevice>> open_nbd(const std::string& name, const io::OpenOptions& options) {
  NbdSettings settings;
  settings.uri = name;
  settings.patience_ns = std::uint64_t{options.patience_s} * 1'000'000'000;
  return std::unique_ptr<io::BlockDevice>(TRY(NbdDevice::open(settings, options.access)));
}

Result<std::unique_ptr<NbdDevice>> NbdDevice::open(const NbdSettings& settings, io::Access access) {
  TRY(check_trust(settings.uri));
  auto connected = NbdConnection::connect(settings.uri, settings.patience_ns);
  if (!connected.ok()) {
    const std::string why = connected.error().message();
    return Error(connected.error().code(), fmt::format("{}: no connection: {}: {}", settings.uri, why, remedy_for(why)));
  }
  std::unique_ptr<NbdConnection> first = std::move(connected).value();
  const NbdExport facts = first->facts();
  TRY(check(facts, settings.uri, access));
  return std::unique_ptr<NbdDevice>(new NbdDevice(settings, facts, std::move(first), access));
}

NbdDevice::NbdDevice(const NbdSettings& settings, const NbdExport& facts, std::unique_ptr<NbdConnection> first, io::Access access)
    : name_(settings.uri),
      read_only_(access == io::Access::read_only),
      geometry_(geometry_of(facts)),
      link_(settings, facts, std::move(first)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  sigset_t all, before;  // signals are for the program's threads
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

NbdDevice::~NbdDevice() {
  {
    const Lock lock(mutex_);
    stopping_ = true;
  }
  wake();
  thread_.join();
  if (wake_ >= 0) ::close(wake_);
}

void NbdDevice::wake() {
  const std::uint64_t one = 1;
  (void)!::write(wake_, &one, sizeof one);
}

void NbdDevice::submit(io::Reactor& reactor, io::IoRequest& request) {
  if (const int error = io::check_request(request, geometry_, read_only_)) return reactor.finish_later(request, error);
  reactor.begin_elsewhere(request);
  bool was_empty = false;
  {
    const Lock lock(mutex_);
    was_empty = arrived_.empty();
    arrived_.push_back(request);
  }
  if (was_empty) wake();
}

bool NbdDevice::take_arrivals() {
  Line arrived;
  bool stopping = false;
  {
    const Lock lock(mutex_);
    arrived.swap(arrived_);
    stopping = stopping_;
  }
  while (!arrived.empty()) {
    auto& request = static_cast<io::IoRequest&>(arrived.front());
    arrived.pop_front();
    link_.add(request);
  }
  return !stopping || !link_.is_idle();
}

void NbdDevice::run() {
  pthread_setname_np(pthread_self(), "varve-nbd");
  std::vector<pollfd> waits;
  while (take_arrivals()) {
    link_.turn();
    waits.assign(1, {wake_, POLLIN, 0});
    link_.list(waits);
    ::poll(waits.data(), waits.size(), link_.wait_ms());
    std::uint64_t count = 0;
    if (waits[0].revents) (void)!::read(wake_, &count, sizeof count);
    link_.notify(waits, 1);
  }
}

}  // namespace varve::remote
