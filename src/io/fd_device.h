// A device behind a file descriptor: what uring_device and thread_device share.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "io/block_device.h"
#include "io/thread_pool.h"

namespace varve::io {

// An opened and locked block device or image file. Owns the descriptor and the lock. The lock goes with the object even
// where a fork shares the descriptor: a program that becomes a daemon opens the device in the process that goes on.
struct OpenFile {
  int fd = -1;
  std::string name;
  Geometry geometry;
  bool read_only = false;
  unsigned queue_depth = 256;

  OpenFile() = default;
  OpenFile(OpenFile&& other) noexcept;
  OpenFile& operator=(OpenFile&&) = delete;
  ~OpenFile();
};

class FdDevice : public BlockDevice {
 public:
  const Geometry& geometry() const override { return file_.geometry; }
  const std::string& name() const override { return file_.name; }
  bool read_only() const override { return file_.read_only; }

  int fd() const { return file_.fd; }
  unsigned queue_depth() const { return file_.queue_depth; }
  ThreadPool& pool();  // started when first asked for

  // With blocking system calls.
  int execute(IoRequest& request) override;

 protected:
  FdDevice(OpenFile file, const char* backend);

 private:
  OpenFile file_;
  std::once_flag pool_started_;
  std::unique_ptr<ThreadPool> pool_;
};

}  // namespace varve::io
