#include "daemon/journal_sink.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string_view>

namespace varve::daemon {

namespace {

// A value of one line stands after '='. Any other stands after its length, 64 bits in little-endian order.
void append_field(std::string& to, std::string_view name, std::string_view value) {
  to += name;
  if (value.find('\n') == std::string_view::npos) {
    to += '=';
  } else {
    to += '\n';
    for (unsigned shift = 0; shift < 64; shift += 8) to += static_cast<char>(std::uint64_t{value.size()} >> shift);
  }
  to += value;
  to += '\n';
}

int priority_of(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::critical: return LOG_CRIT;
    case spdlog::level::err: return LOG_ERR;
    case spdlog::level::warn: return LOG_WARNING;
    case spdlog::level::info: return LOG_INFO;
    default: return LOG_DEBUG;
  }
}

}  // namespace

JournalSink::JournalSink(std::string socket, Fields fields)
    : path_(std::move(socket)), socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  append_field(fields_, "SYSLOG_IDENTIFIER", "varve");
  append_field(fields_, "SYSLOG_FACILITY", std::to_string(LOG_DAEMON >> 3));
  append_field(fields_, "SYSLOG_PID", std::to_string(::getpid()));
  for (const auto& [name, value] : fields) append_field(fields_, name, value);
}

JournalSink::~JournalSink() {
  if (socket_ >= 0) ::close(socket_);
}

void JournalSink::sink_it_(const spdlog::details::log_msg& message) {
  std::string datagram = fields_;
  append_field(datagram, "PRIORITY", std::to_string(priority_of(message.level)));
  const std::string_view text(message.payload.data(), message.payload.size());
  append_field(datagram, "MESSAGE", lost_ ? fmt::format("{} ({} messages before this one were lost)", text, lost_) : std::string(text));
  if (send(datagram))
    lost_ = 0;
  else
    ++lost_;
}

// Without a connection: the journal may be restarted meanwhile.
bool JournalSink::send(const std::string& datagram) const {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path_.size() >= sizeof address.sun_path) return false;
  std::memcpy(address.sun_path, path_.c_str(), path_.size() + 1);
  return ::sendto(socket_, datagram.data(), datagram.size(), MSG_NOSIGNAL | MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&address),
                  sizeof address) == static_cast<ssize_t>(datagram.size());
}

}  // namespace varve::daemon
