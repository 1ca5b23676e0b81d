// Gives the answers (question.h), in attempts that never wait (operation/operation.h).
#pragma once

#include "base/result.h"
#include "compare/question.h"

namespace varve::fs {
class Filesystem;
}

namespace varve::operation {
class Operation;
}

namespace varve::compare {

struct Progress;  // change_scan.h

// One attempt at an answer: would_block: once more later, with the same `progress`.
Result<Answer> answer(fs::Filesystem& filesystem, operation::Operation& operation, const Question& question, Progress& progress);

}  // namespace varve::compare
