// A call that returns when a daemon has done something, and for no signal: meanwhile it is shown that it goes on, and Ctrl-C ends the tool.
#pragma once

#include <signal.h>

#include <string>
#include <thread>

#include "base/mutex.h"
#include "varve/io_layer.h"

namespace varve::tool {

// For as long as it lives, SIGINT, SIGTERM and SIGHUP print what they leave and end the process by _Exit(): nothing may be half done in
// it then.
class KernelWait {
 public:
  struct Words {
    std::string doing;  // "making a checkpoint"
    std::string left;   // what an interruption leaves, for its message
    bool json = false;  // no progress, and the message is JSON as well
  };
  KernelWait(IoLayer& io, Words words);
  ~KernelWait();
  KernelWait(const KernelWait&) = delete;
  KernelWait& operator=(const KernelWait&) = delete;

 private:
  void watch();
  [[noreturn]] void end(int signal);

  IoLayer& io_;
  const Words words_;
  sigset_t signals_{}, before_{};
  Mutex mutex_;
  Condition changed_;
  bool is_over_ GUARDED_BY(mutex_) = false;
  std::thread watch_;
};

// For what a mount does to its end, whether or not somebody waits for it.
inline const char* const kMountGoesOn = "the mount goes on with it by itself, and nothing is lost";

}  // namespace varve::tool
