// What a repair means for the files of a user, summed up from what it did.
#pragma once

#include <set>
#include <string>

#include "fsck/rendering.h"

namespace varve::fsck {

// The inodes of which consequence_lines() and the lines of actions tell the names.
std::set<Ino> concerned_inodes(const repair::ActionLog& actions);

// A line for each kind of loss, with names; empty where all is as it was.
std::string consequence_lines(const Findings& findings);

}  // namespace varve::fsck
