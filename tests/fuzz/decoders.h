// The targets of format/: bytes that come from a device. CRCs are made right first, or nothing would get past them.
#pragma once

#include "fuzz/target.h"

namespace varve::fuzz {

void superblock(Input input);
void chunk(Input input);
void records(Input input);
void node(Input input);
void item(Input input);
void map_record(Input input);
Seeds superblock_seeds();
Seeds chunk_seeds();
Seeds record_seeds();
Seeds node_seeds();
Seeds item_seeds();
Seeds map_record_seeds();

}  // namespace varve::fuzz
