// The device or image that mkfs works on.
#pragma once

#include <memory>
#include <string>

#include "io/block_device.h"

namespace varve::mkfs {

struct TargetRequest {
  std::string path;
  std::uint64_t size = 0;  // bytes; an image that does not exist is created with it
  bool dry_run = false;
};

// Exclusively opened. An image file that open() created or grew is removed or shrunk again unless keep() is called.
class Target {
 public:
  static Result<Target> open(const TargetRequest& request);

  Target(Target&&) = default;
  Target& operator=(Target&&) = delete;
  ~Target();

  io::BlockDevice& device() { return *device_; }
  void keep() { undo_ = Undo::nothing; }

 private:
  enum class Undo { nothing, remove, shrink };

  explicit Target(std::string path) : path_(std::move(path)) {}

  std::string path_;
  std::unique_ptr<io::BlockDevice> device_;
  Undo undo_ = Undo::nothing;
  std::uint64_t old_size_ = 0;
};

}  // namespace varve::mkfs
