#include "engine_run.h"

#include <algorithm>
#include <stdexcept>

#include "rig.h"

namespace varve::bench {

namespace {

double ratio(std::uint64_t part, std::uint64_t whole) {
  return whole ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

RigSetup rig_of(const RunSetup& setup) {
  return {setup.segment_blocks, setup.segments, setup.strategy, setup.victims, setup.placement, setup.seed};
}

}  // namespace

RunResult run_on_engine(const RunSetup& setup) {
  Rig run(rig_of(setup));
  const Ino file = run.make(kRootIno, "file");
  RunResult result;
  result.blocks = run.blocks_for(setup.utilisation);
  const auto writes = static_cast<std::uint64_t>(setup.writes * static_cast<double>(result.blocks));
  const auto workload = make_workload(setup.workload, result.blocks, writes, setup.seed);
  if (!workload) throw std::invalid_argument("no workload " + setup.workload);
  run.write(file, 0, result.blocks << kBlockShift);
  const auto measured = static_cast<std::uint64_t>(setup.measured * static_cast<double>(writes));
  const std::uint64_t tenth = std::max<std::uint64_t>(1, result.blocks / 10);
  Counts start, before = run.counts();
  double utilisation = 0;
  std::uint64_t samples = 0;
  for (std::uint64_t i = 0; i < writes; ++i) {
    if (i == writes - measured) start = run.counts();
    run.write(file, workload->next() << kBlockShift, kBlockSize);
    if ((i + 1) % tenth == 0) {
      const Counts now = run.counts();
      result.course.push_back(1 + ratio(now.moved - before.moved, now.user - before.user));
      before = now;
    }
    if (i < writes - measured || i % 997 != 0) continue;
    utilisation += static_cast<double>(result.blocks) / run.written_space();
    ++samples;
  }
  const Counts end = run.counts();
  const std::uint64_t user = end.user - start.user;
  result.write_amplification = 1 + ratio(end.moved - start.moved, user);
  result.metadata = ratio(end.nodes - start.nodes, user);
  result.headers = ratio(end.headers - start.headers, user);
  result.refilled = ratio(end.refilled - start.refilled, user);
  result.moved_per_segment = ratio(end.moved - start.moved, end.segments - start.segments);
  result.fragments = run.fragments(file);
  result.utilisation = utilisation / static_cast<double>(samples);
  result.bound = bound_of(*workload, result.utilisation, setup.segment_blocks);
  return result;
}

}  // namespace varve::bench
