// One connection to an NBD server, by libnbd: commands go out at once, answers come back by notify(). Used by one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"

struct nbd_handle;

namespace varve::remote {

// What a server says about an export.
struct NbdExport {
  std::uint64_t size = 0;
  bool read_only = false;
  bool can_flush = false;
  bool can_fua = false;
  bool can_trim = false;
  bool multi = false;                   // a flush on one connection covers all
  std::uint64_t least = 1, most = 0;    // bytes of a request; 0: it does not say
};

enum class NbdKind : std::uint8_t { read, write, flush, trim };

struct NbdCommand {
  NbdKind kind = NbdKind::read;
  bool durable = false;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::byte* data = nullptr;  // stays until answered, or until the connection has been closed
};

class NbdConnection {
 public:
  enum class State : std::uint8_t { connecting, ready, dead };
  // Called inside send() and notify(). ENOTCONN and ESHUTDOWN: the connection was lost, not the command refused.
  using Answered = void (*)(void* context, int error);

  // Begins to connect.
  static Result<std::unique_ptr<NbdConnection>> begin(const std::string& uri);
  // Waits until it is connected, or cannot be: or does not answer in time.
  static Result<std::unique_ptr<NbdConnection>> connect(const std::string& uri, std::uint64_t patience_ns);
  ~NbdConnection();  // says good-bye if it can without waiting; unanswered commands are never answered

  State state();
  NbdExport facts() const;
  std::string why_dead() const;

  // False: it could not be sent, and will not be answered.
  bool send(const NbdCommand& command, Answered answered, void* context);
  int fd() const;
  short events() const;  // for poll(2)
  void notify(short events);
  // What the kernel has not delivered yet will never be.
  void cut();
  bool is_cut() const { return cut_; }

 private:
  explicit NbdConnection(nbd_handle* handle) : handle_(handle) {}
  static Result<std::unique_ptr<NbdConnection>> make();
  void tune_socket();

  nbd_handle* handle_;
  bool tuned_ = false, cut_ = false;
  std::string error_;
};

// The longest time for which the kernel goes on to deliver what was given to it, in nanoseconds (TCP_USER_TIMEOUT).
inline constexpr std::uint64_t kDeliveryNs = 4'000'000'000;

}  // namespace varve::remote
