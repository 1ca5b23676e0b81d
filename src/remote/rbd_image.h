// An image of a Ceph cluster, opened by librbd: what is asked of it before and after the requests, and its lock. Calls block.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "io/block_device.h"
#include "remote/rbd_library.h"
#include "remote/rbd_name.h"

namespace varve::remote {

class RbdImage {
 public:
  // `name` for messages. No call, and no request, takes much longer than `patience_s` when the cluster does not answer.
  static Result<std::unique_ptr<RbdImage>> open(const std::string& name, bool read_only, unsigned patience_s);
  ~RbdImage();
  RbdImage(const RbdImage&) = delete;
  RbdImage& operator=(const RbdImage&) = delete;

  const RbdLibrary& library() const { return library_; }
  rbd_image_t handle() const { return image_; }
  Result<std::uint64_t> size() const;

  // Takes the exclusive lock, and gives it to no client that asks. What the former owner has sent and sends is refused by the cluster.
  Status lock(io::ShutOut others);
  // Of an image that was opened to be read: whether a client that lives has it open to write.
  bool has_writer() const;
  // A request was given up without an answer: at the end the cluster is told to refuse what still comes, and is not waited for long.
  void gave_up() { gave_up_ = true; }

 private:
  RbdImage(const RbdLibrary& library, std::string name) : library_(library), name_(std::move(name)) {}
  Status connect(const RbdName& parsed, unsigned patience_s);
  Status configure(const RbdName& parsed, unsigned patience_s);
  Status open_image(const RbdName& parsed, bool read_only);
  Status check_features() const;
  Error failed(const char* what, int result, const char* remedy) const;
  Error in_use_by(const std::string& owner) const;

  std::string address_of(std::uint64_t client) const;
  bool is_watching(const std::string& address) const;
  std::optional<std::string> owner() const;

  const RbdLibrary& library_;
  const std::string name_;
  rados_t cluster_ = nullptr;
  rados_ioctx_t pool_ = nullptr;
  rbd_image_t image_ = nullptr;
  std::string own_address_;
  std::atomic<bool> gave_up_{false};
};

}  // namespace varve::remote
