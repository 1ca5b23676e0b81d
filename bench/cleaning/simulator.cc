#include "simulator.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "base/clock.h"
#include "bound.h"
#include "cleaner/victim_rule.h"
#include "format/estimate.h"

namespace varve::bench {

namespace {

using namespace cleaner;
using format::decode_interval, format::next_estimate;

constexpr std::uint64_t kNowhere = ~std::uint64_t{0};

struct Segment {
  std::vector<std::uint32_t> content;  // user blocks, in the order they were written
  std::uint32_t live = 0;
  std::uint8_t group = 0;
  std::uint64_t youngest = 0, opened = 0, sealed = 0, appended = 0;
  double clock_sum = 0, rate_sum = 0;
  bool clean = true, open = false;
};

class Simulator {
 public:
  explicit Simulator(const RunSetup& setup) : setup_(setup), segments_(setup.segments), random_(setup.seed) {
    auto rule = VictimRule::make(setup.victims);
    auto placement = make_placement(setup.placement, {setup.segments * setup.segment_blocks, 16, setup.segment_blocks});
    if (!rule.ok()) throw std::invalid_argument(rule.error().message());
    if (!placement.ok()) throw std::invalid_argument(placement.error().message());
    rule_ = std::move(*rule);
    placement_ = std::move(*placement);
    // An open segment is half full on average.
    const double usable = static_cast<double>(setup.segments - kKept) - 0.5 * placement_->groups();
    blocks_ = static_cast<std::uint64_t>(setup.utilisation * usable * setup.segment_blocks);
    place_.assign(blocks_, kNowhere);
    written_.resize(blocks_);
    estimate_.resize(blocks_);
    heads_.assign(16, kNowhere);
    clean_ = setup.segments;
  }

  std::uint64_t blocks() const { return blocks_; }
  std::uint64_t moved() const { return moved_; }
  std::uint64_t clean() const { return clean_; }

  void write(std::uint32_t block) {
    const std::uint64_t at = place_[block];
    WrittenBlock facts;
    ++clock_;
    if (at != kNowhere) {
      facts.interval = clock_ - written_[block];
      facts.group = segments_[at].group;
      drop(block);
      facts.previous_estimate = decode_interval(estimate_[block]);
      estimate_[block] = next_estimate(estimate_[block], static_cast<double>(facts.interval));
    }
    facts.estimate = decode_interval(estimate_[block]);
    facts.key = block;
    facts.clock = clock_;
    written_[block] = clock_;
    append(block, place(*placement_, facts));
    while (clean_ < kKept) clean_one();
  }

  // Live over the space that holds it: all segments but clean ones and what is unwritten of open ones.
  double utilisation() const {
    std::uint64_t held = 0;
    for (const Segment& s : segments_)
      if (!s.clean) held += s.open ? s.content.size() : setup_.segment_blocks;
    return static_cast<double>(blocks_) / static_cast<double>(held);
  }

 private:
  static constexpr std::uint64_t kKept = 4;  // clean segments

  void drop(std::uint32_t block) {
    Segment& s = segments_[place_[block]];
    --s.live;
    s.clock_sum -= static_cast<double>(written_[block]);
    s.rate_sum -= rate(block);
  }

  double rate(std::uint32_t block) const { return estimate_[block] ? 1 / decode_interval(estimate_[block]) : 0; }

  void append(std::uint32_t block, std::uint8_t group) {
    std::uint64_t& head = heads_[group];
    if (head == kNowhere) head = take_clean(group);
    Segment& s = segments_[head];
    s.content.push_back(block);
    s.appended = clock_;
    ++s.live;
    s.youngest = std::max(s.youngest, written_[block]);
    s.clock_sum += static_cast<double>(written_[block]);
    s.rate_sum += rate(block);
    place_[block] = head;
    if (s.content.size() < setup_.segment_blocks) return;
    s.open = false;
    s.sealed = clock_;
    head = kNowhere;
  }

  std::uint64_t take_clean(std::uint8_t group) {
    for (;; cursor_ = (cursor_ + 1) % segments_.size()) {
      Segment& s = segments_[cursor_];
      if (!s.clean) continue;
      s = Segment{};
      s.clean = false;
      s.open = true;
      s.group = group;
      s.opened = clock_;
      s.content.reserve(setup_.segment_blocks);
      --clean_;
      return cursor_;
    }
  }

  std::vector<SegmentFacts> facts() const {
    std::vector<SegmentFacts> all;
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      const Segment& s = segments_[i];
      if (s.clean || s.open) continue;
      SegmentFacts f;
      f.id = SegmentId{i};
      f.live = s.live;
      f.blocks = setup_.segment_blocks;
      f.group = s.group;
      f.age = clock_ - s.youngest;
      f.sealed = clock_ - s.sealed;
      f.opened = clock_ - s.opened;
      f.mean_age = s.live ? static_cast<double>(clock_) - s.clock_sum / s.live : 0;
      f.rate_sum = std::max(s.rate_sum, 0.0);
      all.push_back(f);
    }
    return all;
  }

  // A head that nobody writes to keeps a segment from being cleaned.
  void give_up_idle_heads() {
    for (std::uint64_t& head : heads_) {
      if (head == kNowhere || clock_ - segments_[head].appended < segments_.size() * setup_.segment_blocks / 16) continue;
      segments_[head].open = false;
      segments_[head].sealed = clock_;
      head = kNowhere;
    }
  }

  void clean_one() {
    auto known = facts();
    placement_->observe(known, clock_);
    rule_->observe(known, clock_);
    give_up_idle_heads();
    const auto empty = std::find_if(known.begin(), known.end(), [](const SegmentFacts& f) { return f.live == 0; });
    SegmentId id;
    if (empty != known.end()) {
      id = empty->id;
    } else {
      const Victims victims = rule_->choose(known, {.wanted = 1}, random_);
      if (victims.ids.empty()) throw std::runtime_error("no victim");
      id = victims.ids.front();
    }
    Segment& s = segments_[id.v];
    placement_->collected(*std::find_if(known.begin(), known.end(), [&](const SegmentFacts& f) { return f.id == id; }));
    const std::vector<std::uint32_t> content = std::move(s.content);
    const std::uint8_t from = s.group;
    std::vector<std::uint32_t> live;
    for (std::size_t i = 0; i < content.size(); ++i)
      if (place_[content[i]] == id.v) {
        live.push_back(content[i]);
        place_[content[i]] = kNowhere;  // a block may stand in the segment twice
      }
    s = Segment{};
    ++clean_;
    for (std::uint32_t block : live) {
      append(block, place(*placement_, MovedBlock{clock_ - written_[block], decode_interval(estimate_[block]), from}));
      ++moved_;
    }
  }

  const RunSetup setup_;
  std::uint64_t blocks_ = 0;
  std::vector<Segment> segments_;
  std::vector<std::uint64_t> place_, written_;
  std::vector<std::uint8_t> estimate_;
  std::vector<std::uint64_t> heads_;
  std::unique_ptr<VictimRule> rule_;
  std::unique_ptr<Placement> placement_;
  SeededRandom random_;
  std::uint64_t clock_ = 0, clean_ = 0, cursor_ = 0, moved_ = 0;
};

}  // namespace

double bound_of(const Workload& workload, double utilisation, std::uint32_t segment_blocks) {
  const auto rates = workload.rates();
  if (rates.empty()) return 0;
  return bound(rates, utilisation) * greedy_bound(utilisation, segment_blocks) / fifo_bound(utilisation);
}

RunResult simulate(const RunSetup& setup) {
  Simulator simulator(setup);
  RunResult result;
  result.blocks = simulator.blocks();
  const auto writes = static_cast<std::uint64_t>(setup.writes * static_cast<double>(result.blocks));
  const auto workload = make_workload(setup.workload, result.blocks, writes, setup.seed);
  if (!workload) throw std::invalid_argument("no workload " + setup.workload);
  for (std::uint64_t block = 0; block < result.blocks; ++block) simulator.write(static_cast<std::uint32_t>(block));
  const auto measured = static_cast<std::uint64_t>(setup.measured * static_cast<double>(writes));
  const std::uint64_t tenth = std::max<std::uint64_t>(1, result.blocks / 10);
  std::uint64_t moved_before = 0, moved_at_tenth = simulator.moved();
  double utilisation = 0;
  std::uint64_t samples = 0;
  for (std::uint64_t i = 0; i < writes; ++i) {
    if (i == writes - measured) moved_before = simulator.moved();
    simulator.write(static_cast<std::uint32_t>(workload->next()));
    if ((i + 1) % tenth == 0) {
      result.course.push_back(1 + static_cast<double>(simulator.moved() - moved_at_tenth) / static_cast<double>(tenth));
      moved_at_tenth = simulator.moved();
    }
    if (i >= writes - measured && i % 997 == 0) utilisation += simulator.utilisation(), ++samples;
  }
  result.write_amplification = 1 + static_cast<double>(simulator.moved() - moved_before) / static_cast<double>(measured);
  result.utilisation = utilisation / static_cast<double>(samples);
  result.bound = bound_of(*workload, result.utilisation, setup.segment_blocks);
  return result;
}

}  // namespace varve::bench
