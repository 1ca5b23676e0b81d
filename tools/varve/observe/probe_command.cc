// `varve probe`: what blkid(8) says of other filesystems; asked by the udev rule, which must not wait for anybody.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <ostream>

#include "base/buffer.h"
#include "base/json_text.h"
#include "base/utf8.h"
#include "checkpoint/superblocks.h"
#include "control/place.h"
#include "format/superblock.h"
#include "remote/network_name.h"
#include "remote/open_device.h"
#include "varve/command.h"

namespace varve::tool {

namespace {

struct ProbeArguments {
  std::string path;
  bool exported = false, json = false;
};

Result<std::unique_ptr<io::BlockDevice>> open_to_look(const std::string& path) {
  return remote::open_device(path, {.access = io::Access::read_only, .exclusive = false});
}

Result<format::Superblock> decode_first(const std::string& path, std::span<const std::byte> block) {
  auto super = format::decode_superblock(block);
  if (!super.ok()) return Error(super.error().code(), fmt::format("{}: {}", path, super.error().message()));
  return super;
}

Result<format::Superblock> read_first_of_server(const std::string& path) {
  const auto device = TRY(open_to_look(path));
  AlignedBuffer block = AlignedBuffer::zeroed(kBlockSize);
  if (device->geometry().blocks() > 0) TRY(device->read(0, block.span()));
  return decode_first(path, block.span());
}

// Neither locks nor leases: a probe looks at 4 KiB, also of a mounted device.
Result<format::Superblock> read_first(const std::string& path) {
  if (remote::is_network_name(path)) return read_first_of_server(path);
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return Error(errc_from_errno(errno), fmt::format("{}: {}", path, errno_text()));
  struct stat status {};
  AlignedBuffer block = AlignedBuffer::zeroed(kBlockSize);
  const bool is_storage = ::fstat(fd, &status) == 0 && (S_ISREG(status.st_mode) || S_ISBLK(status.st_mode));
  const ssize_t bytes = is_storage ? ::pread(fd, block.data(), kBlockSize, 0) : 0;
  ::close(fd);
  if (S_ISDIR(status.st_mode)) return Errc::is_directory;
  if (bytes < 0) return Error(Errc::io, fmt::format("{}: {}", path, errno_text()));
  return decode_first(path, block.span());
}

// Block 0 has no superblock: the last block may tell what this is, unless block 0 shows that something else is there now.
Result<format::Superblock> read_last(const std::string& path) {
  const auto device = TRY(open_to_look(path));
  return checkpoint::read_identity(*device);
}

// In names of links, and in values for udev, where it could end a line or a word.
bool is_harmless(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || std::isalnum(byte) || std::string_view("#+-.:=@_").find(c) != std::string_view::npos;
}

// As libblkid writes values for udev.
std::string encoded(const std::string& text) {
  std::string out;
  for (const char c : text) out += is_harmless(c) ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return out;
}

std::string safe(std::string text) {
  std::ranges::replace_if(text, [](char c) { return !is_harmless(c); }, '_');
  return text;
}

// As blkid prints values in quotes.
std::string in_quotes(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) out += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return printable(out + "\"");
}

std::string export_text(const format::Superblock& s) {
  const std::string uuid = format::uuid_text(s.uuid);
  std::string text =
      fmt::format("ID_FS_TYPE=varve\nID_FS_USAGE=filesystem\nID_FS_VERSION={}\nID_FS_UUID={}\nID_FS_UUID_ENC={}\n",
                  s.version, uuid, uuid);
  if (!s.label.empty()) text += fmt::format("ID_FS_LABEL={}\nID_FS_LABEL_ENC={}\n", safe(s.label), encoded(s.label));
  return text + fmt::format("ID_FS_SIZE={}\nID_FS_BLOCKSIZE={}\n", s.device_blocks << kBlockShift, kBlockSize);
}

Status probe(const ProbeArguments& arguments, IoLayer& io) {
  const std::string path = TRY(control::resolve_tag(arguments.path));
  auto super = read_first(path);
  if (super.fails_with(Errc::is_directory) || super.fails_with(Errc::io)) {
    const auto place = control::find_place(path);
    if (place.ok() && place->source != path) super = read_first(place->source);
    else if (super.fails_with(Errc::is_directory) && !place.ok()) return place.error();
  }
  bool is_damaged = false;
  if (super.fails_with(Errc::not_varve) || super.fails_with(Errc::corrupt))
    if (auto last = read_last(path); last.ok()) {
      is_damaged = true;
      super = std::move(last);
    }
  if (super.fails_with(Errc::not_varve)) return Error(Errc::not_varve, fmt::format("{}: not a Varve filesystem", path));
  if (!super.ok()) return super.error();
  if (is_damaged)
    io.err << fmt::format("varve: {0}: block 0 is damaged, this is what the last block says; fsck.varve -n {0} says what else is\n", path);
  if (arguments.exported) {
    io.out << export_text(*super);
  } else if (arguments.json) {
    io.out << json_text(Json{{"device", path},
                             {"type", "varve"},
                             {"uuid", format::uuid_text(super->uuid)},
                             {"label", super->label},
                             {"version", super->version},
                             {"size", super->device_blocks << kBlockShift}},
                        2)
           << "\n";
  } else {
    io.out << fmt::format("{}:{} UUID=\"{}\" BLOCK_SIZE=\"{}\" TYPE=\"varve\"\n", path,
                          super->label.empty() ? "" : " LABEL=" + in_quotes(super->label),
                          format::uuid_text(super->uuid), kBlockSize);
  }
  return {};
}

}  // namespace

void declare_probe(CLI::App& app, Action& chosen) {
  auto arguments = std::make_shared<ProbeArguments>();
  CLI::App* command =
      app.add_subcommand("probe", "Is there a Varve filesystem? Its UUID and label, as blkid prints them");
  command->add_option("path", arguments->path, "Block device, image file or a disk of a server, or where it is mounted")->required();
  command->add_flag("--export", arguments->exported, "As udev imports it: ID_FS_TYPE=varve, ID_FS_UUID=...");
  command->add_flag("--json", arguments->json, "For programs")->excludes("--export");
  command->callback([arguments, &chosen] { chosen = [arguments](IoLayer& io) { return probe(*arguments, io); }; });
}

}  // namespace varve::tool
