// An image in a file for the fsck command, in a folder of its own.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "fsck/command.h"
#include "fsck/recovery.h"
#include "io/mem_device.h"

namespace varve::repair::test {

class FsckImage {
 public:
  FsckImage() {
    char path[] = "/tmp/varve-fsck-image-XXXXXX";
    folder_ = mkdtemp(path);
  }
  ~FsckImage() { std::filesystem::remove_all(folder_); }

  std::string path(const char* name = "image") const { return folder_ / name; }
  void save(const io::MemDevice& device) const { ASSERT_TRUE(device.save(path()).ok()); }
  std::unique_ptr<io::MemDevice> load() const { return std::move(io::MemDevice::load(path())).value(); }
  std::vector<unsigned char> bytes() const { return bytes_of(*load()); }

  static std::vector<unsigned char> bytes_of(const io::MemDevice& device) {
    std::vector<unsigned char> bytes(device.geometry().size_bytes);  // two of them are compared much faster than two of std::byte
    device.peek(0, std::as_writable_bytes(std::span(bytes)));
    return bytes;
  }

  // The exit code.
  int fsck(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "fsck.varve");
    arguments.push_back(path());
    std::vector<const char*> argv;
    for (const auto& argument : arguments) argv.push_back(argument.c_str());
    std::ostringstream out;
    const int code = fsck::run(static_cast<int>(argv.size()), argv.data(), {out, out, false, recover});
    said_ = out.str();
    return code;
  }
  const std::string& said() const { return said_; }

  Recover recover = fsck::recover;

 private:
  std::filesystem::path folder_;
  std::string said_;
};

}  // namespace varve::repair::test
