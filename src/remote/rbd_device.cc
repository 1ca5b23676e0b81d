#include "remote/rbd_device.h"

#include <fmt/format.h>
#include <pthread.h>

#include <cerrno>
#include <csignal>
#include <new>
#include <utility>

#include "base/logging.h"
#include "io/reactor.h"
#include "io/transfer.h"
#include "remote/open_rbd.h"

namespace varve::remote {

namespace {

constexpr std::uint32_t kDiscardUnit = 64 * 1024;  // librbd leaves smaller pieces as they are

bool is_no_read(const io::IoRequest& request) { return request.kind != io::IoKind::read; }

// Signals are for the program's threads, not for those that librados begins.
class WithoutSignals {
 public:
  WithoutSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~WithoutSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  WithoutSignals(const WithoutSignals&) = delete;
  WithoutSignals& operator=(const WithoutSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

Result<std::unique_ptr<io::BlockDevice>> open_rbd(const std::string& name, const io::OpenOptions& options) {
  return std::unique_ptr<io::BlockDevice>(TRY(RbdDevice::open(name, options.access, options.patience_s)));
}

Result<std::unique_ptr<RbdDevice>> RbdDevice::open(const std::string& name, io::Access access, unsigned patience_s) {
  const WithoutSignals masked;
  auto image = TRY(RbdImage::open(name, access == io::Access::read_only, patience_s));
  const std::uint64_t bytes = TRY(image->size());
  return std::unique_ptr<RbdDevice>(new RbdDevice(name, access, patience_s, std::move(image), bytes));
}

RbdDevice::RbdDevice(std::string name, io::Access access, unsigned patience_s, std::unique_ptr<RbdImage> image, std::uint64_t bytes)
    : name_(std::move(name)), read_only_(access == io::Access::read_only), patience_s_(patience_s), image_(std::move(image)) {
  geometry_.size_bytes = bytes / kBlockSize * kBlockSize;
  geometry_.supports_discard = true;
  geometry_.discard_unit = kDiscardUnit;
  geometry_.direct = true;
  const auto parsed = parse_rbd_name(name_);
  geometry_.may_be_shared = !parsed.ok() || parsed->snapshot.empty();  // a snapshot stays as it is
  geometry_.backend = "rbd";
}

std::string RbdDevice::refusal() const {
  const Lock lock(mutex_);
  return failure_;
}

Result<bool> RbdDevice::shut_out(io::ShutOut others) {
  const WithoutSignals masked;
  TRY(image_->lock(others));
  return true;
}

bool RbdDevice::is_locked_by_another() {
  const WithoutSignals masked;
  return read_only_ && image_->has_writer();
}

Status RbdDevice::look_again() {
  geometry_.size_bytes = TRY(image_->size()) / kBlockSize * kBlockSize;
  return {};
}

void RbdDevice::submit(io::Reactor& reactor, io::IoRequest& request) {
  if (const int error = io::check_request(request, geometry_, read_only_)) return reactor.finish_later(request, error);
  if (is_no_read(request) && !refusal().empty()) return reactor.finish_later(request, EIO);
  auto sent = std::make_unique<Sent>(Sent{this, &request});
  rbd_completion_t completion = nullptr;
  if (image_->library().requests.create_completion(sent.get(), &RbdDevice::answered, &completion) < 0) throw std::bad_alloc();
  reactor.begin_elsewhere(request);
  if (const int result = send(request, completion); result < 0) {  // it will not be answered
    image_->library().requests.release(completion);
    return finish(request, result);
  }
  (void)sent.release();  // NOLINT: answered() has it
}

int RbdDevice::send(io::IoRequest& request, rbd_completion_t completion) {
  const RbdLibrary& library = image_->library();
  const auto pieces = static_cast<int>(request.iov.size());
  switch (request.kind) {
    case io::IoKind::read:
      return library.requests.readv(image_->handle(), request.iov.data(), pieces, request.offset, completion);
    case io::IoKind::write:
      return library.requests.writev(image_->handle(), request.iov.data(), pieces, request.offset, completion);
    case io::IoKind::flush:
      return library.requests.flush(image_->handle(), completion);
    case io::IoKind::discard:
      return library.requests.discard(image_->handle(), request.offset, request.length, completion);
  }
  return -EINVAL;
}

void RbdDevice::answered(rbd_completion_t completion, void* context) {
  const std::unique_ptr<Sent> sent(static_cast<Sent*>(context));
  const RbdLibrary& library = sent->device->image_->library();
  const std::int64_t result = library.requests.return_value(completion);
  library.requests.release(completion);
  sent->device->finish(*sent->request, result);
}

void RbdDevice::finish(io::IoRequest& request, std::int64_t result) {
  const bool is_short = request.kind == io::IoKind::read && result >= 0 && static_cast<std::uint64_t>(result) != request.length;
  const int error = is_short ? EIO : result < 0 ? static_cast<int>(-result) : 0;
  request.reactor()->finish_from_elsewhere(request, judge(request, error));  // after that the device may be gone
}

// What an error says about the device, and the error for the request.
int RbdDevice::judge(const io::IoRequest& request, int error) {
  if (error == ESHUTDOWN) {
    fail("another Ceph client has taken the image over, and the cluster refuses this one (it is on its blocklist)");
    return EIO;
  }
  if (error == EROFS && is_no_read(request)) {
    fail("the image's exclusive lock has been lost to another Ceph client");
    return EIO;
  }
  if (error != ETIMEDOUT) return error;
  if (!read_only_) fail(fmt::format("no answer for {} s", patience_s_));
  image_->gave_up();
  return EIO;
}

void RbdDevice::fail(const std::string& why) {
  const Lock lock(mutex_);
  if (!failure_.empty()) return;
  log_error("{}: {}: nothing is written any more", name_, why);
  failure_ = fmt::format("{}: {}", name_, why);
}

}  // namespace varve::remote
