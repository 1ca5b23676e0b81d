// Parts of a superblock, where the reader or writer stands. For superblock.cc.
#pragma once

#include "format/codec.h"
#include "format/superblock.h"

namespace varve::format {

void put_geometry(Writer& out, const Superblock& s);
void put_checkpoint(Writer& out, const Superblock& s);
void put_counts(Writer& out, const Superblock& s);
void put_area(Writer& out, const SuperblockArea& area);
void put_profile(Writer& out, const DeviceProfile& device);
void put_tables(Writer& out, const SnapshotTables& tables);
void put_tails(Writer& out, const TailLimits& limits);

// What the features do not say is there, is not read.
void get_geometry(Reader& in, Superblock& s);
void get_checkpoint(Reader& in, Superblock& s);
void get_counts(Reader& in, Superblock& s);
void get_area(Reader& in, Superblock& s);
void get_profile(Reader& in, Superblock& s);
void get_tables(Reader& in, Superblock& s);
void get_tails(Reader& in, Superblock& s);

}  // namespace varve::format
