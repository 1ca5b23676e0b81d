// Takes what is logged while it exists, which is not shown then.
#pragma once

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <sstream>
#include <string>
#include <string_view>

namespace varve::test {

class Listener {
 public:
  Listener() : before_(spdlog::default_logger()) {
    auto logger = std::make_shared<spdlog::logger>("heard", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_));
    logger->set_level(spdlog::level::warn);
    spdlog::set_default_logger(std::move(logger));
  }
  ~Listener() { spdlog::set_default_logger(before_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  std::size_t count(std::string_view words) const {
    const std::string text = text_.str();
    std::size_t found = 0;
    for (std::size_t at = text.find(words); at != text.npos; at = text.find(words, at + 1)) ++found;
    return found;
  }
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> before_;
};

}  // namespace varve::test
