// What stands behind `-o`.
#include "daemon/mount_options.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "daemon/ownership.h"

namespace varve::fuse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

daemon::MountOptions parsed(std::string_view text) {
  daemon::MountOptions options;
  const Status status = daemon::parse_options(text, options);
  EXPECT_TRUE(status.ok()) << text << ": " << (status.ok() ? "" : status.error().message());
  return options;
}

std::string complaint(std::string_view text) {
  daemon::MountOptions options;
  const Status status = daemon::parse_options(text, options);
  if (status.ok()) return "";
  EXPECT_TRUE(status.error().is(Errc::invalid));
  return status.error().message();
}

TEST(MountOptions, PoliciesHaveParameters) {
  const daemon::MountOptions options = parsed("policy=mdc+d-choices:d=20,placement=sfs:groups=3");
  EXPECT_EQ(options.fs.victims, "mdc+d-choices:d=20");
  EXPECT_EQ(options.fs.placement, "sfs:groups=3");
  EXPECT_THAT(complaint("policy=fancy"), HasSubstr("greedy"));
  EXPECT_THAT(complaint("placement=sfs:groups=99"), HasSubstr("groups"));
  EXPECT_THAT(complaint("plugin=/nowhere.so"), HasSubstr("/nowhere.so"));
}

TEST(MountOptions, RulesOfRetentionHaveCommasOfTheirOwn) {
  const daemon::MountOptions options = parsed("noatime,protect=1h,24h:1h,30d:1d,protect_every=10s,commit=7");
  EXPECT_EQ(options.fs.protection.window_text(), "1h,1d:1h,30d:1d");
  EXPECT_EQ(options.fs.protection.every_s, 10U);
  EXPECT_EQ(options.commit_seconds, 7U);
  EXPECT_EQ(parsed("protect=1h,ro").fs.protection.window_text(), "1h");
  EXPECT_EQ(complaint("ro,protect=1h,24h,commit=7"),
            "option protect=1h,24h: '24h': only the first rule goes without a spacing, as in 1h,24h:1h,30d:1d");
  EXPECT_THAT(complaint("commit=7,24h:1h"), HasSubstr("unknown option 24h:1h"));
  EXPECT_THAT(complaint("protect=1h,,24h:1h"), HasSubstr("unknown option 24h:1h"));
}

// A link may lead elsewhere by the time it is loaded, and dlopen(3) looks for a name without a slash among the system's libraries.
TEST(MountOptions, APluginIsLoadedByTheNameOfTheFileThatWasJudged) {
  namespace files = std::filesystem;
  std::string place = files::temp_directory_path() / "varve-plugin-XXXXXX";
  ASSERT_NE(::mkdtemp(place.data()), nullptr);
  const files::path folder = files::canonical(place), file = folder / "libm.so.6";
  std::ofstream(file) << "no shared object";
  files::permissions(file, files::perms::owner_read | files::perms::owner_write);
  files::create_symlink(file, folder / "link.so");
  const auto real = daemon::check_loadable(folder / "link.so");
  const files::path before = files::current_path();
  files::current_path(folder);
  const std::string of_a_link = complaint("plugin=" + (folder / "link.so").string()), of_a_name = complaint("plugin=libm.so.6");
  files::current_path(before);
  files::remove_all(folder);
  ASSERT_TRUE(real.ok()) << real.error().message();
  EXPECT_EQ(*real, file.string());
  EXPECT_THAT(of_a_link, HasSubstr(file.string()));
  EXPECT_THAT(of_a_name, HasSubstr(file.string()));
}

TEST(MountOptions, NothingMeansTheDefaults) {
  const daemon::MountOptions options = parsed("");
  EXPECT_FALSE(options.fs.read_only);
  EXPECT_TRUE(options.wishes.writeback);
  EXPECT_TRUE(options.fs.cleaner);
  EXPECT_EQ(options.fs.atime, fs::Atime::relative);
  EXPECT_FALSE(options.allow_other);
}

TEST(MountOptions, TheLastWordOnSyncCounts) {
  EXPECT_FALSE(parsed("").durable.include(Change::name));
  EXPECT_TRUE(parsed("dirsync").durable.include(Change::name));
  EXPECT_FALSE(parsed("dirsync").durable.include(Change::other));
  EXPECT_TRUE(parsed("async,sync").durable.include(Change::name));
  EXPECT_TRUE(parsed("async,sync").durable.include(Change::other));
  EXPECT_FALSE(parsed("sync,async").durable.include(Change::name));
  EXPECT_TRUE(parsed("dirsync,sync,async").durable.include(Change::name));
  EXPECT_EQ(parsed("sync,dirsync").kernel_flags.size(), 2u);
}

TEST(MountOptions, TakesWhatFstabMaySay) {
  const daemon::MountOptions options = parsed(
      "defaults,auto,noauto,nofail,_netdev,user,users,user=ann,x-systemd.automount,"
      "comment=x,default_permissions,uhelper=varve,,rw,atime,norelatime,nostrictatime,iversion,noiversion,mand,nomand,silent,loud");
  EXPECT_TRUE(options.kernel_flags.empty());
  EXPECT_FALSE(options.fs.read_only);
}

TEST(MountOptions, LaterOnesWin) {
  EXPECT_FALSE(parsed("ro,rw").fs.read_only);
  EXPECT_TRUE(parsed("rw,ro").fs.read_only);
  EXPECT_EQ(parsed("noatime,strictatime").fs.atime, fs::Atime::always);
  EXPECT_FALSE(parsed("discard,nodiscard").fs.discard);
  EXPECT_EQ(parsed("noatime,atime").fs.atime, fs::Atime::relative);
  EXPECT_EQ(parsed("strictatime,nostrictatime").fs.atime, fs::Atime::relative);
  EXPECT_TRUE(parsed("nosymfollow").nosymfollow);
  EXPECT_FALSE(parsed("nosymfollow,symfollow").nosymfollow);
}

TEST(MountOptions, PassesTheKernelsFlagsOn) {
  EXPECT_THAT(parsed("nosuid,noatime,nodev,noexec,ro").kernel_flags, ElementsAre("nosuid", "nodev", "noexec"));
}

// A line of fstab that was ext4's.
TEST(MountOptions, WordsOfExt4StopNoMount) {
  parsed("acl,errors=panic,data_err=abort,stripe=128,journal_async_commit,nojournal_checksum,init_itable=10,noinit_itable");
  parsed("inode_readahead_blks=32,dioread_nolock,max_batch_time=15000,block_validity,nombcache,bsddf,grpid,resuid=0");
  parsed("usrjquota=a,jqfmt=vfsv1");
}

TEST(MountOptions, ReadsValues) {
  const daemon::MountOptions options = parsed(
      "memory=1G,writeback=off,cleaner=off,policy=greedy,threads=3,idle_threads=off,log=/varve.log,mlock,"
      "max_background=16,commit=7");
  EXPECT_EQ(options.commit_seconds, 7U);
  EXPECT_EQ(options.memory_bound, std::size_t{1} << 30);
  EXPECT_FALSE(options.wishes.writeback);
  EXPECT_FALSE(options.fs.cleaner);
  EXPECT_EQ(options.fs.victims, "greedy");
  EXPECT_EQ(options.server.threads, 3U);
  EXPECT_EQ(options.server.idle_threads, daemon::IdleThreads::off);
  EXPECT_EQ(options.log_file, "/varve.log");
  EXPECT_TRUE(options.lock_memory);
  EXPECT_EQ(options.wishes.max_background, 16);
  EXPECT_EQ(options.wishes.congestion_threshold, 12);
}

TEST(MountOptions, SaysWhatIsWrong) {
  EXPECT_THAT(complaint("rw,frobnicate"), HasSubstr("frobnicate"));
  EXPECT_THAT(complaint("noatim"), HasSubstr("did you mean noatime?"));
  EXPECT_THAT(complaint("log="), HasSubstr("option log: needs a value"));
  EXPECT_EQ(complaint("strategy=copying:x=1"), "option strategy=copying:x=1: 'copying:x=1': knows no x");
  EXPECT_THAT(complaint("memory=lots"), HasSubstr("memory=lots"));
  EXPECT_THAT(complaint("memory"), HasSubstr("needs a value"));
  EXPECT_THAT(complaint("ro=1"), HasSubstr("takes no value"));
  EXPECT_THAT(complaint("noxattr=on"), HasSubstr("takes no value"));
  EXPECT_THAT(complaint("writeback=maybe"), HasSubstr("on or off"));
  EXPECT_THAT(complaint("threads=0"), HasSubstr("threads=0"));
  EXPECT_THAT(complaint("commit=0"), HasSubstr("from 1 to 300"));
  EXPECT_THAT(complaint("patience=1m"), HasSubstr("must be a number of seconds from 5 to 3600, without a unit"));
  EXPECT_THAT(complaint("policy=nicest"), HasSubstr("greedy"));
}

TEST(MountOptions, Sizes) {
  EXPECT_EQ(*daemon::parse_size("4096"), 4096U);
  EXPECT_EQ(*daemon::parse_size("3k"), 3U << 10);
  EXPECT_EQ(*daemon::parse_size("2T"), std::uint64_t{2} << 40);
  for (const char* text : {"", "K", "-1", "1.5G", "1GB", "99999999999T", "1 G"})
    EXPECT_FALSE(daemon::parse_size(text).ok()) << text;
}

TEST(MountOptions, EveryOneIsExplained) {
  for (const daemon::OptionHelp& help : daemon::option_help()) EXPECT_FALSE(std::string(help.text).empty()) << help.name;
}

}  // namespace
}  // namespace varve::fuse
