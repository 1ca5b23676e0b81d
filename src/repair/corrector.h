// The pass that turns facts and verdicts into edits of the inode file: what is right gives none.
#pragma once

#include "repair/edits.h"
#include "repair/survey.h"
#include "repair/verdicts.h"

namespace varve::repair {

// Tells all that it changes to `actions`.
Result<Edits> correct(io::BlockDevice& device, const format::Superblock& super, const LeafPlan& plan, const Survey& survey,
                      const Verdicts& verdicts, ActionLog& actions);

}  // namespace varve::repair
