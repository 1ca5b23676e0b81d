// A trace through a device model: what the device would have taken for it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trace/event.h"

namespace varve::bench {

enum class ReplayMode : std::uint8_t {
  open,    // requests come when they came in the trace, however far behind the device is
  closed,  // each comes as long after the answers before it as in the trace; at once, where it had not waited for any
};

// Figures of a part of the trace that began with a mark.
struct Phase {
  std::string name;
  Work work;
  double seconds = 0;  // from its begin to its last answer, rests included
  double joules = 0;   // modelled: everything that the device drew in these seconds
};

class Replay {
 public:
  // `think`: how much of the time that the trace's programs took between an answer and the next request is kept (closed).
  Replay(DeviceModel& model, ReplayMode mode, double think = 1);

  void add(const TracedRequest& event);
  void mark(const std::string& name);
  // Ends the last phase. Phases without a request are left out.
  std::vector<Phase> finish();

 private:
  std::uint64_t arrival_of(const TracedRequest& event);
  void end_phase();

  DeviceModel& model_;
  const ReplayMode mode_;
  const double think_;
  std::vector<Phase> phases_;
  std::string name_ = "begin";
  Work before_;
  std::uint64_t begin_ns_ = 0;
  std::uint64_t last_issue_ns_ = 0, last_answer_ns_ = 0;  // in the trace
};

Work operator-(const Work& after, const Work& before);

}  // namespace varve::bench
