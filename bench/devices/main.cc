// Shows a directory with one file, `device`, whose I/O takes the time of a modelled device and has its inner life. A loop device on
// it carries any filesystem. `counters` says what the device has done; writing to it begins anew.
#define FUSE_USE_VERSION 314
#include <fcntl.h>
#include <fuse.h>
#include <sys/mman.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>

#include "host.h"
#include "models/catalogue.h"

namespace {

using varve::bench::Host;
using varve::bench::Op;
using varve::bench::Request;

constexpr std::uint64_t kMiB = 1u << 20, kGrain = 32 * kMiB;

struct Device {
  std::unique_ptr<Host> host;
  int content = -1;  // a file without a name
};
Device device;

bool is_device(const char* path) { return std::strcmp(path, "/device") == 0; }
bool is_counters(const char* path) { return std::strcmp(path, "/counters") == 0; }

int get_attributes(const char* path, struct stat* out, fuse_file_info*) {
  *out = {};
  if (std::strcmp(path, "/") == 0) {
    out->st_mode = S_IFDIR | 0755;
    out->st_nlink = 2;
    return 0;
  }
  if (!is_device(path) && !is_counters(path)) return -ENOENT;
  out->st_mode = S_IFREG | 0644;
  out->st_nlink = 1;
  out->st_size = is_device(path) ? static_cast<off_t>(device.host->facts().size) : 0;
  return 0;
}

int list(const char*, void* buffer, fuse_fill_dir_t fill, off_t, fuse_file_info*, fuse_readdir_flags) {
  for (const char* name : {".", "..", "device", "counters"}) fill(buffer, name, nullptr, 0, static_cast<fuse_fill_dir_flags>(0));
  return 0;
}

// Whoever reads the counters in parts reads those of the moment at which they were opened.
int open_file(const char* path, fuse_file_info* info) {
  info->direct_io = 1;
  if (is_counters(path)) info->fh = reinterpret_cast<std::uint64_t>(new std::string(device.host->counters()));
  return 0;
}

int release_file(const char* path, fuse_file_info* info) {
  if (is_counters(path)) delete reinterpret_cast<std::string*>(info->fh);
  return 0;
}

int read_counters(const std::string& text, char* buffer, std::size_t bytes, off_t offset) {
  const auto from = std::min(static_cast<std::size_t>(offset), text.size());
  return static_cast<int>(text.copy(buffer, bytes, from));
}

int read_file(const char* path, char* buffer, std::size_t bytes, off_t offset, fuse_file_info* info) {
  if (is_counters(path)) return read_counters(*reinterpret_cast<std::string*>(info->fh), buffer, bytes, offset);
  const std::uint64_t size = device.host->facts().size;
  bytes = std::min<std::uint64_t>(bytes, size - std::min<std::uint64_t>(size, static_cast<std::uint64_t>(offset)));
  device.host->carry_out({Op::read, static_cast<std::uint64_t>(offset), bytes});
  const ssize_t got = ::pread(device.content, buffer, bytes, offset);
  return got < 0 ? -errno : static_cast<int>(got);
}

int write_file(const char* path, const char* buffer, std::size_t bytes, off_t offset, fuse_file_info*) {
  if (is_counters(path)) {
    device.host->reset();
    return static_cast<int>(bytes);
  }
  if (static_cast<std::uint64_t>(offset) + bytes > device.host->facts().size) return -ENOSPC;
  const ssize_t put = ::pwrite(device.content, buffer, bytes, offset);
  if (put < 0) return -errno;
  device.host->carry_out({Op::write, static_cast<std::uint64_t>(offset), static_cast<std::uint64_t>(put)});
  return static_cast<int>(put);
}

int flush_device(const char* path, int, fuse_file_info*) {
  if (is_device(path)) device.host->carry_out({Op::flush, 0, 0});
  return 0;
}

int discard(const char* path, int mode, off_t offset, off_t length, fuse_file_info*) {
  if (!is_device(path) || !device.host->facts().discards) return -EOPNOTSUPP;
  if (!(mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE))) return -EOPNOTSUPP;
  if (::fallocate(device.content, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, length) != 0) return -errno;
  device.host->carry_out({Op::discard, static_cast<std::uint64_t>(offset), static_cast<std::uint64_t>(length)});
  return 0;
}

int truncate_file(const char* path, off_t, fuse_file_info*) { return is_counters(path) ? 0 : -EPERM; }

void* begin(fuse_conn_info* connection, fuse_config* config) {
  config->kernel_cache = 0;
  config->direct_io = 1;
  connection->max_write = 1u << 20;
  return nullptr;
}

int serve(const std::string& directory, const std::string& program) {
  fuse_operations operations{};
  operations.init = begin;
  operations.getattr = get_attributes;
  operations.readdir = list;
  operations.open = open_file;
  operations.release = release_file;
  operations.read = read_file;
  operations.write = write_file;
  operations.fsync = flush_device;
  operations.fallocate = discard;
  operations.truncate = truncate_file;
  std::string words[] = {program, "-f", directory, "-o", "fsname=varve-device,subtype=model,max_threads=64"};
  char* arguments[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(), words[4].data()};
  return ::fuse_main(5, arguments, &operations, nullptr);
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
  auto made = varve::bench::make_model(model, size);
  if (!made) {
    std::cerr << "bench_device: --model " << model << ": no such device; these are known:\n" << names();
    return 2;
  }
  device.content = ::memfd_create("device", MFD_CLOEXEC);
  if (device.content < 0 || ::ftruncate(device.content, static_cast<off_t>(size)) != 0) {
    std::cerr << "bench_device: memory for the content: " << std::strerror(errno) << '\n';
    return 1;
  }
  device.host = std::make_unique<Host>(std::move(made), speed);
  return serve(directory, argv[0]);
}
