#include "fuse/operations/request.h"

#include <cstring>
#include <utility>

#include "base/invariant.h"
#include "base/logging.h"
#include "fuse/operations/opcodes.h"

namespace varve::fuse {

void Request::begin(Message& message) {
  MEMORY_INVARIANT(finished_ && !message_);
  message_ = &message;
  body_ = MessageReader(message.arguments(), message.payload());
  umask_ = 0;
  caller_.reset();
  shown_ = {};
  finished_ = false;
  began_ns_ = host_.latencies ? Clock::system().monotonic_ns() : 0;
}

void Request::recycle() {
  MEMORY_INVARIANT(finished_);
  operation_ = nullptr;
  for (auto& operation : operations_) operation.reset();
  std::exchange(message_, nullptr)->release();
}

const CallerIds& Request::caller() {
  if (!caller_) caller_ = caller_ids({header().uid, header().gid}, header().pid);
  return *caller_;
}

void Request::start_operation() {
  auto free = operations_.begin();
  while (free != operations_.end() && *free) ++free;
  MEMORY_INVARIANT(free != operations_.end());
  const CallerIds ids = caller_.value_or(CallerIds{header().uid, header().gid});
  free->emplace(fs().operations(), fs::Caller{ids.uid, ids.gid, header().pid, umask_}, &host_.reactor);
  operation_ = &**free;
  operation_->show(shown_);
}

void Request::end() {
  if (host_.latencies) host_.latencies->add(header().opcode, Clock::system().monotonic_ns() - began_ns_);
  finished_ = true;
  host_.finished.push_back(this);
}

void Request::reply_error(const Error& error) {
  session().errors().note(error, opcode_name(header().opcode), node());
  reply_errno(session().is_shut_down() && error.is(Errc::read_only) ? EIO : error.to_errno());
}

void Request::send(int error, std::span<const std::byte> first, std::span<const std::byte> second) {
  MEMORY_INVARIANT(!finished_);
  // The kernel takes a while to end the writeback of so many pages: what has been started meanwhile should be under way.
  if (header().len >= kLongBytes) host_.reactor.kick();
  end();
  if (const int failure = message_->reply(error, first, second))
    log_error("reply to {} of inode {} refused: {}", opcode_name(header().opcode), node(), std::strerror(failure));
}

}  // namespace varve::fuse
