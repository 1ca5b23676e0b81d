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

// Exclusively opened. An image file that was created or grown is removed or shrunk again unless keep() is called.
class Target {
 public:
  static Result<Target> open(const TargetRequest& request);

  Target(Target&&) = default;
  Target& operator=(Target&&) = delete;
  ~Target();

  // An image file that is smaller than the size asked for gets it, in a dry run only in geometry(). Not at once, because
  // what it holds may be recognised by its end.
  Status grow();

  io::BlockDevice& device() { return *device_; }
  // Of a dry run: who may use it on another machine; empty: nobody.
  const std::string& holder() const { return holder_; }
  const io::Geometry& geometry() const { return geometry_; }
  bool is_new() const { return undo_ == Undo::remove; }  // there was no such image before
  void keep() { undo_ = Undo::nothing; }

 private:
  enum class Undo { nothing, remove, shrink };

  explicit Target(const TargetRequest& request) : path_(request.path), size_(request.size), dry_run_(request.dry_run) {}
  Status open_device();

  std::string path_;
  std::uint64_t size_;  // bytes that are asked for
  bool dry_run_;
  std::unique_ptr<io::BlockDevice> device_;
  io::Geometry geometry_;
  std::string holder_;
  Undo undo_ = Undo::nothing;
  std::uint64_t old_size_ = 0;
};

}  // namespace varve::mkfs
