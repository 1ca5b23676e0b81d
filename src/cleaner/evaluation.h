// Evaluation plugins: how much is it worth to clean a segment? Selection plugins (selection.h) turn the scores into
// victims. The folders of these names hold those that come with Varve; examples/cleaner-plugin shows how to add one.
#pragma once

#include <limits>
#include <memory>
#include <span>
#include <string_view>

#include "cleaner/parameters.h"
#include "cleaner/segment_facts.h"

namespace varve::cleaner {

// Called by one thread at a time. The scores depend on nothing but the facts and what was observed before: daemon,
// tools, tests and benches get the same answers.
class Evaluation {
 public:
  static constexpr double kNever = -std::numeric_limits<double>::infinity();

  virtual ~Evaluation() = default;
  virtual std::string_view name() const = 0;
  // How many of a segment's blocks it wants to have sampled for SegmentFacts::sampled_age.
  virtual std::size_t samples() const { return 0; }
  // scores[i] for segments[i]: the highest is cleaned first, kNever is not. Segments without anything live never get
  // here: they become free by themselves.
  virtual void evaluate(std::span<const SegmentFacts> segments, std::span<double> scores) const = 0;

  // All used segments, now and then and before every evaluate(); `clock` is the log clock.
  virtual void observe(std::span<const SegmentFacts>, std::uint64_t /*clock*/) {}
};

// Evaluations that look at one segment at a time.
class SegmentEvaluation : public Evaluation {
 public:
  void evaluate(std::span<const SegmentFacts> segments, std::span<double> scores) const final {
    for (std::size_t i = 0; i < segments.size(); ++i) scores[i] = score(segments[i]);
  }
  virtual double score(const SegmentFacts& segment) const = 0;
};

// Errc::invalid: unknown, or its parameters make no sense; the message lists those there are.
Result<std::unique_ptr<Evaluation>> make_evaluation(std::string_view spelling);

}  // namespace varve::cleaner
