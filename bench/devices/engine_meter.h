// What a part of a run has cost, from the meter's begin.
#pragma once

#include <string>

#include "engine_stage.h"

namespace varve::bench {

class Meter {
 public:
  explicit Meter(Stage& stage) : stage_(stage), work_(stage.model().work()), counted_(stage.counted()) {}

  // All but the waits.
  EnginePart part(const std::string& name, std::uint64_t operations) const {
    EnginePart out = stage_.counted();
    for (auto field : Stage::kCounted) out.*field -= counted_.*field;
    const Work& now = stage_.model().work();
    out.name = name;
    out.operations = operations;
    out.seconds = static_cast<double>(now.busy_ns() + now.background_ns - work_.busy_ns() - work_.background_ns) / 1e9;
    out.programmed = now.programmed - work_.programmed;
    out.erases = now.erases - work_.erases;
    out.written = now[Op::write].bytes - work_[Op::write].bytes;
    out.read = now[Op::read].bytes - work_[Op::read].bytes;
    out.discarded = now[Op::discard].bytes - work_[Op::discard].bytes;
    out.explanation = stage_.fs().status().strategy_explanation;
    return out;
  }

 private:
  Stage& stage_;
  const Work work_;
  const EnginePart counted_;
};

}  // namespace varve::bench
