#include "remote/nbd_connection.h"

#include <fmt/format.h>
#include <libnbd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

namespace varve::remote {

namespace {

std::string libnbd_error() {
  const char* text = nbd_get_error();
  return text ? text : "unknown error";
}

struct Callback {
  NbdConnection::Answered answered;
  void* context;
};

int on_answer(void* user, int* error) {
  const auto* callback = static_cast<const Callback*>(user);
  callback->answered(callback->context, *error);
  return 1;  // retired
}

void on_free(void* user) { delete static_cast<Callback*>(user); }

bool says(int answer) { return answer > 0; }

}  // namespace

Result<std::unique_ptr<NbdConnection>> NbdConnection::make() {
  nbd_handle* handle = nbd_create();
  if (!handle) return Error(Errc::no_memory, libnbd_error());
  std::unique_ptr<NbdConnection> made(new NbdConnection(handle));
  nbd_set_uri_allow_local_file(handle, true);  // keys for TLS, which the user names
  return made;
}

Result<std::unique_ptr<NbdConnection>> NbdConnection::begin(const std::string& uri) {
  auto made = TRY(make());
  if (nbd_aio_connect_uri(made->handle_, uri.c_str()) != 0) return Error(Errc::io, libnbd_error());
  return made;
}

Result<std::unique_ptr<NbdConnection>> NbdConnection::connect(const std::string& uri, std::uint64_t patience_ns) {
  auto made = TRY(begin(uri));
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(patience_ns);
  while (made->state() == State::connecting) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    if (left <= 0) return Error(Errc::io, fmt::format("no answer within {} s", patience_ns / 1'000'000'000));
    pollfd waiting{made->fd(), made->events(), 0};
    if (::poll(&waiting, 1, static_cast<int>(std::min<std::int64_t>(left, 1000))) > 0) made->notify(waiting.revents);
  }
  if (made->state() == State::dead) return Error(Errc::io, made->why_dead());
  return made;
}

NbdConnection::~NbdConnection() {
  if (!cut_ && says(nbd_aio_is_ready(handle_))) nbd_aio_disconnect(handle_, 0);
  nbd_close(handle_);
}

NbdConnection::State NbdConnection::state() {
  if (says(nbd_aio_is_dead(handle_)) || says(nbd_aio_is_closed(handle_))) return State::dead;
  if (says(nbd_aio_is_connecting(handle_)) || says(nbd_aio_is_created(handle_))) return State::connecting;
  if (!std::exchange(tuned_, true)) tune_socket();
  return State::ready;
}

// A machine that is gone is noticed, also while nothing is asked of it, and nothing is delivered long after it was sent.
void NbdConnection::tune_socket() {
  const int socket = fd(), yes = 1, second = 1, milliseconds = static_cast<int>(kDeliveryNs / 1'000'000);
  ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof milliseconds);  // says no for a local socket
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &second, sizeof second);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &second, sizeof second);
  ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
}

NbdExport NbdConnection::facts() const {
  NbdExport facts;
  facts.size = static_cast<std::uint64_t>(std::max<std::int64_t>(nbd_get_size(handle_), 0));
  facts.read_only = nbd_is_read_only(handle_) != 0;
  facts.can_flush = says(nbd_can_flush(handle_));
  facts.can_fua = says(nbd_can_fua(handle_));
  facts.can_trim = says(nbd_can_trim(handle_));
  facts.multi = says(nbd_can_multi_conn(handle_));
  facts.least = static_cast<std::uint64_t>(std::max<std::int64_t>(nbd_get_block_size(handle_, LIBNBD_SIZE_MINIMUM), 1));
  facts.most = static_cast<std::uint64_t>(std::max<std::int64_t>(nbd_get_block_size(handle_, LIBNBD_SIZE_MAXIMUM), 0));
  return facts;
}

std::string NbdConnection::why_dead() const { return error_.empty() ? "the connection was closed" : error_; }

bool NbdConnection::send(const NbdCommand& command, Answered answered, void* context) {
  const nbd_completion_callback callback{on_answer, new Callback{answered, context}, on_free};
  std::int64_t cookie = -1;
  switch (command.kind) {
    case NbdKind::read:
      cookie = nbd_aio_pread(handle_, command.data, command.length, command.offset, callback, 0);
      break;
    case NbdKind::write:
      cookie = nbd_aio_pwrite(handle_, command.data, command.length, command.offset, callback,
                              command.durable ? LIBNBD_CMD_FLAG_FUA : 0U);
      break;
    case NbdKind::flush:
      cookie = nbd_aio_flush(handle_, callback, 0);
      break;
    case NbdKind::trim:
      cookie = nbd_aio_trim(handle_, command.length, command.offset, callback, 0);
      break;
  }
  if (cookie < 0) error_ = libnbd_error();
  return cookie >= 0;
}

int NbdConnection::fd() const { return nbd_aio_get_fd(handle_); }

short NbdConnection::events() const {
  const unsigned direction = nbd_aio_get_direction(handle_);
  short events = 0;
  if (direction & LIBNBD_AIO_DIRECTION_READ) events |= POLLIN;
  if (direction & LIBNBD_AIO_DIRECTION_WRITE) events |= POLLOUT;
  return events;
}

// What has come is read first: an answer may stand before the end of the connection.
void NbdConnection::notify(short events) {
  const unsigned direction = nbd_aio_get_direction(handle_);
  int result = 0;
  if ((events & (POLLIN | POLLHUP | POLLERR)) && (direction & LIBNBD_AIO_DIRECTION_READ)) result = nbd_aio_notify_read(handle_);
  else if ((events & (POLLOUT | POLLHUP | POLLERR)) && (direction & LIBNBD_AIO_DIRECTION_WRITE)) result = nbd_aio_notify_write(handle_);
  if (result != 0) error_ = libnbd_error();
}

void NbdConnection::cut() {
  const linger at_once{1, 0};
  ::setsockopt(fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  cut_ = true;
}

}  // namespace varve::remote
