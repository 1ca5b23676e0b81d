#include "jobs/precedence.h"

#include <array>

#include "base/invariant.h"

namespace varve::jobs {

namespace {

constexpr std::uint64_t kIdleNs = 60'000'000'000;

struct Row {
  Kind kind;
  Stage stage;
  bool when_read_only;      // it is to say why it ends
  bool while_giving_back;
  bool while_cleaning;
  std::uint64_t idle_ns;    // begins when so much has passed
  Events yields_to;
  bool is_unnoticed;
};

constexpr Events kOperations{.room = true, .checkpoint = true, .epoch = true, .snapshot = true};

constexpr std::array<Row, kKinds> kTable{{
    {Kind::cleaning, Stage::asked, true, false, true, 0, kOperations, false},
    {Kind::resizing, Stage::asked, true, false, true, 0, kOperations, false},
    {Kind::upkeep, Stage::upkeep, false, true, true, 0, {}, false},
    {Kind::tidying, Stage::idle, false, true, false, 0, {.woken = true}, true},  // it counts uses by itself (tidier.h)
    {Kind::settling, Stage::idle, false, true, true, kIdleNs, {}, false},
    {Kind::ordering, Stage::idle, false, true, true, kIdleNs, {.woken = true, .written = true}, true},
}};

const Row& row_of(Kind kind) {
  const Row& row = kTable[static_cast<std::size_t>(kind)];
  INVARIANT(row.kind == kind);
  return row;
}

}  // namespace

Stage stage_of(Kind kind) { return row_of(kind).stage; }
bool is_unnoticed(Kind kind) { return row_of(kind).is_unnoticed; }

// While the host is full nothing is begun that would write more, and what is under way waits for its writes.
bool may_begin(Kind kind, const Situation& now) {
  const Row& row = row_of(kind);
  if (now.host_full || (now.read_only && !row.when_read_only)) return false;
  if (now.gives_back && !now.read_only && !row.while_giving_back) return false;  // read-only, nothing more is given back
  if (now.is_cleaning && !row.while_cleaning) return false;
  return row.idle_ns == 0 || now.idle_ns > row.idle_ns;
}

bool gives_way(Kind kind, const Events& now) {
  const Events& to = row_of(kind).yields_to;
  if ((to.woken && now.woken) || (to.written && now.written) || (to.room && now.room)) return true;
  if (to.checkpoint && now.checkpoint) return now.moved;
  return (to.epoch && now.epoch) || (to.snapshot && now.snapshot);
}

}  // namespace varve::jobs
