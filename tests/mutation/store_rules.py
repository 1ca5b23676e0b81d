"""Rules of sealing, checkpoints, replay and mounting (src/store, src/io)."""

from rule import Edit, Rule

STORE = "src/store/store.cc"
SUPERBLOCKS = "src/checkpoint/superblocks.cc"
SEALER = "src/checkpoint/sealer.cc"
CHECKPOINT = "src/checkpoint/checkpoint.cc"
MAPS = "src/checkpoint/new_maps.cc"
REPLAY = "src/changes/replay.cc"
ADMISSION = "src/space/admission.cc"
CHARGE = "src/space/charge.cc"
FAULTS = "src/device/faults.cc"
SNAPSHOT_MERGE = "src/snapshots/snapshot_merge.cc"
SNAPSHOT_DELETION = "src/snapshots/snapshot_deletion.cc"

# A seal that leaves something behind, which rides in the next one.
LEAVE_BEHIND = """
  std::vector<InodeDelta*> later;
  std::vector<PendingPtr> later_payload;
  if (auto& deltas = const_cast<std::vector<InodeDelta*>&>(parts_.staging.unsealed().deltas()); MUST_LEAVE && deltas.size() > 1) {
    std::erase_if(deltas, [&](InodeDelta* delta) {
      if (!(WHICH)) return false;
      later.push_back(delta);
      return true;
    });
    auto stays = [&](const PendingPtr& block) { return std::find(later.begin(), later.end(), block->owner) != later.end(); };
    auto& payload = parts_.staging.unsealed().payload();
    for (const PendingPtr& block : payload)
      if (stays(block)) later_payload.push_back(block);
    std::erase_if(payload, stays);
  }
"""


def leave_behind(name, when, which):
    return LEAVE_BEHIND.replace("MUST_LEAVE", f'mutated("{name}") && {when}').replace("WHICH", which).replace(
        "later", "later_" + name.lower())


def bring_back(name):
    later = "later_" + name.lower()
    return f"""
    for (InodeDelta* delta : {later}) parts_.staging.unsealed().add(*delta, 1);
    for (PendingPtr& block : {later}_payload) parts_.staging.unsealed().payload().push_back(block);
    if (!{later}.empty()) (void)parts_.staging.unsealed().reserve_records(1u << 16);  // or the sealer itself would notice
"""


SEAL = "    lsn = parts_.sealer.run(purpose == Purpose::commit, reactor);\n"

RULES = [
    Rule("H1", "what was changed first waits while later changes are sealed",
         [Edit("src/checkpoint/seals.cc", SEAL,
               leave_behind("H1", "purpose != Purpose::commit", "delta == deltas.front()") +
               leave_behind("H2", "purpose != Purpose::commit", "!delta->file") +
               leave_behind("H4", "true", "delta == deltas.front()") + SEAL +
               bring_back("H1") + bring_back("H2") + bring_back("H4"))]),
    Rule("H2", "content is sealed without the names and attributes that were changed in between", []),
    Rule("H3", "the records of an operation are spread over two chunks",
         [Edit(SEALER, "for (changes::InodeDelta* delta : unsealed().deltas()) encode_inode(*delta);\n",
               """for (changes::InodeDelta* delta : unsealed().deltas()) encode_inode(*delta);
  if (OFF && !records_.empty()) {
    const log::ChunkPlace first = TRY(parts_.log.place_chunk(format::chunk_header_blocks(records_.size()), 0, false));
    parts_.log.write_chunk(first, records_, {}, stamp(), {});
    records_.clear();
  }
""")]),
    Rule("H4", "a commit leaves behind what was changed first", []),
    Rule("H5", "maps are applied before the clears of their chunk",
         [Edit(REPLAY, "  occupy(chunk.header.address);\n  return format::decode_records(chunk.records,",
               """  occupy(chunk.header.address);
  if (OFF) {
    for (const bool maps : {true, false})
      TRY(format::decode_records(chunk.records, [&](const format::Record& record) -> Status {
        return std::holds_alternative<format::MapBlocks>(record) == maps ? apply_record(record) : Status{};
      }));
    return {};
  }
  return format::decode_records(chunk.records,""")]),
    Rule("H16", "the mount after a replay goes on with the old epoch",
         [Edit(STORE, "log_->start(position, options_.random->next(), true);",
               "log_->start(position, OFF ? super().epoch : options_.random->next(), true);")]),
    Rule("H17-random", "a mount of a clean image goes on with the old epoch",
         [Edit(STORE, "super.chain_crc}, options_.random->next(), false);",
               "super.chain_crc}, OFF ? super.epoch : options_.random->next(), false);")]),
    Rule("H17-order", "chunks are written and no superblock says which epoch is theirs",
         [Edit("src/log/log.cc", "    if (!epoch_on_disk_ || given_up_) {\n", "    if ((!epoch_on_disk_ && !OFF) || given_up_) {\n")]),
    Rule("H19", "a checkpoint says that the log before its barrier is yet to be replayed",
         [Edit(CHECKPOINT, "  lsn_ = TRY(parts_.sealer.run(false, nullptr));\n",
               "  const log::ChainPosition unsealed = parts_.log.position();\n  lsn_ = TRY(parts_.sealer.run(false, nullptr));\n"),
          Edit(CHECKPOINT, "const log::ChainPosition position = parts_.log.position();",
               "const log::ChainPosition position = OFF ? unsealed : parts_.log.position();")]),
    Rule("H19-flush", "superblocks are written before the nodes are flushed",
         [Edit(CHECKPOINT, "  return parts_.log.durability().flush_now();\n",
               "  if (OFF) return {};\n"
               '  return mutated("H15-turns") ? parts_.io.device().flush() : parts_.log.durability().flush_now();\n')]),
    Rule("H20", "addresses given to map nodes are not entered in the maps",
         [Edit(MAPS, "for (BlockAddr address : given) TRY(touch(address));",
               "if (!OFF)\n      for (BlockAddr address : given) TRY(touch(address));"),
          Edit(MAPS, "    grew = !given.empty();\n", "    grew = !given.empty() && !OFF;\n")]),
    Rule("H21", "nodes that were replaced are not freed",
         [Edit(MAPS, "for (BlockAddr address : parts_.writer.released()) TRY(ledger_.release(address));",
               "for (BlockAddr address : parts_.writer.released())\n    if (!OFF) TRY(ledger_.release(address));")]),
    Rule("H24", "a cleared range is recorded up to 1 MiB",
         [Edit(SEALER, "format::encode_record(format::ClearRange{delta.ino, range.from, range.to, range.kind",
               "format::encode_record(format::ClearRange{delta.ino, range.from, OFF ? std::min(range.to, range.from + 256) : range.to, range.kind")]),
    Rule("H26-second", "only one superblock is written",
         [Edit(SUPERBLOCKS, "    TRY(device.write(at << kBlockShift, block.span()));\n    TRY(flush());\n",
               '    if (OFF && at) continue;\n    TRY(device.write(at << kBlockShift, block.span()));\n'
               '    if (!mutated("H26-flush") || at) TRY(flush());\n'),
          Edit(SUPERBLOCKS, "    ++super.sequence;\n    TRY(write_slot(device, super));\n    TRY(flush());\n",
               '    if (OFF && copy) continue;\n    ++super.sequence;\n    TRY(write_slot(device, super));\n'
               '    if (!mutated("H26-flush") || copy) TRY(flush());\n')]),
    Rule("H26-flush", "both superblocks are written before either is flushed", []),
    Rule("H26-equal", "a mount leaves a lost superblock as it is",
         [Edit(STORE, "if (options_.read_only || copies_equal) return {};",
               "if (options_.read_only || copies_equal || OFF) return {};")]),
    Rule("H26-older", "a mount takes an older superblock where both newer ones are damaged",
         [Edit(SUPERBLOCKS, "  if (ring.may_lack_newer())\n", "  if (ring.may_lack_newer() && !OFF)\n")]),
    Rule("H28-replay", "a recovery may write where the log stands that it replays",
         [Edit(REPLAY, "void Replay::occupy(BlockAddr address) {\n",
               "void Replay::occupy(BlockAddr address) {\n  if (OFF) return;\n")]),
    Rule("H36", "a checkpoint does not enter the owners of new blocks in the reverse map",
         [Edit(MAPS, "    entry.crc = block.crc;\n    put(block.place.address(), entry);\n",
               "    entry.crc = block.crc;\n    if (!OFF) put(block.place.address(), entry);\n")]),
    Rule("H37-head", "nodes are written at a head of file data",
         [Edit(CHECKPOINT, "  parts_.hole_feeder.freeze();\n",
               """  for (unsigned group = 0; group < format::kMaxGroups && OFF; ++group) {
    if (!parts_.log.heads().rests()[group].blocks) continue;
    all_.set_node_head(parts_.log.heads().rests()[group]);
    parts_.log.heads().set(group, {});
    break;
  }
  parts_.hole_feeder.freeze();
""")]),
    Rule("H38", "there is no charge: what fits into clean segments is let in",
         [Edit(CHARGE, "  if (reserve >= capacity || (inodes", "  if (OFF) return true;\n  if (reserve >= capacity || (inodes")],
         [("model_test", "*H38_*")]),
    Rule("H39-users", "users may take the segments that checkpoints and the cleaner need",
         [Edit(ADMISSION, "bool admits(const SpaceView& view, bool frees) {\n", "bool admits(const SpaceView& view, bool frees) {\n  if (OFF) return true;\n")],
         [("model_test", "*H39_*:Brink.*")]),
    Rule("H39-cleaner", "the cleaner may take the segments that checkpoints need",
         [Edit("src/space/space.cc", "bool Space::may_move(const Demand& demand, unsigned group) const {\n",
               "bool Space::may_move(const Demand& demand, unsigned group) const {\n  if (OFF) return true;\n")],
         [("model_test", "*H39_*:Brink.*:*H40_*")]),
    Rule("H43", "a replay gives entries cookies of its own",
         [Edit(REPLAY, "inode(r.directory).directory_delta().add(r.cookie,",
               "inode(r.directory).directory_delta().add(r.cookie + (OFF ? 1000 : 0),")]),
    Rule("H44", "a read-only mount recovers like any other",
         [Edit(FAULTS, "      read_only_(read_only),\n", "      read_only_(read_only && !OFF),\n"),
          Edit(STORE, "  if (options_.read_only) return {};\n  log_info", "  if (options_.read_only && !OFF) return {};\n  log_info")]),
    Rule("H45", "an overlay passes writes on",
         [Edit("src/io/overlay_device.cc",
               "  if (request.kind != IoKind::flush) change(request);\n  reactor.finish_later(request, 0);",
               "  if (request.kind != IoKind::flush) change(request);\n"
               "  if (OFF) return below_.submit(reactor, request);\n  reactor.finish_later(request, 0);"),
          Edit("src/io/overlay_device.cc", "    change(request);\n    return 0;\n", "    change(request);\n    if (OFF) return below_.execute(request);\n    return 0;\n")]),
    Rule("H46-image", "no image of the superblock is written among the nodes",
         [Edit(CHECKPOINT, "  TRY(writer_->write(maps_->image_address(), block.span(), crc, TreeId::super_image, 0));",
               "  if (OFF) std::fill(block.span().begin(), block.span().end(), std::byte{});\n"
               "  TRY(writer_->write(maps_->image_address(), block.span(), crc, TreeId::super_image, 0));")],
         [("repair_test", "*H46_*")]),
    Rule("H46-mount", "without superblocks a mount takes a device for empty",
         [Edit(SUPERBLOCKS, "    return Error(Errc::needs_fsck, fmt::format(\"{}: both superblocks are damaged;",
               "    if (OFF) return Error(Errc::not_varve, \"\");\n    else return Error(Errc::needs_fsck, fmt::format(\"{}: both superblocks are damaged;"),
          Edit(SUPERBLOCKS, "    return Error(Errc::needs_fsck, fmt::format(\"{}: all superblocks are damaged;",
               "    if (OFF) return Error(Errc::not_varve, \"\");\n    else return Error(Errc::needs_fsck, fmt::format(\"{}: all superblocks are damaged;")]),
    Rule("H49", "the superblock's image is written where the last one stands",
         [Edit(MAPS, "  return close_rest();\n",
               "  if (OFF && others.former_image) TRY(touch(image_address_ = others.former_image));\n  return close_rest();\n")]),
    Rule("H51-end", "when the size changes, the copy in block 0 is written first",
         [Edit(SUPERBLOCKS, "  if (first == First::end) std::swap", "  if (first == First::end && !OFF) std::swap")]),
    Rule("H51-slot", "a superblock of another size than the anchors say does not count",
         [Edit("src/format/superblock_ring.cc", "  if (super->area != anchor.area ||",
               "  if (super->area != anchor.area || (OFF && super->device_blocks != anchor.device_blocks) ||")]),
    Rule("H53", "the cleaner believes the reverse map about what only snapshots hold",
         [Edit("src/cleaner/held_blocks.cc", "if (!lives) block.held = true;", "if (!lives && !OFF) block.held = true;")]),
    Rule("H54", "a snapshot keeps the tree of the checkpoint before",
         [Edit(SNAPSHOT_MERGE, "item.inode_file = next.inode_file.ref;",
               "item.inode_file = OFF && parts_.old.inode_file.ref ? parts_.old.inode_file.ref : next.inode_file.ref;")]),
    Rule("H54-kept", "an automatic snapshot that was to be kept goes like the others",
         [Edit("src/checkpoint/snapshot_plan.cc", "if (item->automatic) TRY(keep(*item));", "if (item->automatic && !OFF) TRY(keep(*item));")],
         [("protection_test", "Protection.one_that_is_named_stays:Protection.under_its_own_name_one_stays_too")]),
    Rule("H54-room", "automatic snapshots keep what they hold, whatever waits for room",  # either rule alone is enough
         [Edit("src/checkpoint/protection.cc", "bool Protection::ask_for_room(Need need) {\n", "bool Protection::ask_for_room(Need need) {\n  if (OFF) return true;\n"),
          Edit("src/checkpoint/protection.cc", "  const std::uint64_t beyond = loose - std::min(loose, most);\n",
               "  const std::uint64_t beyond = OFF ? 0 : loose - std::min(loose, most);\n")],
         [("protection_test", "Protection.nobody_*")]),
    Rule("H54-age", "automatic snapshots grow as old as they like",
         [Edit("src/checkpoint/protection.cc", "    if (is_too_old(items.subspan(", "    if (!OFF && is_too_old(items.subspan(")],
         [("protection_test", "Protection.keeps_*:Protection.switched_off_*:Protection.what_a_mount_*:Protection.a_clock_*")]),
    Rule("H54-rules", "automatic snapshots are thinned although what is around them is too far apart",
         [Edit("src/snapshots/retention.cc", "spacing > 0 && before - ages[i + 1] <= spacing;", "spacing > 0 && (OFF || before - ages[i + 1] <= spacing);")],
         [("store_test", "Retention.*"), ("protection_test", "Protection.keeps_what_its_rules_say")]),
    Rule("H55", "where the cleaner has put what snapshots hold is not noted",
         [Edit(SNAPSHOT_MERGE, "  TRY(rename(move.from, move.to, birth));", "  if (!OFF) TRY(rename(move.from, move.to, birth));")]),
    Rule("H55-meanwhile", "what its file loses while the cleaner has it in hand stays where it is, also if a snapshot has it",
         [Edit("src/cleaner/mover.cc", "        if (!is_kept(block)) return {};", "        if (OFF || !is_kept(block)) return {};")],
         [("snapshots_test", "Snapshots.are_moved_when_their_file_is_overwritten_meanwhile")]),
    Rule("H56-held", "what is given back is free also if another snapshot has it",
         [Edit(SNAPSHOT_DELETION, "  if (holder && holder->holds(run.birth)) {", "  if (holder && !OFF && holder->holds(run.birth)) {")],
         [("snapshots_test", "Snapshots.*")]),
    Rule("H56-rest", "what is left of a piece of a list is lost with the snapshot",
         [Edit(SNAPSHOT_DELETION, "    if (rest.empty()) continue;", "    if (rest.empty() || OFF) continue;")],
         [("snapshots_test", "Snapshots.are_given_back_in_parts")]),
    Rule("H57", "a snapshot begins no unit of the log clock",
         [Edit("src/checkpoint/snapshot_plan.cc", "parts_.log_clock.begin_unit(),",
               "OFF ? parts_.log_clock.wide_units(parts_.log_clock.now()) : parts_.log_clock.begin_unit(),")]),
    Rule("H58", "a repair takes a leaf that only a snapshot has for one of the newest tree",
         [Edit("src/repair/leaf_plan.cc", "  if (!may_be_held) return;", "  if (!may_be_held || OFF) return;")],
         [("repair_test", "KeptRepair.H58_*")]),
    Rule("H50", "heads go on after a crash where the checkpoint has left them",
         [Edit(STORE, "  if (super.clean) {\n    open_run(super.chain",
               "  if (super.clean || OFF) {\n    open_run(super.chain")]),
]
