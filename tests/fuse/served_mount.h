// A filesystem in memory, served to a fake kernel, or through a transport of the test's own, by real serving threads.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>

#include <future>

#include "daemon/server.h"
#include "fuse/fake_kernel.h"
#include "fuse/transport/device_transport.h"
#include "io/mem_device.h"
#include "support/fs_fixture.h"

namespace varve::fuse {

// INIT as a current kernel sends it.
inline fuse_init_in offer_of_a_kernel() {
  fuse_init_in offer{};
  offer.major = 7;
  offer.minor = 45;
  offer.max_readahead = 131072;
  offer.flags = ~0U;
  return offer;
}

// `transport` must outlive it.
class ServedFilesystem {
 public:
  ServedFilesystem(Transport& transport, Wishes wishes, daemon::ServerOptions options, fs::Options fs_options = {}) {
    EXPECT_TRUE(test::make_image(device_, {}).ok());
    fs_options.count_references = true;
    fs_ = std::move(fs::Filesystem::mount(device_, fs_options)).value();
    SessionSettings settings{wishes, &Clock::system(), "/mnt", "memory"};
    settings.read_ahead_bytes = options.read_ahead_bytes();
    session_ = std::make_unique<Session>(*fs_, transport, std::move(settings), [this](int error) { end_.set_value(error); });
    options.idle_threads = daemon::IdleThreads::off;
    server_ = std::make_unique<daemon::Server>(*session_, options);
  }
  ~ServedFilesystem() {
    server_->stop();
    const bool has_failed = fs_->read_only();  // and cannot end well
    EXPECT_EQ(fs_->unmount().ok(), !has_failed);
  }
  ServedFilesystem(const ServedFilesystem&) = delete;
  ServedFilesystem& operator=(const ServedFilesystem&) = delete;

  fs::Filesystem& fs() { return *fs_; }
  Session& session() { return *session_; }
  daemon::Server& server() { return *server_; }
  std::future<int> end() { return end_.get_future(); }

 private:
  io::MemDevice device_{64 << 20};
  std::promise<int> end_;
  std::unique_ptr<fs::Filesystem> fs_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<daemon::Server> server_;
};

class ServedMount {
 public:
  explicit ServedMount(Wishes wishes = {}, daemon::ServerOptions options = {.threads = 2}, fs::Options fs_options = {})
      : served_(transport_, std::move(wishes), std::move(options), std::move(fs_options)) {}

  void initialise(const fuse_init_in& offer = offer_of_a_kernel()) {
    const Reply reply = kernel_.call(FUSE_INIT, 0, bytes_of(offer));
    ASSERT_EQ(reply.error, 0);
    ASSERT_TRUE(session().wait_initialised().ok());
  }

  fuse_entry_out create(std::uint64_t parent, const std::string& name) {
    const fuse_mknod_in in{0100644, 0, 0, 0};
    const Reply reply = kernel_.call(FUSE_MKNOD, parent, bytes_of(in) + name_bytes(name));
    EXPECT_EQ(reply.error, 0);
    return reply.as<fuse_entry_out>();
  }

  // Past the rules for which caller may, and for what is still given.
  void set_flags(Ino ino, std::uint32_t flags) {
    fs::AttrChange change;
    change.flags = flags;
    fs::Filesystem& mounted = served_.fs();
    fs::Operation operation(mounted.operations(), fs::Caller{});
    ASSERT_TRUE(fs::block_on(operation, [&] { return mounted.setattr(operation, ino, change); }).ok());
  }

  FakeKernel& kernel() { return kernel_; }
  fs::Filesystem& fs() { return served_.fs(); }
  Session& session() { return served_.session(); }
  daemon::Server& server() { return served_.server(); }
  std::future<int> end() { return served_.end(); }

 private:
  FakeKernel kernel_;
  DeviceTransport transport_{kernel_.daemon_end()};
  ServedFilesystem served_;
};

}  // namespace varve::fuse
