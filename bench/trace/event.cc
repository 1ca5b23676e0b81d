#include "trace/event.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <string_view>

namespace varve::bench {

namespace {

constexpr std::string_view kMark = "#mark ";

class Line {
 public:
  explicit Line(std::string_view text) : rest_(text) {}

  bool more() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size()));
    return !rest_.empty();
  }
  std::string_view word() {
    if (!more()) throw std::invalid_argument("a field is missing");
    const std::string_view found = rest_.substr(0, rest_.find(' '));
    rest_.remove_prefix(found.size());
    return found;
  }
  std::uint64_t number() {
    const std::string_view text = word();
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.begin(), text.end(), value);
    if (error != std::errc() || end != text.end()) throw std::invalid_argument("no number: " + std::string(text));
    return value;
  }

 private:
  std::string_view rest_;
};

Op op_of(std::string_view word) {
  constexpr std::string_view kOps = "RWFD";  // by Op
  const auto at = word.size() == 1 ? kOps.find(word[0]) : std::string_view::npos;
  if (at == std::string_view::npos) throw std::invalid_argument("no operation: " + std::string(word));
  return static_cast<Op>(at);
}

TracedRequest event_of(std::string_view text) {
  Line line(text);
  TracedRequest event;
  event.at_ns = line.number();
  event.request.op = op_of(line.word());
  event.request.offset = line.number();
  event.request.length = line.number();
  for (const char flag : line.word()) {
    if (flag == 'f' || flag == 'S') event.request.durable = true;
    if (flag == 'p') event.flush_first = true;
    if (std::string_view("-fSpzmsc").find(flag) == std::string_view::npos)
      throw std::invalid_argument(std::string("no flag: ") + flag);
  }
  event.timed = line.more();
  if (event.timed) event.took_ns = line.number();
  if (line.more()) throw std::invalid_argument("more than there should be");
  return event;
}

}  // namespace

void read_trace(std::istream& in, const TraceReader& reader) {
  std::uint64_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.starts_with(kMark)) {
      reader.mark(line.substr(kMark.size()));
    } else if (!line.empty() && line[0] != '#') {
      try {
        reader.request(event_of(line));
      } catch (const std::invalid_argument& error) {
        throw std::runtime_error("line " + std::to_string(number) + ": " + error.what());
      }
    }
  }
}

}  // namespace varve::bench
