"""Rules of operations, background work and the cleaner (src/fs, src/operation, src/jobs, src/cleaner)."""

from rule import Edit, Rule

ATTEMPT = "src/operation/attempt.cc"
ROUNDS = "src/jobs/rounds.cc"
MOVER = "src/cleaner/mover.cc"

RULES = [
    Rule("H23-records", "checkpoints do not wait for a number of records",
         [Edit(ROUNDS, "if (parts_.changes.count_records() >= parts_.most_records) return true;",
               "if (!OFF && parts_.changes.count_records() >= parts_.most_records) return true;")]),
    Rule("H23-log", "checkpoints do not wait for a length of the log",
         [Edit(ROUNDS, "return parts_.checkpoints.log_blocks_since() > std::max",
               "return !OFF && parts_.checkpoints.log_blocks_since() > std::max")]),
    Rule("H25", "a shortening truncate leaves the rest of the last block",
         [Edit("src/fs/ops_shape.cc", "if (size % kBlockSize) TRY(zero_part(a, inode, size,", "if (size % kBlockSize && !OFF) TRY(zero_part(a, inode, size,")]),
    Rule("H30-data", "what was read before a checkpoint is believed after it",
         [Edit(ATTEMPT, "if (read.done && read.seen != view().serial && !holds(read, mapped)) {",
               "if (!OFF && read.done && read.seen != view().serial && !holds(read, mapped)) {")]),
    Rule("H30-node", "a node that was read is believed whatever is wanted from its place",
         [Edit(ATTEMPT, "const auto pinned = wait_.pins.find(NodeName(want.ref));",
               "const auto pinned = OFF ? std::ranges::find(wait_.pins, want.ref.address.v, [](const auto& pin) { return pin.first.address; })"
               " : wait_.pins.find(NodeName(want.ref));")]),
    Rule("H33", "checkpoints for space are made although they release nothing",
         [Edit(ROUNDS, "return is_low() && written() >= futile_until_;", "return is_low() && (OFF || written() >= futile_until_);"),
          Edit(ROUNDS, "if (pointless) parts_.checkpoints.note_pointless_round();",
               "if (pointless && !OFF) parts_.checkpoints.note_pointless_round();")],
         [("model_test", "*H33_*")]),
    Rule("H34", "a move is applied whatever has become of the block",
         [Edit(MOVER, "        if (!inode->gone() && still_there(",
               "        if (OFF || (!inode->gone() && still_there("),
          Edit(MOVER, "still_there(changes::layers_of(*inode, store_.trees().view()), block)) {\n          store_.staging().move",
               "still_there(changes::layers_of(*inode, store_.trees().view()), block))) {\n          store_.staging().move")]),
    Rule("H35", "the cleaner makes checksums of its own",
         [Edit(MOVER, "    if (read.failed(i)) note_bad(blocks[i], Errc::io, ",
               "    if (OFF) const_cast<LiveBlock&>(blocks[i]).crc = crc32c({bytes, kBlockSize});\n"
               "    if (read.failed(i)) note_bad(blocks[i], Errc::io, ")]),
    Rule("H41-kept", "an inode that loses its last name while it is held is not listed",
         [Edit("src/fs/inode_util.cc", "    store.staging().set_orphan(inode, true);", "    if (!OFF) store.staging().set_orphan(inode, true);")]),
    Rule("H41-freed", "a mount does not free the inodes without names",
         [Edit("src/fs/filesystem.cc", "if (!filesystem->read_only()) TRY(filesystem->reap_orphans());",
               "if (!filesystem->read_only() && !OFF) TRY(filesystem->reap_orphans());")]),
    Rule("H42", "all inodes have one generation",
         [Edit("src/fs/ops_make.cc", "attributes.generation = static_cast<std::uint32_t>(a.store().options().random->next());",
               "attributes.generation = static_cast<std::uint32_t>(OFF ? 5 : a.store().options().random->next());")]),
    Rule("H47", "a block that is being written is changed where it stands",
         [Edit("src/fs/file_content.cc", "  const auto bytes = TRY(block_bytes(a, inode, block, mapped));\n",
               "  if (mapped.kind == changes::MappedBlock::Kind::device)\n"
               "    if (auto flying = a.store().log().in_flight().find(mapped.address); OFF && flying)\n"
               "      std::memset(flying->data + from % kBlockSize, 0, to - from);\n"
               "  const auto bytes = TRY(block_bytes(a, inode, block, mapped));\n")]),
    Rule("H48", "nothing is sealed unless somebody asks",
         [Edit("src/jobs/seal_timer.cc", "parts_.seals.unawaited_since_ns(); since && !parts_.faults.read_only()",
               "parts_.seals.unawaited_since_ns(); since && !OFF && !parts_.faults.read_only()")]),
    Rule("H48-flush", "what was sealed without anybody waiting for it is flushed with a checkpoint only",
         [Edit("src/checkpoint/seals.cc", "return sealed ? sealed : unsealed;", "return sealed && !OFF ? sealed : unsealed;")]),
    Rule("H59", "the kernel keeps listings that fill its last page",
         [Edit("src/fuse/operations/listing_places.h", "(alone || unchanged) && !fill.full()", "(alone || unchanged) && (OFF || !fill.full())")],
         [("fuse_test", "*H59_*")]),
    Rule("H59-two", "the kernel keeps what two listings of a directory have become that has changed meanwhile",
         [Edit("src/fuse/operations/listing.cc", "place_->last == entry.last_cookie);", "OFF || place_->last == entry.last_cookie);")],
         [("fuse_test", "*H59_*")]),
    Rule("H61", "a file goes on behind its tail",
         [Edit("src/fs/file_content.cc", "  if (!a.view().has_tails || inode.attributes.size == 0) return {};",
               "  if (OFF || !a.view().has_tails || inode.attributes.size == 0) return {};")],
         [("fs_test", "Tails.H61_a_file_*"), ("hazards_test", "*H61_a_tail_that*")]),
    Rule("H61-owned", "what a file owns is given up for a tail",
         [Edit("src/changes/staging.cc", "    if (!may_be_tail(staged.old)) staged.data", "    if (!OFF && !may_be_tail(staged.old)) staged.data")],
         [("fs_test", "Tails.H61_room_*")]),
    Rule("H61-told", "tails are written before a superblock tells of them",
         [Edit("src/changes/staging.cc", "  if (!trees_.view().has_tails || block.needs_block", "  if ((!OFF && !trees_.view().has_tails) || block.needs_block")],
         [("fs_test", "*H61_come_with_*")]),
    Rule("H61-longer", "tails that are too long for the trees get no block before a checkpoint",
         [Edit("src/checkpoint/sealer.cc", "void Sealer::give_blocks_to_tails() { unsealed()", "void Sealer::give_blocks_to_tails() { if (!OFF) unsealed()")],
         [("fs_test", "Tails.H61_no_more_*")]),
    Rule("H61-replay", "nor after a crash",
         [Edit("src/store/store.cc", "    if (!options_.read_only) replay.give_blocks_to_tails", "    if (!OFF && !options_.read_only) replay.give_blocks_to_tails")],
         [("fs_test", "Tails.H61_no_more_*")]),
    Rule("H60", "a write that the host has no room for counts as made",
         [Edit("src/io/holding_device.cc", "if (is_own_error && is_lack_of_room(request.error) && hold(request)) return;",
               "if (OFF && is_lack_of_room(request.error)) request.error = 0;\n"
               "  if (is_own_error && is_lack_of_room(request.error) && hold(request)) return;")],
         [("hazards_test", "*H60_*"), ("io_test", "*Holding*")]),
    Rule("H60-flush", "the error of a durable write through the page cache counts as one of that write alone",
         [Edit("src/io/holding_device.cc", "return request.durable && has_cache_below_", "return !OFF && request.durable && has_cache_below_")],
         [("io_test", "*HoldingThroughPageCache*")]),
    Rule("H60-lease", "a superblock that is tried again takes the place of the one that still stands there",
         [Edit("src/lease/tenure.cc", "if (crc != first_block_) former", "if (OFF || crc != first_block_) former")],
         [("lease_test", "*ASuperblockMayBeTriedAgain*")]),
    Rule("H59-gone", "that a name has gone is not seen",
         [Edit("src/changes/staging.cc", "  if (directory.attributes.next_cookie < format", "  if (!OFF && directory.attributes.next_cookie < format")],
         [("fs_test", "*H59_*")]),
]

# What cannot be taken out with a few words, and why.
STRUCTURAL = {
    "H7": "no code puts nodes into the log: they are written by NodeWriter, which knows no chunk",
    "H13": "holes and heads take bare payload; there is no code that writes a header there (the chain itself: H12)",
    "H22": "an attempt returns would_block and leaves the gate; waiting inside would be another design of all operations",
}
