// The evaluations that come with Varve; registry.cc gives them their names.
#pragma once

#include "cleaner/evaluation.h"

namespace varve::cleaner {

std::unique_ptr<Evaluation> make_timestamp(const Parameters&);
std::unique_ptr<Evaluation> make_fifo(const Parameters&);
std::unique_ptr<Evaluation> make_greedy(const Parameters&);
std::unique_ptr<Evaluation> make_cost_benefit(const Parameters&);
std::unique_ptr<Evaluation> make_cost_hotness(const Parameters&);
std::unique_ptr<Evaluation> make_age_threshold(const Parameters&);
std::unique_ptr<Evaluation> make_mdc(const Parameters&);
std::unique_ptr<Evaluation> make_decline(const Parameters&);
std::unique_ptr<Evaluation> make_reservoir(const Parameters&);

}  // namespace varve::cleaner
