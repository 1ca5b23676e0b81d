// Shows a directory with one file, `device`, whose I/O takes the time of a modelled device and has its inner life. A loop device on
// it carries any filesystem. `counters` says what the device has done; writing to it begins anew.
#define FUSE_USE_VERSION 314
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <sys/mman.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "host.h"
#include "models/catalogue.h"

namespace {

using varve::bench::Host;
using varve::bench::Op;
using varve::bench::Request;

constexpr std::uint64_t kMiB = 1u << 20, kGrain = 32 * kMiB;

enum Inode : fuse_ino_t { kRoot = FUSE_ROOT_ID, kDevice, kCounters };
constexpr const char* kNames[] = {"device", "counters"};

struct Device {
  std::unique_ptr<Host> host;
  std::uint64_t size = 0;  // that is shown: a disk may have more
  int content = -1;  // a file without a name
};
Device device;

struct stat attributes_of(fuse_ino_t inode) {
  struct stat out{};
  out.st_ino = inode;
  out.st_mode = inode == kRoot ? S_IFDIR | 0755 : S_IFREG | 0644;
  out.st_nlink = inode == kRoot ? 2 : 1;
  out.st_size = inode == kDevice ? static_cast<off_t>(device.size) : 0;
  return out;
}

void look_up(fuse_req_t request, fuse_ino_t, const char* name) {
  fuse_entry_param entry{};
  for (fuse_ino_t i = 0; i < std::size(kNames); ++i)
    if (std::strcmp(name, kNames[i]) == 0) entry.ino = kDevice + i;
  if (!entry.ino) {
    fuse_reply_err(request, ENOENT);
    return;
  }
  entry.attr = attributes_of(entry.ino);
  fuse_reply_entry(request, &entry);
}

void get_attributes(fuse_req_t request, fuse_ino_t inode, fuse_file_info*) {
  const struct stat attributes = attributes_of(inode);
  fuse_reply_attr(request, &attributes, 1);
}

void set_attributes(fuse_req_t request, fuse_ino_t inode, struct stat*, int, fuse_file_info* info) {
  if (inode == kCounters) return get_attributes(request, inode, info);
  fuse_reply_err(request, EPERM);
}

void list(fuse_req_t request, fuse_ino_t, std::size_t bytes, off_t offset, fuse_file_info*) {
  char buffer[512];
  std::size_t used = 0;
  for (auto i = static_cast<std::size_t>(offset); i < std::size(kNames); ++i) {
    const struct stat attributes = attributes_of(kDevice + i);
    const std::size_t left = std::min(bytes, sizeof buffer) - used;
    used += fuse_add_direntry(request, buffer + used, left, kNames[i], &attributes, static_cast<off_t>(i) + 1);
  }
  fuse_reply_buf(request, buffer, used);
}

// A reader of the counters in parts gets those of the moment at which it opened them.
void open_file(fuse_req_t request, fuse_ino_t inode, fuse_file_info* info) {
  info->direct_io = 1;
  if (inode == kCounters) info->fh = reinterpret_cast<std::uint64_t>(new std::string(device.host->counters()));
  fuse_reply_open(request, info);
}

void close_file(fuse_req_t request, fuse_ino_t inode, fuse_file_info* info) {
  if (inode == kCounters) delete reinterpret_cast<std::string*>(info->fh);
  fuse_reply_err(request, 0);
}

void read_counters(fuse_req_t request, const std::string& text, std::size_t bytes, off_t offset) {
  const auto from = std::min(static_cast<std::size_t>(offset), text.size());
  fuse_reply_buf(request, text.data() + from, std::min(bytes, text.size() - from));
}

void read_file(fuse_req_t request, fuse_ino_t inode, std::size_t bytes, off_t offset, fuse_file_info* info) {
  if (inode == kCounters) return read_counters(request, *reinterpret_cast<std::string*>(info->fh), bytes, offset);
  const std::uint64_t from = static_cast<std::uint64_t>(offset), size = device.size;
  bytes = std::min<std::uint64_t>(bytes, size - std::min(size, from));
  device.host->submit({Op::read, from, bytes}, [request, bytes, offset] {
    std::vector<char> buffer(bytes);
    const ssize_t got = ::pread(device.content, buffer.data(), bytes, offset);
    if (got < 0) fuse_reply_err(request, errno);
    else fuse_reply_buf(request, buffer.data(), static_cast<std::size_t>(got));
  });
}

void write_file(fuse_req_t request, fuse_ino_t inode, const char* data, std::size_t bytes, off_t offset, fuse_file_info*) {
  if (inode == kCounters) {
    device.host->reset();
    fuse_reply_write(request, bytes);
    return;
  }
  const std::uint64_t from = static_cast<std::uint64_t>(offset);
  if (from + bytes > device.size) {
    fuse_reply_err(request, ENOSPC);
    return;
  }
  const ssize_t put = ::pwrite(device.content, data, bytes, offset);
  if (put < 0) {
    fuse_reply_err(request, errno);
    return;
  }
  device.host->submit({Op::write, from, static_cast<std::uint64_t>(put)},
                      [request, put] { fuse_reply_write(request, static_cast<std::size_t>(put)); });
}

void answer_when_done(fuse_req_t request, const Request& what) {
  device.host->submit(what, [request] { fuse_reply_err(request, 0); });
}

void flush_device(fuse_req_t request, fuse_ino_t inode, int, fuse_file_info*) {
  if (inode == kDevice) return answer_when_done(request, {Op::flush});
  fuse_reply_err(request, 0);
}

void discard(fuse_req_t request, fuse_ino_t inode, int mode, off_t offset, off_t length, fuse_file_info*) {
  const bool is_discard = (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) != 0;
  const bool zeros = (mode & FALLOC_FL_ZERO_RANGE) != 0;
  if (inode != kDevice || !is_discard || !(zeros || device.host->facts().discards)) {
    fuse_reply_err(request, EOPNOTSUPP);
    return;
  }
  // The kernel passes what reaches behind the end of a file, where there is no device.
  const std::uint64_t size = device.size, from = std::min(size, static_cast<std::uint64_t>(offset));
  const std::uint64_t bytes = std::min(size - from, static_cast<std::uint64_t>(length));
  if (bytes == 0) {
    fuse_reply_err(request, 0);
    return;
  }
  if (::fallocate(device.content, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, static_cast<off_t>(bytes)) != 0) {
    fuse_reply_err(request, errno);
    return;
  }
  answer_when_done(request, {zeros ? Op::write : Op::discard, from, bytes});  // to write zeros discards nothing
}

void begin(void*, fuse_conn_info* connection) { connection->max_write = 1u << 20; }

// One thread takes the requests, so that they reach the device in the order in which the kernel made them.
int serve(const std::string& directory, const char* program) {
  fuse_lowlevel_ops operations{};
  operations.init = begin;
  operations.lookup = look_up;
  operations.getattr = get_attributes;
  operations.setattr = set_attributes;
  operations.readdir = list;
  operations.open = open_file;
  operations.release = close_file;
  operations.read = read_file;
  operations.write = write_file;
  operations.fsync = flush_device;
  operations.fallocate = discard;
  const char* words[] = {program, "-o", "fsname=varve-device,subtype=model"};
  fuse_args arguments = FUSE_ARGS_INIT(3, const_cast<char**>(words));
  fuse_session* const session = fuse_session_new(&arguments, &operations, sizeof operations, nullptr);
  fuse_opt_free_args(&arguments);
  if (!session) return 1;
  int result = 1;
  if (fuse_set_signal_handlers(session) == 0 && fuse_session_mount(session, directory.c_str()) == 0) {
    result = fuse_session_loop(session);
    fuse_session_unmount(session);
  }
  device.host.reset();  // what is under way answers first
  fuse_remove_signal_handlers(session);
  fuse_session_destroy(session);
  return result;
}

std::string names() {
  std::string out;
  for (const auto& entry : varve::bench::catalogue()) out += "  " + std::string(entry.name) + ": " + std::string(entry.what) + "\n";
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Shows a modelled storage device as a file, DIRECTORY/device; ends when DIRECTORY is unmounted.", "bench_device");
  app.footer("Models:\n" + names());
  std::string model, directory;
  std::uint64_t size = 1024 * kMiB;
  double speed = 1;
  app.add_option("--model", model, "which device")->required();
  app.add_option("--size", size, "bytes, a multiple of 32 MiB (suffixes as 1G)")->transform(CLI::AsSizeValue(false));
  app.add_option("--speed", speed, "seconds of the device for each second; 0: requests do not wait")->check(CLI::NonNegativeNumber);
  app.add_option("DIRECTORY", directory, "where to mount")->required()->check(CLI::ExistingDirectory);
  CLI11_PARSE(app, argc, argv);
  if (size == 0 || size % kGrain != 0) {
    std::cerr << "bench_device: --size " << size << ": not a multiple of 32 MiB\n";
    return 2;
  }
  auto made = varve::bench::make_model_for(model, size);
  if (!made) {
    std::cerr << "bench_device: --model " << model << ": no such device; these are known:\n" << names();
    return 2;
  }
  device.size = size;
  device.content = ::memfd_create("device", MFD_CLOEXEC);
  if (device.content < 0 || ::ftruncate(device.content, static_cast<off_t>(size)) != 0) {
    std::cerr << "bench_device: memory for the content: " << std::strerror(errno) << '\n';
    return 1;
  }
  device.host = std::make_unique<Host>(std::move(made), speed);
  return serve(directory, argv[0]);
}
