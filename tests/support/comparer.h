// Compares a mounted filesystem with a model down to the byte, and says precisely where they part.
#pragma once

#include <string>

#include "support/fs_fixture.h"
#include "support/model_fs.h"
#include "support/snapshot.h"

namespace varve::test {

// Empty if the filesystem is in the model's state; else what differs, with the first wrong byte of contents. Also asks
// what a snapshot does not show: SEEK_HOLE and SEEK_DATA, reads at odd places, names that must not exist.
std::string compare(FsFixture& fixture, const ModelFs& model, const CompareOptions& options = {});

// The first byte in which a file differs from the model.
std::string content_difference(FsFixture& fixture, const ModelInode& inode);
// Contradictions between SEEK_HOLE, SEEK_DATA and the content.
std::string seek_difference(FsFixture& fixture, const ModelInode& inode);

}  // namespace varve::test
