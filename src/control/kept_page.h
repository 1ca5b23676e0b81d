// Questions about snapshots between the tool and the daemon: control.h, kKeptIoctl.
#pragma once

#include "compare/question.h"
#include "control/control.h"

namespace varve::control {

// What a tool sends, and what is to be made of it. Errc::invalid: there is no such question.
KeptPage to_page(const compare::Question& question);
Result<compare::Question> question_from(const KeptPage& page);

// What the daemon answers. Errc::corrupt: no daemon says that.
KeptPage to_page(const compare::Answer& answer);
Result<compare::Answer> answer_from(const KeptPage& page);

}  // namespace varve::control
