#include "varve/progress.h"

#include <unistd.h>

#include <algorithm>
#include <ostream>
#include <thread>
#include <utility>

#include "varve/interruptible.h"

namespace varve::tool {

Result<Json> wait_for_end(const Progress& progress, IoLayer& io) {
  constexpr std::size_t kWidth = 110;
  const bool shows = progress.shows && ::isatty(STDERR_FILENO);
  bool told = false;
  for (std::chrono::milliseconds pause{20};; pause = std::min(2 * pause, progress.longest)) {
    Json state = TRY(progress.state());
    if (Interruptible::asked() && !std::exchange(told, true)) TRY(progress.stop());
    if (state.value("state", "") != "running") {
      if (shows) io.err << "\r\x1b[K" << std::flush;
      return state;
    }
    if (shows) io.err << "\r\x1b[K" << progress.line(state).substr(0, kWidth) << std::flush;
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace varve::tool
