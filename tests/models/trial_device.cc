#include "trial_device.h"

#include <algorithm>
#include <cerrno>

#include "io/reactor.h"
#include "models/flash_device.h"

namespace varve::bench::test {

TrialDevice::TrialDevice(std::unique_ptr<DeviceModel> model, std::uint64_t before) : model_(std::move(model)), before_(before) {
  geometry_.size_bytes = model_->facts().size - before;
  geometry_.before = before;
  geometry_.is_block_device = true;
}

void TrialDevice::submit(io::Reactor& reactor, io::IoRequest& request) { reactor.finish_later(request, serve(request)); }

int TrialDevice::serve(const io::IoRequest& request) {
  static constexpr Op kKinds[] = {Op::read, Op::write, Op::flush, Op::discard};
  if (fail_after-- == 0) return EIO;
  const Op op = kKinds[static_cast<std::size_t>(request.kind)];
  const Request asked{op, op == Op::flush ? 0 : request.offset + before_, request.length, request.durable};
  if (asked.end() > model_->facts().size) return ENOSPC;
  if (op == Op::write) {
    first_ = std::min(first_, request.offset);
    last_ = std::max(last_, request.offset + request.length);
  }
  const std::uint64_t ns = model_->serve(asked, clock_.elapsed_ns());
  clock_.advance(disturb ? disturb(ns, op) : ns);
  return 0;
}

FlashWork AnywhereFtl::write(std::uint64_t first, std::uint64_t pages) {
  FlashWork work;
  work.programmed = pages;
  for (std::uint64_t unit = first / unit_pages_; unit <= (first + pages - 1) / unit_pages_; ++unit) {
    const auto found = std::ranges::find(open_, unit);
    if (found != open_.end()) open_.erase(found);
    open_.push_front(unit);
    if (open_.size() <= open_units_) continue;
    open_.pop_back();
    work.programmed += unit_pages_;
    work.copied += unit_pages_;
    ++work.erases;
  }
  return work;
}

std::unique_ptr<DeviceModel> card_with(std::uint64_t size, std::unique_ptr<Ftl> ftl) {
  constexpr double kUs = 1e-6, kMB = 1e6;
  const FlashTiming timing{.read_request = 400 * kUs, .write_request = 400 * kUs, .scattered_read = 300 * kUs, .read_rate = 20 * kMB,
                           .program_rate = 15 * kMB, .copy_rate = 15 * kMB, .erase = 2000 * kUs};
  return std::make_unique<FlashDevice>(Facts{.name = "card", .size = size}, timing, std::move(ftl));
}

}  // namespace varve::bench::test
