// Combined (ScherlFS, after Sprite's threading between segments and copying inside them): each kind of victim is cleaned in
// the way that is cheaper for it. Those up to the live share at which filling holes begins to pay are copied, fuller ones
// are plugged into holes of others. Without a strategy for that all are copied.
#include <fmt/format.h>

#include "cleaner/registry.h"
#include "cleaner/strategy/builtin.h"
#include "cleaner/strategy/decision.h"
#include "cleaner/workbench.h"

namespace varve::cleaner {
namespace {

class Combined final : public Strategy {
 public:
  Combined() {
    copying_ = make_copying({});
    if (registry().strategies.contains(kPlugging))
      if (auto made = make_strategy(kPlugging); made.ok()) plugging_ = std::move(*made);
  }
  std::string_view name() const override { return "combined"; }

  Round run(Workbench& bench) override {
    if (!plugging_) return copying_->run(bench);
    const double bound = plugging_pays_from(bench.store().io().write_cost().factor());
    bench.clean_only(0, bound);
    Round round = copying_->run(bench);
    if (round.moved || !round.emptied.empty() || bench.task().stopped()) return round;
    bench.clean_only(bound, 1);
    Round plugged = plugging_->run(bench);
    if (plugged.moved || !plugged.emptied.empty()) return plugged;
    bench.clean_only(0, 1);  // the last resort is whatever gains anything
    return copying_->run(bench);
  }

  Forecast forecast(Workbench& bench) const override { return copying_->forecast(bench); }

 private:
  static constexpr std::string_view kPlugging = "hole-plugging";
  std::unique_ptr<Strategy> copying_, plugging_;
};

}  // namespace

std::unique_ptr<Strategy> make_combined(const Parameters&) { return std::make_unique<Combined>(); }

}  // namespace varve::cleaner
