// Documents that a tool is reading piece by piece (control.h).
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "base/mutex.h"
#include "base/result.h"
#include "control/control.h"

namespace varve::fuse {

class StatusPages {  // thread-safe; keeps the last few
 public:
  // Makes a new one from `text` and returns its first piece.
  control::StatusPage add(std::string text);
  Result<control::StatusPage> page(std::uint64_t document, std::uint32_t offset);  // Errc::no_attribute: forgotten

 private:
  struct Document {
    std::uint64_t name;
    std::string text;
  };
  Mutex mutex_;
  std::uint64_t next_name_ GUARDED_BY(mutex_) = 1;
  std::deque<Document> documents_ GUARDED_BY(mutex_);
};

}  // namespace varve::fuse
