// Bounded exhaustive scripts in the manner of ACE (Mohan et al., "Finding Crash-Consistency Bugs with Bounded
// Black-Box Crash Testing", 2018): every sequence of one or two operations over a small namespace.
#pragma once

#include <vector>

#include "support/script.h"

namespace varve::test {

// The state all sequences start from, to be made durable: two directories and files in and beside them.
Script ace_setup();

// Every operation of the alphabet that succeeds right after the setup.
std::vector<Step> ace_alphabet();

// Each sequence of `length` operations (1 or 2) that succeeds, once plain and once with an fsync after every operation
// but the last. All end in an fsync of a file, of a directory, or in a sync, in turn.
std::vector<Script> ace_sequences(unsigned length);

}  // namespace varve::test
