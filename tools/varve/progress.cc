#include "varve/progress.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "shared/interruptible.h"
#include "shared/progress_meter.h"

namespace varve::tool {

Result<Json> wait_for_end(Volume& volume, const Progress& progress, IoLayer& io) {
  ProgressMeter meter(io.err, progress.shows);
  bool told = false;
  for (std::chrono::milliseconds pause{20};; pause = std::min(2 * pause, progress.longest)) {
    Json state = TRY(volume.ask(progress.what + "_report"));
    if (Interruptible::asked() && !std::exchange(told, true)) TRY(volume.tell(progress.what + "_stop"));
    if (state.value("state", "") != "running") return state;
    meter.show([&] { return progress.line(state); }, progress.share(state));
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace varve::tool
