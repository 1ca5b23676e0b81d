// Messages in a file that is made with the first of them: a daemon that has nothing to say leaves no empty file behind.
#pragma once

#include <spdlog/details/file_helper.h>
#include <spdlog/sinks/base_sink.h>

#include <mutex>
#include <string>
#include <utility>

namespace varve::daemon {

class LateFileSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit LateFileSink(std::string path) : path_(std::move(path)) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (!is_open_) file_.open(path_);
    is_open_ = true;
    spdlog::memory_buf_t text;
    formatter_->format(message, text);
    file_.write(text);
  }
  void flush_() override {
    if (is_open_) file_.flush();
  }

 private:
  const std::string path_;
  spdlog::details::file_helper file_;
  bool is_open_ = false;
};

}  // namespace varve::daemon
