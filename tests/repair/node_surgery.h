// Changes a node of a built image behind valid checksums: everything that refers to it is told.
#pragma once

#include <functional>
#include <span>

#include "check/image_builder.h"

namespace varve::repair::test {

using check::test::ImageBuilder;

// The address of the first node of a tree at a level, in key order; or of number `which`.
BlockAddr node_of(const ImageBuilder& builder, format::TreeId tree, unsigned level, std::size_t which = 0);

// Calls change with the bytes of the node, then sets all CRCs from there up to the superblocks.
void change_node(io::MemDevice& device, const ImageBuilder& builder, BlockAddr address,
                 const std::function<void(std::span<std::byte>)>& change);

// Decodes, changes and writes both superblocks.
void change_supers(io::MemDevice& device, const std::function<void(format::Superblock&)>& change);

void flip_bit(io::MemDevice& device, BlockAddr address, std::size_t bit);
void wipe(io::MemDevice& device, BlockAddr address);

}  // namespace varve::repair::test
