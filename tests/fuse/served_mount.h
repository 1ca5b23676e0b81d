// A filesystem in memory, served to a fake kernel by real serving threads.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>

#include <future>

#include "fuse/transport/device_transport.h"
#include "fuse/fake_kernel.h"
#include "daemon/server.h"
#include "io/mem_device.h"
#include "support/fs_fixture.h"

namespace varve::fuse {

class ServedMount {
 public:
  explicit ServedMount(Wishes wishes = {}, ServerOptions options = {.threads = 2}) {
    EXPECT_TRUE(test::make_image(device_, {}).ok());
    fs::Options fs_options;
    fs_options.count_references = true;
    fs_ = std::move(fs::Filesystem::mount(device_, fs_options)).value();
    SessionSettings settings{wishes, &Clock::system(), "/mnt", "memory"};
    settings.read_ahead_bytes = options.read_ahead_bytes();
    session_ = std::make_unique<Session>(*fs_, transport_, std::move(settings), [this](int error) { end_.set_value(error); });
    options.idle_threads = IdleThreads::off;
    server_ = std::make_unique<Server>(*session_, options);
  }
  ~ServedMount() {
    server_->stop();
    EXPECT_TRUE(fs_->unmount().ok());
  }

  // INIT as a current kernel sends it.
  void initialise() {
    fuse_init_in offer{};
    offer.major = 7;
    offer.minor = 45;
    offer.max_readahead = 131072;
    offer.flags = ~0U;
    const Reply reply = kernel_.call(FUSE_INIT, 0, bytes_of(offer));
    ASSERT_EQ(reply.error, 0);
    ASSERT_TRUE(session_->wait_initialised().ok());
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
    fs::Operation operation(fs_->engine(), fs::Caller{});
    ASSERT_TRUE(fs::block_on(operation, [&] { return fs_->setattr(operation, ino, change); }).ok());
  }

  FakeKernel& kernel() { return kernel_; }
  Session& session() { return *session_; }
  Server& server() { return *server_; }
  std::future<int> end() { return end_.get_future(); }

 private:
  io::MemDevice device_{64 << 20};
  FakeKernel kernel_;
  DeviceTransport transport_{kernel_.daemon_end()};
  std::promise<int> end_;
  std::unique_ptr<fs::Filesystem> fs_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Server> server_;
};

}  // namespace varve::fuse
