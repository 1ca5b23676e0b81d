// A real NBD server for tests: nbdkit, on a local socket. It can be killed and started again.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "io/block_device.h"

namespace varve::io::test {

class NbdServer {
 public:
  static bool is_there();  // nbdkit is installed, and Varve knows NBD
  // `arguments` of nbdkit: filters, the plugin and its settings.
  explicit NbdServer(std::vector<std::string> arguments);
  ~NbdServer();
  NbdServer(const NbdServer&) = delete;
  NbdServer& operator=(const NbdServer&) = delete;

  const std::string& uri() const { return uri_; }
  const std::string& folder() const { return folder_; }
  void start();
  void kill();  // as kill -9
  void signal(int number) const;

 private:
  std::vector<std::string> arguments_;
  std::string folder_, uri_;
  pid_t pid_ = -1;
};

}  // namespace varve::io::test
