// Gives the answers (question.h), in attempts that never wait (fs/operation.h).
#pragma once

#include "compare/change_scan.h"
#include "compare/kept_inode.h"
#include "compare/question.h"
#include "fs/filesystem.h"

namespace varve::compare {

// One attempt at an answer: would_block: once more later, with the same `progress`.
Result<Answer> answer(fs::Filesystem& filesystem, fs::Operation& operation, const Question& question, Progress& progress);

// For a tool that has mounted the filesystem by itself; it waits. The filesystem must outlive it.
Ask asking(fs::Filesystem& filesystem);

}  // namespace varve::compare
