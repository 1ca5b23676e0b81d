// Copying: whole segments are emptied, what lives in them goes to the heads of its groups (Sprite LFS).
#include <fmt/format.h>

#include "base/counted.h"
#include "cleaner/strategy/builtin.h"
#include "cleaner/workbench.h"

namespace varve::cleaner {
namespace {

class Copying final : public Strategy {
 public:
  std::string_view name() const override { return "copying"; }

  Round run(Workbench& bench) override {
    const auto victims = bench.choose_worthwhile();
    Round round;
    round.left = bench.garbage();
    if (!victims) {
      round.finished = true;
      round.why = "no segment is worth cleaning";
      return round;
    }
    round.why = fmt::format("copying {} out of {}{}{}", counted(victims->live(), "live block"), counted(victims->ids.size(), "segment"),
                            victims->why.empty() ? "" : "; ", victims->why);
    bench.tell(round.why);
    bench.empty(*victims, round);
    return round;
  }

  Forecast forecast(Workbench& bench) const override {
    const Victims victims = bench.choose_all();
    Forecast forecast;
    forecast.segments = victims.ids.size();
    forecast.reads = forecast.writes = victims.data;
    forecast.frees = victims.gain;
    forecast.what = fmt::format("copy {} out of {}", counted(victims.live(), "live block"), counted(victims.ids.size(), "segment"));
    return forecast;
  }
};

}  // namespace

std::unique_ptr<Strategy> make_copying(const Parameters&) { return std::make_unique<Copying>(); }

}  // namespace varve::cleaner
