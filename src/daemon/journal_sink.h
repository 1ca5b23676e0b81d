// Messages for systemd's journal, with fields that one can search by: `journalctl -t varve VARVE_DIRECTORY=/mnt/data`.
// The journal's native protocol: systemd.io/JOURNAL_NATIVE_PROTOCOL. A datagram for each message.
#pragma once

#include <spdlog/sinks/base_sink.h>

#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace varve::daemon {

inline constexpr const char* kJournalSocket = "/run/systemd/journal/socket";

// Never waits: the journal may lie on the very filesystem that writes here. What it does not take at once is lost, and counted in the
// next message.
class JournalSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  using Fields = std::vector<std::pair<std::string, std::string>>;  // names in capitals, as VARVE_DIRECTORY

  JournalSink(std::string socket, Fields fields);
  ~JournalSink() override;
  JournalSink(const JournalSink&) = delete;
  JournalSink& operator=(const JournalSink&) = delete;

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}

 private:
  bool send(const std::string& datagram) const;

  const std::string path_;
  std::string fields_;  // encoded
  int socket_;
  unsigned lost_ = 0;
};

}  // namespace varve::daemon
