// Answers about many files at once (kept_file.h).
#pragma once

#include "compare/change_scan.h"
#include "fs/filesystem.h"

namespace varve::compare {

// One attempt of an operation that shows the snapshot: asks for all it lacks together.
Status scan_files(fs::Filesystem& filesystem, fs::Operation& operation, const Question& question, Progress& progress);

}  // namespace varve::compare
