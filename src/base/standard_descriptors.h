// Standard input, output and errors, where a caller of the program has closed them.
#pragma once

namespace varve {

// Puts something in place of those that are closed. Else the next file that is opened takes such a number, be it the device, and
// messages are written to it. To be called first in main(). Reading and writing fail as they would without it. False: it cannot be done.
bool open_standard_descriptors();

}  // namespace varve
