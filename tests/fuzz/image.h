// The target of whole images: metadata of an image is changed piece by piece, and every checksum made right again, up to the superblocks
// and along the log. Then it is checked, mounted, read, changed and repaired (structure/).
#pragma once

#include "fuzz/target.h"

namespace varve::fuzz {

void image(Input input);
Seeds image_seeds();
void vary_image(std::vector<std::byte>& input, Random& random);
// The same, of nothing but the tables of snapshots.
void sfile(Input input);
Seeds sfile_seeds();

}  // namespace varve::fuzz
