// One request: its message, its operation in the filesystem, and the one reply that it gets.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "fs/filesystem.h"
#include "fuse/operations/session.h"
#include "fuse/protocol/message_reader.h"
#include "fuse/protocol/privilege.h"
#include "fuse/protocol/protocol.h"
#include "fuse/transport/message.h"

namespace varve::fuse {

class Request;

// What a request needs of the thread that serves it.
struct RequestHost {
  Session& session;
  io::Reactor& reactor;
  const std::shared_ptr<BufferPool>& pool;
  std::vector<Request*>& finished;  // those to recycle
  Latencies* latencies = nullptr;   // where their times are counted
};

// Belongs to one serving thread, which reuses it. Lives until it has been finished: by a reply, or by end(). Nothing
// may be touched through it after that, but it stays valid until the thread comes around to recycle().
class Request {
 public:
  explicit Request(RequestHost host) : host_(host) {}
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  // Serves this message from now on, until recycle().
  void begin(Message& message);
  bool finished() const { return finished_; }
  void recycle();  // frees everything but the object, and releases the message

  // --- what is asked ---
  const fuse_in_header& header() const { return message_->header(); }
  // User and group of the caller. The first call may look into /proc: it is for what rarely matters.
  const CallerIds& caller();
  Ino node() const { return Ino{header().nodeid}; }
  MessageReader& body() { return body_; }
  Session& session() { return host_.session; }
  fs::Filesystem& fs() { return host_.session.fs(); }
  fs::Operation& operation() { return *operation_; }
  void set_umask(std::uint32_t umask) { umask_ = umask; }
  void show(Serial snapshot) { shown_ = snapshot; }  // what comes then is asked of this snapshot

  // --- serving ---
  // Calls attempt() -> Result<T> until it has an answer, then finish(T) or, for Status, finish(). Replies errors.
  template <class Attempt, class Finish>
  void serve(Attempt attempt, Finish finish);
  // The same for a change; finish comes when it is durable, if the mount is to keep it that soon.
  template <class Attempt, class Finish>
  void serve_change(Change change, Attempt attempt, Finish finish);
  // As serve(), with finish(Result<T>), errors included. finish may begin another serve().
  template <class Attempt, class Finish>
  void serve_result(Attempt attempt, Finish finish);
  // Of the serving thread; valid beyond the request.
  io::Reactor& reactor() { return host_.reactor; }
  const std::shared_ptr<BufferPool>& pool() { return host_.pool; }
  // Thread-safe: runs `task` on the serving thread.
  void post(std::function<void()> task) {
    host_.reactor.post(std::move(task));
  }
  // The owner of the message's bytes from now on, for a filesystem that goes on using them; null if they should be copied.
  log::PayloadBufferPtr keep_message() { return message_->keep_payload(); }
  // Page-aligned bytes for the reply, kept until it is sent.
  std::span<std::byte> reply_space(std::size_t bytes) { return message_->reply_room(bytes); }

  // --- the reply ---
  void reply_error(const Error& error);
  void reply_errno(int number) { send(-number, {}, {}); }
  void reply() { send(0, {}, {}); }
  void reply_bytes(std::span<const std::byte> bytes) { send(0, bytes, {}); }
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void reply_struct(const T& value, std::span<const std::byte> more = {}) {
    send(0, std::as_bytes(std::span(&value, 1)), more);
  }
  void end();  // without one: FORGET

 private:
  static constexpr std::size_t kLongBytes = 512u << 10;

  void start_operation();
  void send(int error, std::span<const std::byte> first, std::span<const std::byte> second);

  const RequestHost host_;
  Message* message_ = nullptr;
  MessageReader body_;
  std::uint32_t umask_ = 0;
  std::optional<CallerIds> caller_;  // once it was asked for
  Serial shown_;
  std::uint64_t began_ns_ = 0;
  bool finished_ = true;
  // A request that takes several steps keeps their operations until its end: callbacks may still be on the stack.
  static constexpr std::size_t kMaxSteps = 4;
  std::array<std::optional<fs::Operation>, kMaxSteps> operations_;
  fs::Operation* operation_ = nullptr;
};

template <class Attempt, class Finish>
void Request::serve_result(Attempt attempt, Finish finish) {
  start_operation();
  operation::run(*operation_, std::move(attempt), std::move(finish));
}

template <class Attempt, class Finish>
void Request::serve(Attempt attempt, Finish finish) {
  serve_result(std::move(attempt), [this, finish = std::move(finish)](decltype(attempt()) result) mutable {
    if (!result.ok()) return reply_error(result.error());
    if constexpr (std::is_same_v<decltype(result), Status>) {
      finish();
    } else {
      finish(std::move(result).value());
    }
  });
}

// Where syncing fails, the filesystem has become read-only for good: that the change is there nevertheless does no harm.
template <class Attempt, class Finish>
void Request::serve_change(Change change, Attempt attempt, Finish finish) {
  if (!session().settings().durable.include(change)) return serve(std::move(attempt), std::move(finish));
  serve(std::move(attempt), [this, finish = std::move(finish)](auto... result) mutable {
    serve([this] { return fs().sync(operation()); },
          [finish = std::move(finish), ... result = std::move(result)]() mutable { finish(std::move(result)...); });
  });
}

}  // namespace varve::fuse
