// An export of an NBD server, by libnbd. The rules are in nbd_link.h: what is kept, what is repeated, when it has failed.
//
// One thread of the device's own has all connections. The reactors of the submitting threads could watch the sockets, but a connection
// serves many of them, of which some live for one request only. And somebody must notice a lost connection, connect again and repeat
// what was written while no reactor waits for anything.
#pragma once

#include <atomic>
#include <boost/intrusive/slist.hpp>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "io/block_device.h"
#include "remote/nbd_link.h"

namespace varve::remote {

// Thread-safe. All requests must have ended before its destruction.
class NbdDevice : public io::BlockDevice {
 public:
  // Connects. Errc::read_only when the export may not be written; Errc::unsupported when nothing written there could be made safe.
  static Result<std::unique_ptr<NbdDevice>> open(const NbdSettings& settings, io::Access access);
  ~NbdDevice() override;

  const io::Geometry& geometry() const override { return geometry_; }
  const std::string& name() const override { return name_; }
  bool read_only() const override { return read_only_; }
  void submit(io::Reactor& reactor, io::IoRequest& request) override;
  std::string refusal() const override { return link_.failure(); }
  std::optional<io::Connection> connection() const override { return link_.connection(); }
  void ask(io::WriteGuard* guard) override { link_.ask(guard); }
  std::uint64_t delivery_ns() const override { return kDeliveryNs; }

 private:
  using Line = boost::intrusive::slist<io::RingEntry, boost::intrusive::cache_last<true>, boost::intrusive::constant_time_size<false>>;

  NbdDevice(const NbdSettings& settings, const NbdExport& facts, std::unique_ptr<NbdConnection> first, io::Access access);
  void run();
  bool take_arrivals();  // false: it is to end
  void wake();

  const std::string name_;
  const bool read_only_;
  io::Geometry geometry_;
  NbdLink link_;  // the thread's
  const int wake_;
  Mutex mutex_;
  Line arrived_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace varve::remote
