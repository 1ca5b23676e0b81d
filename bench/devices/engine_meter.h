// What a part of a run has cost, from the meter's begin.
#pragma once

#include <string>

#include "engine_stage.h"

namespace varve::bench {

class Meter {
 public:
  explicit Meter(Stage& stage) : stage_(stage), work_(stage.model().work()), counters_(counters()) {}

  // All but the waits.
  EnginePart part(const std::string& name, std::uint64_t operations) const {
    EnginePart out = counters();
    for (auto field : {&EnginePart::moved, &EnginePart::in_holes, &EnginePart::nodes, &EnginePart::checkpoints, &EnginePart::segments,
                       &EnginePart::chunks, &EnginePart::headers, &EnginePart::payload})
      out.*field -= counters_.*field;
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
  EnginePart counters() const {
    store::Store& store = stage_.fs().engine().store();
    const store::Counters& now = store.counters();
    EnginePart out;
    out.moved = now.cleaned_blocks;
    out.in_holes = now.refilled_blocks;
    out.nodes = now.node_blocks;
    out.checkpoints = now.checkpoints;
    out.segments = now.segments_cleaned;
    out.chunks = store.log().chunks();
    out.headers = store.log().header_blocks();
    out.payload = store.log().payload_blocks();
    return out;
  }

  Stage& stage_;
  const Work work_;
  const EnginePart counters_;
};

}  // namespace varve::bench
