// An image that a crash has left, with chunks to replay.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "support/good.h"
#include "sweep.h"

namespace varve::test {

// Of a script that was recorded: its last cut.
struct Unclean {
  explicit Unclean(const std::string& text, const std::string& start = "create /a 0644; create /b 0644")
      : recording({}, prepare({}, script(start)), script(text)), image(recording.device().image_now()) {
    EXPECT_TRUE(good(recording.failed()));
  }
  const ModelFs& last() const { return recording.states().back().model; }

  Recording recording;
  std::unique_ptr<io::MemDevice> image;
};

inline constexpr const char* kSyncedSteps =
    "write /a 0 4096 1; fsync /a; write /b 0 8192 2; fsync /b; create /c 0644; write /c 0 4096 3; fsync /c;"
    "create /d 0644; fsync /d; write /a 4096 4096 4; fsync /a";

}  // namespace varve::test
