// Gives the answers (question.h), in attempts that never wait (fs/operation.h).
#pragma once

#include "base/result.h"
#include "compare/question.h"

namespace varve::fs {
class Filesystem;
class Operation;
}  // namespace varve::fs

namespace varve::compare {

struct Progress;  // change_scan.h

// One attempt at an answer: would_block: once more later, with the same `progress`.
Result<Answer> answer(fs::Filesystem& filesystem, fs::Operation& operation, const Question& question, Progress& progress);

// For a tool that has mounted the filesystem by itself; it waits. The filesystem must outlive it.
Ask asking(fs::Filesystem& filesystem);

}  // namespace varve::compare
