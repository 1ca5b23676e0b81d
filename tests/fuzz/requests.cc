#include "fuzz/requests.h"

#include <linux/fs.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <memory>

#include "control/control.h"
#include "control/older.h"
#include "daemon/mount_options.h"
#include "fuse/served_mount.h"
#include "support/settings.h"

namespace varve::fuzz {

using fuse::Bytes;
using fuse::bytes_of;
using fuse::operator+;

void options(Input input) {
  const std::string_view text(reinterpret_cast<const char*>(input.data()), input.size());
  daemon::MountOptions options;
  const Status parsed = daemon::parse_options(text, options);
  require(parsed.ok() || !parsed.error().message().empty(), "an error without a message");
  if (const auto size = daemon::parse_size(text); size.ok()) require(!text.empty(), "a size out of nothing");
}

Seeds option_seeds() {
  Seeds seeds;
  std::string all;
  for (const daemon::OptionHelp& option : daemon::option_help()) {
    std::string name = option.name;
    if (const auto at = name.find('='); at != std::string::npos) name = name.substr(0, at) + "=1";
    seeds.push_back(bytes_of(name));
    all += name + ',';
  }
  seeds.push_back(bytes_of(all));
  seeds.push_back(bytes_of(std::string("12345678901234567890T")));
  return seeds;
}

namespace {

constexpr unsigned kInputsOfMount = 1000;
constexpr std::size_t kNodes = 5;

// One mount serves many inputs: making one takes as long as a hundred of them. So a failure may come from what an earlier input has done.
// All messages since the mount was made go to the file $VARVE_FUZZ_HISTORY, if that is set, which is an input that does the same.
class Mounted {
 public:
  static Mounted& get() {
    // Never destroyed: at the end of the process what it stands on may have gone before it.
    static auto& mounted = *new std::unique_ptr<Mounted>;
    if (!mounted || mounted->inputs_ == kInputsOfMount) {
      mounted.reset();
      mounted = std::make_unique<Mounted>();
    }
    return *mounted;
  }

  Mounted() {
    mount_.initialise();
    if (const std::string path = test::setting("VARVE_FUZZ_HISTORY"); !path.empty()) history_.open(path, std::ios::binary);
  }

  void begin(Input input) {
    ++inputs_;
    history_.write(reinterpret_cast<const char*>(input.data()), static_cast<std::streamsize>(input.size())).flush();
    nodes_ = {0, 1, file(), nodes_[2], nodes_[3]};
  }

  fuse::FakeKernel& kernel() { return mount_.kernel(); }
  std::uint64_t node(std::uint64_t number) const { return nodes_.at(number % kNodes); }

 private:
  // The file that inputs are about; some input may have taken it away.
  std::uint64_t file() {
    const fuse::Reply found = kernel().call(FUSE_LOOKUP, 1, fuse::name_bytes("file"));
    return found.error == 0 && found.as<fuse_entry_out>().nodeid ? found.as<fuse_entry_out>().nodeid : mount_.create(1, "file").nodeid;
  }

  fuse::ServedMount mount_;
  unsigned inputs_ = 0;
  std::array<std::uint64_t, kNodes> nodes_{0, 1, 0, 0, 0};
  std::ofstream history_;
};

// A request of a tool is the text that follows the first byte; few texts of random length would be one.
Bytes control_message(const Bytes& input) {
  control::Message message;
  message.total = static_cast<std::uint32_t>(std::min(input.size() - 1, sizeof message.room));
  std::memcpy(message.room, input.data() + 1, message.total);
  return bytes_of(message);
}

}  // namespace

// Input: per message u8 opcode, u8 node, u16 length, body. The body of an ioctl begins with a valid header for one of
// the commands that Varve knows: they are too rare among all numbers.
void requests(Input input) {
  spdlog::set_level(spdlog::level::off);
  Mounted& mounted = Mounted::get();
  mounted.begin(input);
  Source source(input);
  while (!source.empty()) {
    auto opcode = static_cast<std::uint32_t>(source.number(1)) % 56;
    const std::uint64_t node = mounted.node(source.number(1));
    const Input body = source.bytes(source.number(2) % 4096);
    Bytes message(body.begin(), body.end());
    if (opcode == FUSE_IOCTL && !message.empty()) {
      static constexpr unsigned long kNumbers[] = {
          control::kStatusIoctl, control::kCheckpointIoctl, control::kScrubIoctl, control::kScrubReportIoctl, FITRIM,
          FS_IOC_SETFLAGS,        FS_IOC_FSSETXATTR,         control::kControlIoctl, control::kTuneIoctl,         control::kCleanIoctl,
          control::kResizeIoctl,  control::kSnapshotIoctl,   control::kKeptIoctl};
      fuse_ioctl_in in{};
      in.cmd = static_cast<std::uint32_t>(kNumbers[std::to_integer<unsigned>(message[0]) % std::size(kNumbers)]);
      in.out_size = 8192;
      message = bytes_of(in) + (in.cmd == control::kControlIoctl ? control_message(message) : message);
    }
    // These get no answer, or end the mount.
    const bool is_silent = opcode == FUSE_FORGET || opcode == FUSE_BATCH_FORGET;
    if (opcode == FUSE_DESTROY || opcode == FUSE_INIT || opcode == FUSE_NOTIFY_REPLY) continue;
    const std::uint64_t unique = mounted.kernel().send(opcode, node, message);
    if (is_silent) continue;
    const auto reply = mounted.kernel().receive();
    require(reply && reply->unique == unique, "a request without an answer");
  }
}

Seeds request_seeds() {
  Seeds seeds;
  Bytes all;
  const auto add = [&](std::uint32_t opcode, std::uint8_t node, const Bytes& body) {
    Bytes one{static_cast<std::byte>(opcode), static_cast<std::byte>(node), static_cast<std::byte>(body.size()),
              static_cast<std::byte>(body.size() >> 8)};
    one = one + body;
    all = all + one;
    seeds.push_back(one);
  };
  add(FUSE_LOOKUP, 1, fuse::name_bytes("file"));
  fuse_write_in write{};
  write.size = 5;
  add(FUSE_WRITE, 2, bytes_of(write) + bytes_of(std::string("hello")));
  fuse_read_in read{};
  read.size = 4096;
  add(FUSE_READ, 2, bytes_of(read));
  fuse_rename2_in rename{};
  rename.newdir = 1;
  add(FUSE_RENAME2, 1, bytes_of(rename) + fuse::name_bytes("file") + fuse::name_bytes("other"));
  fuse_setxattr_in xattr{};
  xattr.size = 3;
  add(FUSE_SETXATTR, 2, bytes_of(xattr) + fuse::name_bytes("user.x") + bytes_of(std::string("abc")));
  add(FUSE_READDIRPLUS, 1, bytes_of(read));
  fuse_fallocate_in fallocate{};
  fallocate.length = 1 << 20;
  add(FUSE_FALLOCATE, 2, bytes_of(fallocate));
  fuse_setattr_in setattr{};
  setattr.valid = FATTR_SIZE | FATTR_MODE;
  add(FUSE_SETATTR, 2, bytes_of(setattr));
  for (std::uint8_t number = 0; number < 7; ++number)
    add(FUSE_IOCTL, 1, Bytes{std::byte{number}} + bytes_of(control::ScrubCommand{1, 0, 0}));
  for (const char* arguments : {R"("status")", R"("tune","setting":"policy","value":"greedy")", R"("snapshot_create","name":"a")",
                                R"("clean_start","roots":[1],"move_blocks":9)", R"("resize_start","bytes":67108864)",
                                R"("snapshot_compare","kind":1,"before":0,"after":1,"from":[1,1,0],"inodes":[1,2])"})
    add(FUSE_IOCTL, 1, Bytes{std::byte{7}} + bytes_of(R"({"version":1,"ask":)" + std::string(arguments) + "}"));
  add(FUSE_SYMLINK, 1, fuse::name_bytes("link") + fuse::name_bytes("target"));
  seeds.push_back(all);
  return seeds;
}

}  // namespace varve::fuzz
