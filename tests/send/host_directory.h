// A directory of the host that is gone after the test.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "send/stream.h"

namespace varve::test {

class HostDirectory {
 public:
  HostDirectory() : path_((std::filesystem::temp_directory_path() / "varve-send-XXXXXX").string()) {
    if (!::mkdtemp(path_.data())) throw std::runtime_error("no directory for a test");
  }
  ~HostDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  HostDirectory(const HostDirectory&) = delete;
  HostDirectory& operator=(const HostDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Bytes of a stream, from the beginning.
inline send::Source reading(const send::Bytes& bytes) {
  return [&bytes, at = std::size_t{0}](std::span<std::byte> out) mutable -> Status {
    if (bytes.size() - at < out.size()) return Errc::out_of_range;
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), out.size(), out.begin());
    at += out.size();
    return {};
  };
}
inline send::Sink writing(send::Bytes& bytes) {
  return [&bytes](std::span<const std::byte> more) -> Status {
    bytes.insert(bytes.end(), more.begin(), more.end());
    return {};
  };
}

}  // namespace varve::test
