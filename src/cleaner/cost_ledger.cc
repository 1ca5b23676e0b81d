#include "cleaner/cost_ledger.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/invariant.h"

namespace varve::cleaner {

namespace {

constexpr double kLeastRoundNs = 200e6, kRoundPerSettling = 2;
constexpr std::uint64_t kEnough = 128;  // blocks of users that say something
// The other kind is forgotten after so long, and after so many times what it took when it was tried last.
constexpr double kForgottenNs = 5e9, kForgottenTimes = 32;

std::size_t index(CostLedger::Kind kind) { return static_cast<std::size_t>(kind); }
CostLedger::Kind other(CostLedger::Kind kind) {
  return kind == CostLedger::Kind::copying ? CostLedger::Kind::filling : CostLedger::Kind::copying;
}
std::uint32_t whole(double ns) { return static_cast<std::uint32_t>(std::clamp(std::round(ns), 0.0, 4e9)); }

}  // namespace

void CostLedger::Mean::add(double more_ns, double more_blocks, double weight) {
  ns += weight * more_ns;
  blocks += weight * more_blocks;
  const double keep = std::min({1.0, kMostBlocks / std::max(blocks, 1.0), kMostNs / std::max(ns, 1.0)});
  // Never less than says something: where a block takes seconds these few are all there will be.
  const double least = blocks > kFewest ? kFewest / blocks : 1;
  ns *= std::max(keep, least);
  blocks *= std::max(keep, least);
}

CostLedger::CostLedger(const format::WritingCosts& remembered) {
  const auto restore = [](Mean& mean, std::uint32_t each) {
    if (each) mean = {each * kFewest, kFewest};
  };
  restore(moves_[0], remembered.copied);
  restore(moves_[1], remembered.plugged);
  restore(users_[0], remembered.beside);
  restore(users_[1], remembered.threaded);
}

format::WritingCosts CostLedger::remembered() const {
  format::WritingCosts costs;
  costs.copied = whole(moves_[0].each());
  costs.plugged = whole(moves_[1].each());
  costs.beside = whole(users_[0].each());
  costs.threaded = whole(users_[1].each());
  return costs;
}

// --- rounds ---------------------------------------------------------------------------------------------------------------

void CostLedger::begin(const Reading& now) {
  if (between_) add_users(now);
  between_ = false;
  unsettled_ns_ = 0;
}

void CostLedger::ended(Kind kind, std::uint64_t moved, const device::DeviceSpan& span) {
  if (!moved) return;
  // A cache may carry out only now what filling holes has left in it: the first round of copying after that says nothing.
  const bool tells = kind == Kind::filling || kind_ == Kind::copying;
  kind_ = kind;
  if (!tells) return;
  const auto took = static_cast<double>(span.ns);
  unsettled_ns_ += took;
  moves_[index(kind)].add(took, static_cast<double>(moved), span.weight);
  spend(kind, took);
}

// A round that was cut short takes no more than its part of a checkpoint: a whole one would have been settled by the same. But what a
// checkpoint takes longer than after copying is all its own: a cache carries out then what it took before.
void CostLedger::settled(const device::DeviceSpan& span, const Reading& now) {
  const auto took = static_cast<double>(span.ns);
  if (unsettled_ns_ > 0) {
    if (kind_ == Kind::copying) usual_ns_ = usual_ns_ > 0 ? (3 * usual_ns_ + took) / 4 : took;
    const double usual = usual_ns_ > 0 ? std::min(usual_ns_, took) : took;
    const double part = kind_ == Kind::copying ? took : usual, full = std::max(kLeastRoundNs, kRoundPerSettling * part);
    moves_[index(kind_)].add(part * std::min(1.0, unsettled_ns_ / full) + (took - part), 0, span.weight);
    spend(kind_, took);
  }
  unsettled_ns_ = 0;
  since_ = now;
  between_ = true;
}

void CostLedger::interrupt() {
  between_ = false;
  unsettled_ns_ = 0;
}

bool CostLedger::look(const Reading& now) {
  if (!between_ || now.users - since_.users < kEnough) return false;
  add_users(now);
  return true;
}

void CostLedger::add_users(const Reading& now) {
  INVARIANT(now.users >= since_.users && now.in_holes >= since_.in_holes && now.writing_ns >= since_.writing_ns);
  const auto blocks = static_cast<double>(now.users - since_.users), ns = static_cast<double>(now.writing_ns - since_.writing_ns);
  // Threads that have ended since take what they waited with them.
  const std::uint64_t waited = now.waited_ns - std::min(now.waited_ns, since_.waited_ns);
  const double weight = device::DeviceSpan::on_host(now.writing_ns - since_.writing_ns, waited).weight;
  const auto holes = std::min(static_cast<double>(now.in_holes - since_.in_holes), blocks);
  since_ = now;
  if (blocks == 0) return;
  const Kind kind = kind_ == Kind::filling || holes > blocks / 4 ? Kind::filling : Kind::copying;
  users_[index(kind)].add(ns, blocks, weight);
  if (kind == Kind::filling) in_holes_ += std::min(1.0, blocks / 1024) * (holes / blocks - in_holes_);
  spend(kind, ns);
}

void CostLedger::spend(Kind kind, double ns) {
  double& mine = spent_ns_[index(kind)];
  double& others = spent_ns_[index(other(kind))];
  mine += ns;
  if (mine < std::max(kForgottenNs, kForgottenTimes * others)) return;
  moves_[index(other(kind))] = users_[index(other(kind))] = {};
  mine = others = 0;
  forgotten_ |= kind == Kind::copying;
}

bool CostLedger::take_forgotten() { return std::exchange(forgotten_, false); }

// --- what follows ---------------------------------------------------------------------------------------------------------

double CostLedger::copying(double live) const {
  if (users_[0].each() <= 0 || moves_[0].each() <= 0) return 0;
  constexpr double kFullest = 0.99;
  const double u = std::clamp(live, 0.0, kFullest);
  return users_[0].each() + moves_[0].each() * u / (1 - u);
}

double CostLedger::filling(double live) const {
  if (users_[1].each() <= 0) return 0;
  const double move = moves_[1].each() > 0 ? moves_[1].each() : moves_[0].each();
  return users_[1].each() + (1 - in_holes_) * move * std::clamp(live, 0.0, 1.0);
}

std::string CostLedger::text(double live) const {
  const double copied = copying(live), filled = filling(live);
  if (copied <= 0 || filled <= 0) return "";
  return fmt::format("with all that comes of it a block takes the device {:.3g} ms by copying and {:.3g} ms by filling holes", copied / 1e6,
                     filled / 1e6);
}

}  // namespace varve::cleaner
