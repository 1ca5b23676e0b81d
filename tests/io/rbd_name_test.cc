// Names of Ceph's images, as users of qemu and of the rbd command write them.
#include "remote/rbd_name.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "io/block_device.h"
#include "remote/network_name.h"
#include "remote/open_device.h"

namespace varve::io::test {
namespace {

remote::RbdName parse(const std::string& name) {
  auto parsed = remote::parse_rbd_name(name);
  EXPECT_TRUE(parsed.ok()) << parsed.error().message();
  return parsed.ok() ? *parsed : remote::RbdName();
}

TEST(RbdName, Parts) {
  const remote::RbdName plain = parse("rbd:pool/image");
  EXPECT_EQ(plain.pool, "pool");
  EXPECT_EQ(plain.image, "image");
  EXPECT_TRUE(plain.space.empty() && plain.snapshot.empty() && plain.conf.empty() && plain.id.empty() && plain.settings.empty());

  const remote::RbdName all = parse("rbd:pool/space/image@monday:conf=/etc/ceph/two.conf:id=varve:mon_host=[\\:\\:1]\\:6789:keyring=/k");
  EXPECT_EQ(all.space, "space");
  EXPECT_EQ(all.image, "image");
  EXPECT_EQ(all.snapshot, "monday");
  EXPECT_EQ(all.conf, "/etc/ceph/two.conf");
  EXPECT_EQ(all.id, "varve");
  ASSERT_EQ(all.settings.size(), 2U);
  EXPECT_EQ(all.settings[0].first, "mon_host");
  EXPECT_EQ(all.settings[0].second, "[::1]:6789");
  EXPECT_EQ(all.settings[1].second, "/k");
}

TEST(RbdName, SignsInNames) {
  const remote::RbdName name = parse("rbd:p\\/q/im\\@ge@s\\:1:conf=/a\\\\b=c");
  EXPECT_EQ(name.pool, "p/q");
  EXPECT_EQ(name.image, "im@ge");
  EXPECT_EQ(name.snapshot, "s:1");
  EXPECT_EQ(name.conf, "/a\\b=c");
}

TEST(RbdName, Mistakes) {
  for (const std::string name : {"rbd:", "rbd:pool", "rbd:/image", "rbd:pool/", "rbd:pool/image@", "rbd:pool/a/b/c", "rbd:pool/image:conf",
                                 "rbd:pool/image:=x", "rbd:pool/image@snap@more", "rbd:pool/image@snap/more", "pool/image"}) {
    const auto parsed = remote::parse_rbd_name(name);
    ASSERT_TRUE(parsed.fails_with(Errc::invalid)) << name;
    EXPECT_EQ(parsed.error().message().find(name), 0U) << parsed.error().message();
  }
}

TEST(RbdName, IsNoPath) {
  EXPECT_TRUE(remote::is_network_name("rbd:pool/image"));
  EXPECT_FALSE(remote::is_network_name("./rbd:pool/image"));
  EXPECT_EQ(remote::absolute_name("rbd:pool/image"), "rbd:pool/image");
}

// The daemon goes on in another folder.
TEST(NbdName, PathsInItBecomeWhole) {
  const std::string here = std::filesystem::current_path().string();
  EXPECT_EQ(remote::absolute_name("nbd+unix:///?socket=disk.sock"), "nbd+unix:///?socket=" + here + "/disk.sock");
  EXPECT_EQ(remote::absolute_name("nbds://host/x?tls-psk-file=k&tls-certificates=p%20q"),
            "nbds://host/x?tls-psk-file=" + here + "/k&tls-certificates=" + here + "/p%20q");
  for (const std::string name : {"nbd://host/socket=a", "nbd+unix:///?socket=/run/d", "nbd+unix:///?socket=%2Frun%2Fd",
                                 "nbd+unix:///?socket=", "nbds://host/?tls-hostname=h"})
    EXPECT_EQ(remote::absolute_name(name), name);
}

// Before any library is looked for.
TEST(RbdName, SnapshotsAreNotWritten) {
  const auto device = remote::open_device("rbd:pool/image@monday", {});
  EXPECT_FALSE(device.ok());
  EXPECT_FALSE(device.fails_with(Errc::not_found)) << device.error().message();
}

}  // namespace
}  // namespace varve::io::test
