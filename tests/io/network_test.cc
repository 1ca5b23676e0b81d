// NBD against real servers: death, silence, refusals. What block_device.h promises is in contract_test.cc.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "io/backends.h"
#include "io/nbd_server.h"
#include "remote/nbd_device.h"
#include "remote/nbd_trust.h"
#include "remote/open_device.h"
#include "remote/write_journal.h"
#include "support/waiting.h"

namespace varve::io::test {
namespace {

constexpr std::uint64_t kDiskBytes = 64 << 20;
constexpr std::uint64_t kSecond = 1'000'000'000;

std::uint64_t seed() {
  const char* given = std::getenv("VARVE_SEED");
  return given ? std::strtoull(given, nullptr, 10) : std::random_device()();
}

class Network : public testing::Test {
 protected:
  void SetUp() override {
    if (!NbdServer::is_there()) GTEST_SKIP() << "no nbdkit here";
  }

  std::unique_ptr<remote::NbdDevice> open(const NbdServer& server, remote::NbdSettings settings = {},
                                          io::Access access = io::Access::read_write) {
    settings.uri = server.uri();
    auto device = remote::NbdDevice::open(settings, access);
    EXPECT_TRUE(device.ok()) << device.error().message();
    return device.ok() ? std::move(device).value() : nullptr;
  }

  static Status write(io::BlockDevice& device, std::uint64_t block, std::uint64_t pattern, std::size_t blocks = 1) {
    AlignedBuffer data(blocks * kBlockSize);
    fill_pattern(data.data(), block, pattern, blocks);
    return device.write(block * kBlockSize, data.span());
  }
  static bool holds(io::BlockDevice& device, std::uint64_t block, std::uint64_t pattern, std::size_t blocks = 1) {
    AlignedBuffer data(blocks * kBlockSize);
    return device.read(block * kBlockSize, data.span()).ok() && has_pattern(data.data(), block, pattern, blocks);
  }
};

// --- the journal ------------------------------------------------------------------------------------------------------

TEST(WriteJournal, KeepsUntilAFlushThatBeganAfterTheAcknowledgement) {
  remote::WriteJournal journal(16 * kBlockSize);
  auto* first = journal.add(0, kBlockSize);
  auto* second = journal.add(kBlockSize, kBlockSize);
  journal.acknowledge(*first);
  const std::uint64_t mark = journal.mark();
  journal.acknowledge(*second);
  journal.flushed(mark);
  ASSERT_EQ(journal.entries().size(), 1U);
  EXPECT_EQ(&journal.entries().front(), second);
  EXPECT_EQ(journal.acknowledged_bytes(), kBlockSize);
  journal.flushed(journal.mark());
  EXPECT_TRUE(journal.entries().empty());
}

TEST(WriteJournal, ADurableWriteOverOneThatIsNotIsKept) {
  remote::WriteJournal journal(16 * kBlockSize);
  auto* first = journal.add(0, 2 * kBlockSize);
  journal.acknowledge(*first);
  auto* second = journal.add(kBlockSize, kBlockSize);
  journal.acknowledge_durable(*second);
  EXPECT_EQ(second->state, remote::WriteJournal::State::acknowledged) << "the first would be repeated over it";
  auto* third = journal.add(5 * kBlockSize, kBlockSize);
  journal.acknowledge_durable(*third);
  EXPECT_EQ(third->state, remote::WriteJournal::State::safe);
}

TEST(WriteJournal, IsFullUntilTheOldestIsSafe) {
  remote::WriteJournal journal(16 * kBlockSize);
  std::vector<remote::WriteJournal::Entry*> entries;
  while (auto* entry = journal.add(entries.size() * kBlockSize, 3 * kBlockSize)) entries.push_back(entry);
  EXPECT_EQ(entries.size(), 5U);
  journal.drop(*entries[1]);
  EXPECT_EQ(journal.add(0, kBlockSize * 3), nullptr) << "the oldest is in the way";
  journal.drop(*entries[0]);
  auto* wrapped = journal.add(0, kBlockSize * 3);
  ASSERT_NE(wrapped, nullptr);
  EXPECT_EQ(wrapped->data, entries[0]->data);
}

TEST(WriteJournal, RandomUseNeverOverlaps) {
  remote::WriteJournal journal(64 * kBlockSize);
  std::mt19937 random(7);
  for (int step = 0; step < 20000; ++step) {
    const std::uint32_t length = (1 + random() % 16) * kBlockSize;
    if (auto* entry = journal.add(step, length)) std::memset(entry->data, step % 251, length), entry->waiter = entry->data + step % 251;
    std::vector<remote::WriteJournal::Entry*> all;
    for (auto& entry : journal.entries()) {
      if (entry.state == remote::WriteJournal::State::safe) continue;
      const auto byte = std::byte(static_cast<std::byte*>(entry.waiter) - entry.data);
      ASSERT_TRUE(entry.data[0] == byte && entry.data[entry.length - 1] == byte) << step;
      all.push_back(&entry);
    }
    if (!all.empty() && random() % 2) journal.acknowledge(*all[random() % all.size()]);
    if (random() % 8 == 0) journal.flushed(journal.mark());
    else if (!all.empty() && random() % 4 == 0) journal.drop(*all[random() % all.size()]);
  }
}

// --- what is refused --------------------------------------------------------------------------------------------------

TEST_F(Network, NamesWhatCannotBeReached) {
  const auto device = remote::open_device("nbd+unix:///?socket=/tmp/varve-nbd-nowhere", {.patience_s = 2});
  ASSERT_FALSE(device.ok());
  EXPECT_NE(device.error().message().find("nbd+unix:///?socket=/tmp/varve-nbd-nowhere: no connection"), std::string::npos)
      << device.error().message();
}

// Otherwise libnbd 1.14 takes any server.
TEST(NbdTrust, AServerMustBeKnownBySomething) {
  std::string folder = "/tmp/varve-trust a-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string escaped = "/tmp/varve-trust%20a" + folder.substr(folder.rfind('-'));
  const auto named = [&](const std::string& rest) { return remote::check_trust("nbds://host/export" + rest); };
  EXPECT_TRUE(remote::check_trust("nbd://host/?tls-certificates=/nowhere").ok()) << "nothing is promised there";
  EXPECT_TRUE(named("?tls-certificates=" + escaped).fails_with(Errc::invalid)) << "an empty folder";
  EXPECT_TRUE(named("?tls-certificates=/nowhere").fails_with(Errc::invalid));
  std::ofstream(folder + "/ca-cert.pem") << "any";
  EXPECT_TRUE(named("?tls-certificates=" + escaped).ok());
  EXPECT_TRUE(named("?socket=x&tls-certificates=" + escaped + "&tls-verify-peer=true").ok());
  EXPECT_TRUE(named("?not-tls-certificates=" + escaped).fails_with(Errc::invalid) || ::access("/etc/pki/libnbd/ca-cert.pem", R_OK) == 0);
  EXPECT_TRUE(named("?tls-psk-file=/nowhere/keys").fails_with(Errc::invalid));
  EXPECT_TRUE(named("?tls-psk-file=" + escaped + "/ca-cert.pem").ok()) << "libnbd looks for the key in it";
  EXPECT_TRUE(remote::check_trust("nbds+unix:///export?socket=x;tls-certificates=" + escaped).ok());
  std::filesystem::remove_all(folder);
}

TEST_F(Network, ReadOnlyExports) {
  const NbdServer server({"-r", "memory", "8M"});
  const auto writer = remote::open_device(server.uri(), {});
  EXPECT_TRUE(writer.fails_with(Errc::read_only));
  const auto reader = remote::open_device(server.uri(), {.access = io::Access::read_only});
  ASSERT_TRUE(reader.ok()) << reader.error().message();
  EXPECT_FALSE(write(**reader, 0, 1).ok());
}

TEST_F(Network, NothingIsWrittenWhereNothingCanBeMadeSafe) {
  const NbdServer server({"eval", "get_size=echo 8388608", "pread=dd if=/dev/zero count=$3 iflag=count_bytes", "pwrite=cat >/dev/null",
                          "can_write=exit 0", "can_flush=exit 3"});
  EXPECT_TRUE(remote::open_device(server.uri(), {}).fails_with(Errc::unsupported));
  EXPECT_TRUE(remote::open_device(server.uri(), {.access = io::Access::read_only}).ok());
}

TEST_F(Network, BlocksThatAreTooLarge) {
  const NbdServer server({"--filter=blocksize-policy", "memory", "8M", "blocksize-minimum=8192", "blocksize-preferred=65536",
                          "blocksize-error-policy=error"});
  EXPECT_TRUE(remote::open_device(server.uri(), {}).fails_with(Errc::unsupported));
}

TEST_F(Network, SmallRequestsOnly) {
  const NbdServer server({"--filter=blocksize-policy", "memory", "8M", "blocksize-maximum=65536", "blocksize-error-policy=error"});
  const auto device = open(server);
  ASSERT_TRUE(write(*device, 3, 1, 1000).ok());
  EXPECT_TRUE(holds(*device, 3, 1, 1000));
}

TEST_F(Network, ErrorsOfTheServerAreErrorsOfTheirRequests) {
  const NbdServer server({"--filter=error", "memory", "8M", "error-pwrite=ENOSPC", "error-pwrite-rate=100%"});
  const auto device = open(server);
  const Status written = write(*device, 0, 1);
  EXPECT_TRUE(written.fails_with(Errc::no_space)) << written.error().message();
  EXPECT_EQ(device->refusal(), "") << "a refused write is the filesystem's to judge";
  EXPECT_TRUE(device->flush().ok());
}

TEST_F(Network, AFailedFlushIsFinal) {
  const NbdServer server({"eval", "get_size=echo 8388608", "pread=dd if=/dev/zero count=$3 iflag=count_bytes", "pwrite=cat >/dev/null",
                          "can_write=exit 0", "can_flush=exit 0", "flush=echo EIO no >&2; exit 1"});
  const auto device = open(server);
  ASSERT_TRUE(write(*device, 0, 1).ok());
  EXPECT_FALSE(device->flush().ok());
  EXPECT_NE(device->refusal().find("flush failed"), std::string::npos);
  EXPECT_FALSE(write(*device, 1, 1).ok());
}

// Without writes that are durable by themselves a flush follows.
TEST_F(Network, DurableWithoutFua) {
  const TempImage flushes(0);
  const NbdServer server({"eval", "get_size=echo 8388608", "pread=dd if=/dev/zero count=$3 iflag=count_bytes", "pwrite=cat >/dev/null",
                          "can_write=exit 0", "can_flush=exit 0", "can_fua=echo none", "flush=echo >>" + flushes.path()});
  const auto device = open(server);
  const auto reactor = make_reactor(Backend::nbd);
  Batch batch;
  batch.write(1, 1, 700).durable = true;
  batch.submit_all(*device, *reactor);
  drain(*reactor);
  EXPECT_EQ(batch.failed(), 0U);
  std::ifstream made(flushes.path());
  EXPECT_EQ(made.get(), '\n') << "a flush has followed";
}

// --- death ------------------------------------------------------------------------------------------------------------

TEST_F(Network, WhatWasNotFlushedSurvivesAServerThatForgets) {
  NbdServer server({"memory", "64M"});
  const auto device = open(server);
  for (std::uint64_t block = 0; block < 500; ++block) ASSERT_TRUE(write(*device, block, 1).ok());
  for (std::uint64_t block = 100; block < 300; ++block) ASSERT_TRUE(write(*device, block, 2).ok());  // over the same places
  server.kill();
  server.start();  // all zeros
  for (std::uint64_t block = 0; block < 500; ++block)
    ASSERT_TRUE(holds(*device, block, block >= 100 && block < 300 ? 2 : 1)) << block;
  EXPECT_TRUE(device->flush().ok());
}

TEST_F(Network, AStreamFitsThroughASmallJournal) {
  const NbdServer server({"memory", "64M"});
  remote::NbdSettings settings;
  settings.journal_bytes = 1 << 20;
  const auto device = open(server, settings);
  ASSERT_TRUE(write(*device, 1, 5, 12000).ok());
  EXPECT_TRUE(holds(*device, 1, 5, 12000));
}

// Stopped for moments, and once killed by a server that forgets everything, before anything was flushed.
TEST_F(Network, PausesUnderLoad) {
  NbdServer server({"memory", "64M"});
  remote::NbdSettings settings;
  settings.journal_bytes = 512 << 20;  // nothing is flushed by itself
  const auto device = open(server, settings);
  constexpr unsigned kThreads = 3, kPauses = 8;
  constexpr std::uint64_t kPart = 2000;
  const std::uint64_t start = seed();
  SCOPED_TRACE(testing::Message() << "VARVE_SEED=" << start);
  std::atomic<bool> stop{false};
  std::atomic<unsigned> failures{0};
  std::vector<std::vector<std::uint64_t>> newest(kThreads, std::vector<std::uint64_t>(kPart));
  std::vector<std::thread> writers;
  for (unsigned part = 0; part < kThreads; ++part)
    writers.emplace_back([&, part] {
      std::mt19937_64 random(start + part);
      for (std::uint64_t pattern = 1; !stop; ++pattern) {
        const std::uint64_t at = random() % (kPart - 8), blocks = 1 + random() % 8, first = part * kPart + at;
        const bool reads = random() % 3 == 0;
        if (reads) failures += newest[part][at] && !holds(*device, first, newest[part][at]);
        else if (!write(*device, first, pattern, blocks).ok()) ++failures;
        else std::fill_n(newest[part].begin() + static_cast<std::ptrdiff_t>(at), blocks, pattern);
      }
    });
  std::mt19937_64 random(start ^ 1);
  for (unsigned pause = 0; pause < kPauses && failures == 0; ++pause) {
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 60));  // at any moment
    server.signal(SIGSTOP);
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 60));  // for any time
    server.signal(SIGCONT);
    if (pause != 2) continue;
    server.kill();
    server.start();
  }
  stop = true;
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(failures, 0U);
  EXPECT_EQ(device->refusal(), "");
}

// The same with a file behind the server, which keeps what it has written when it is killed.
TEST_F(Network, DeathsOfAFileServerUnderLoad) {
  const TempImage image(kDiskBytes);
  NbdServer server({"file", image.path()});
  const auto device = open(server);
  const std::uint64_t start = seed();
  SCOPED_TRACE(testing::Message() << "VARVE_SEED=" << start);
  std::atomic<bool> stop{false};
  std::atomic<unsigned> failures{0};
  constexpr std::uint64_t kPart = 4000;
  std::vector<std::thread> writers;
  std::vector<std::vector<std::uint64_t>> newest(3, std::vector<std::uint64_t>(kPart));
  for (unsigned part = 0; part < 3; ++part)
    writers.emplace_back([&, part] {
      const auto own = make_reactor(Backend::nbd);
      std::mt19937_64 random(start + part);
      for (std::uint64_t pattern = 1; !stop; ++pattern) {
        Batch batch;
        std::vector<std::uint64_t> places;
        for (std::uint64_t at = random() % 40; at < kPart; at += 9 + random() % 200) {
          batch.write(part * kPart + at, pattern).durable = random() % 4 == 0;
          places.push_back(at);
        }
        batch.submit_all(*device, *own);
        drain(*own);
        failures += static_cast<unsigned>(batch.failed());
        for (const std::uint64_t at : places) newest[part][at] = pattern;
        if (random() % 4 == 0) failures += !device->flush().ok();
      }
    });
  std::mt19937_64 random(start ^ 1);
  for (int death = 0; death < 6; ++death) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20 + random() % 200));  // at any moment
    server.kill();
    if (random() % 2) std::this_thread::sleep_for(std::chrono::milliseconds(random() % 700));  // for any time
    server.start();
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 1000));  // at any moment of what is sent again
  }
  stop = true;
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(failures, 0U);
  ASSERT_TRUE(device->flush().ok()) << device->refusal();
  const auto file = remote::open_device(image.path(), {});
  for (unsigned part = 0; part < 3; ++part)
    for (std::uint64_t at = 0; at < kPart; ++at) {
      if (newest[part][at] == 0) continue;
      ASSERT_TRUE(holds(**file, part * kPart + at, newest[part][at])) << part << " " << at;
    }
}

// --- patience ---------------------------------------------------------------------------------------------------------

TEST_F(Network, AServerThatStaysAwayIsAFailedDevice) {
  NbdServer server({"memory", "8M"});
  remote::NbdSettings settings;
  settings.patience_ns = 5 * kSecond;  // a busy machine answers within it
  const auto device = open(server, settings);
  ASSERT_TRUE(write(*device, 1, 1).ok());
  server.kill();
  EXPECT_FALSE(write(*device, 2, 1).ok());
  EXPECT_NE(device->refusal().find("no connection for 5 s"), std::string::npos) << device->refusal();
  EXPECT_FALSE(device->flush().ok());
  server.start();
  AlignedBuffer data(kBlockSize);
  Status read;
  for (int looks = 0; looks < 3000 && !(read = device->read(0, data.span())).ok(); ++looks)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // between two looks
  EXPECT_TRUE(read.ok()) << "what can be read stays readable";
  EXPECT_FALSE(write(*device, 3, 1).ok()) << "but it has failed for good";
}

TEST_F(Network, AServerThatSaysNothingIsAFailedDevice) {
  const NbdServer server({"memory", "8M"});
  remote::NbdSettings settings;
  settings.patience_ns = 5 * kSecond;  // a busy machine answers within it
  const auto device = open(server, settings);
  ASSERT_TRUE(write(*device, 1, 1).ok());
  server.signal(SIGSTOP);
  EXPECT_FALSE(write(*device, 2, 1).ok());
  EXPECT_NE(device->refusal().find("no answer for 5 s"), std::string::npos) << device->refusal();
  server.signal(SIGCONT);
}

TEST_F(Network, AnExportThatHasShrunkIsNotWrittenTo) {
  const TempImage image(kDiskBytes);
  NbdServer server({"file", image.path()});
  const auto device = open(server);
  ASSERT_TRUE(write(*device, 1, 1).ok());
  server.kill();
  ASSERT_EQ(::truncate(image.path().c_str(), kDiskBytes / 2), 0);
  server.start();
  EXPECT_FALSE(write(*device, 2, 1).ok());
  EXPECT_NE(device->refusal().find("smaller"), std::string::npos);
}

// --- the guard --------------------------------------------------------------------------------------------------------

class ScriptedGuard : public io::WriteGuard {
 public:
  Verdict may_send(std::uint64_t looked_after_ns) override {
    asked_after = looked_after_ns;
    return verdict;
  }
  void look_soon() override { ++wished; }

  std::atomic<Verdict> verdict{Verdict::yes};
  std::atomic<std::uint64_t> asked_after{0};
  std::atomic<unsigned> wished{0};
};

TEST_F(Network, NothingIsRepeatedBeforeTheGuardHasLooked) {
  NbdServer server({"memory", "8M"});
  ScriptedGuard guard;
  const auto device = open(server);
  device->ask(&guard);
  ASSERT_TRUE(write(*device, 1, 1).ok());
  EXPECT_EQ(guard.asked_after, 0U);
  guard.verdict = io::WriteGuard::Verdict::not_now;
  server.kill();
  server.start();
  varve::test::wait_until([&] { return guard.wished > 0; });
  EXPECT_NE(guard.asked_after, 0U);
  io::IoRequest look;
  AlignedBuffer data(kBlockSize);
  look.by_guard = true;
  look.offset = kBlockSize;
  look.add(data.data(), data.size());
  ASSERT_EQ(device->execute(look), 0) << "the guard itself is not held back";
  EXPECT_TRUE(is_zero(data.data(), data.size())) << "and sees what is there before anything is repeated";
  guard.verdict = io::WriteGuard::Verdict::yes;
  EXPECT_TRUE(holds(*device, 1, 1));
  device->ask(nullptr);
}

// Says yes once: for as much as fits into the journal.
class FadingGuard : public ScriptedGuard {
 public:
  Verdict may_send(std::uint64_t looked_after_ns) override {
    const Verdict said = ScriptedGuard::may_send(looked_after_ns);
    verdict = Verdict::not_now;
    return said;
  }
};

// As by a server that reads nothing of the lease's blocks any more, but is there and answers.
TEST_F(Network, WhatTheGuardHoldsForEverHasFailed) {
  const NbdServer server({"memory", "64M"});
  FadingGuard guard;
  remote::NbdSettings settings;
  settings.patience_ns = 5 * kSecond;  // a busy machine answers within it
  settings.journal_bytes = 1 << 20;
  const auto device = open(server, settings);
  device->ask(&guard);
  const auto reactor = make_reactor(Backend::nbd);
  Batch batch;
  for (std::uint64_t block = 1; block < 4000; block += 1000) batch.write(block, 1, 700);
  batch.flush();
  batch.submit_all(*device, *reactor);
  drain(*reactor);
  EXPECT_EQ(batch.failed(), 5U);
  EXPECT_NE(device->refusal().find("the lease could not be looked at for 5 s"), std::string::npos) << device->refusal();
  device->ask(nullptr);
}

TEST_F(Network, WhatTheGuardHeldIsForgottenWhenItHasLooked) {
  const NbdServer server({"memory", "8M"});
  ScriptedGuard guard;
  guard.verdict = io::WriteGuard::Verdict::not_now;
  remote::NbdSettings settings;
  settings.patience_ns = 5 * kSecond;  // a busy machine answers within it
  const auto device = open(server, settings);
  device->ask(&guard);
  const auto reactor = make_reactor(Backend::nbd);
  Batch batch;
  batch.write(1, 1);
  batch.submit_all(*device, *reactor);
  reactor->kick();
  varve::test::wait_until([&] { return guard.wished > 0; });
  guard.verdict = io::WriteGuard::Verdict::yes;
  drain(*reactor);
  EXPECT_EQ(batch.failed(), 0U);
  const auto looked = std::chrono::steady_clock::now();
  varve::test::wait_until([&] { return std::chrono::steady_clock::now() - looked > std::chrono::nanoseconds(settings.patience_ns); });
  EXPECT_TRUE(write(*device, 2, 1).ok()) << device->refusal();
  EXPECT_EQ(device->refusal(), "");
  device->ask(nullptr);
}

TEST_F(Network, WhatIsAnothersIsNotWritten) {
  NbdServer server({"memory", "8M"});
  ScriptedGuard guard;
  const auto device = open(server);
  device->ask(&guard);
  ASSERT_TRUE(write(*device, 1, 1).ok());
  guard.verdict = io::WriteGuard::Verdict::never;
  server.kill();
  server.start();
  EXPECT_FALSE(write(*device, 2, 1).ok());
  AlignedBuffer data(2 * kBlockSize);
  const auto other = open(server);
  ASSERT_TRUE(other->read(kBlockSize, data.span()).ok());
  EXPECT_TRUE(is_zero(data.data(), data.size()));
}

TEST_F(Network, TheGuardsWritesAreNotRepeated) {
  NbdServer server({"memory", "8M"});
  const auto device = open(server);
  server.kill();
  io::IoRequest answer;
  AlignedBuffer data(kBlockSize);
  answer.kind = io::IoKind::write;
  answer.by_guard = true;
  answer.add(data.data(), data.size());
  EXPECT_EQ(device->execute(answer), ENOTCONN) << "which says nothing about the device";
}

}  // namespace
}  // namespace varve::io::test
