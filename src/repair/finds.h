// What it means for users that parts of the inode file had to be found by a scan: which may be older, which are lost, or that it all fits.
#pragma once

#include "repair/survey.h"
#include "repair/verdicts.h"

namespace varve::repair {

// May old leaves be the newest all the same? They may where only the way to leaves was lost. `newest`: the plan without those that are
// superseded for sure.
bool may_be_newest(const LeafPlan& plan);
LeafPlan newest(const LeafPlan& plan);

// Does everything that was found agree with every count that there is? An older leaf in place of a newer one would hardly do so.
bool fits_all_counts(const LeafPlan& plan, const format::Superblock& super, const Survey& survey, const Verdicts& verdicts);

// Tells it to `actions`. Where all `fits`, nothing is called older or lost: old leaves become found ones.
void report_finds(LeafPlan& plan, const format::Superblock& super, bool fits, ActionLog& actions);

// The part of a lost stretch of keys that something may have had: users see no difference where it is empty.
KeyRange noticeable(const KeyRange& lost, const format::Superblock& super);

}  // namespace varve::repair
