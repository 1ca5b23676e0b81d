// Combined (ScherlFS, after Sprite's threading between segments and copying inside them): segments are cleaned, and the log
// goes on in holes only while clean segments run short. Each kind of victim is cleaned in the way that is cheaper for it.
// Those up to the live share at which filling holes begins to pay are copied. Fuller ones are plugged into holes of others.
#include "cleaner/registry.h"
#include "cleaner/strategy/builtin.h"
#include "cleaner/strategy/decision.h"
#include "cleaner/workbench.h"
#include "device/io_context.h"
#include "device/write_cost.h"
#include "store/store.h"

namespace varve::cleaner {
namespace {

class Combined final : public Strategy {
 public:
  Combined() {
    copying_ = make_copying({});
    if (auto made = make_strategy("hole-plugging"); made.ok()) plugging_ = std::move(*made);
    if (auto made = make_strategy("threaded:when=short"); made.ok()) hole_feeder_ = std::move(*made);
  }
  std::string_view name() const override { return "combined"; }
  bool fills_holes() const override { return true; }

  void begin(store::Store& store) override {
    if (hole_feeder_) hole_feeder_->begin(store);
  }
  void end(store::Store& store) override {
    if (hole_feeder_) hole_feeder_->end(store);
  }

  Round run(Workbench& bench) override {
    if (!plugging_) return copying_->run(bench);
    const double metadata = bench.metadata_share(bench.choose());
    const device::WriteCost& cost = bench.store().io().write_cost();
    const double bound = plugging_pays_from(cost.factor(), metadata, cost.handling());
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
  std::unique_ptr<Strategy> copying_, plugging_;  // they clean
  std::unique_ptr<Strategy> hole_feeder_;           // it only says where the log goes on
};

}  // namespace

std::unique_ptr<Strategy> make_combined(const Parameters&) { return std::make_unique<Combined>(); }

}  // namespace varve::cleaner
