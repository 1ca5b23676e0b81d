// All fields of a mount's status in one table: JSON, `varve status`, metrics and docs/status.md are made from it, in this order.
//
// COUNTER(section, key, unit, label, metric, meaning) is a number that fs/status.h gets as a member: this line is all it takes.
// FIELD(section, key, value, unit, label, metric, meaning) has a value that is made from `s`, the FilesystemStatus.
// TOLD(section, key, unit, label, metric, meaning) is a field that others add: the daemon, or the tool that reads a superblock.
//
// A field without a label is not shown as text. Metrics are in bytes where blocks are told. Units: control/status_fields.h.
#pragma once

// clang-format off
#define VARVE_STATUS_FIELDS(COUNTER, FIELD, TOLD) \
  FIELD("", device, s.device, words, "Device", none, "The device or image.") \
  FIELD("", backend, s.backend, words, "I/O", none, "How it is read and written: io_uring, threads, or a protocol of a network.") \
  FIELD("", label, s.label, words, "Label", none, "Its name.") \
  FIELD("", uuid, s.uuid, words, "UUID", none, "What tells it from all others.") \
  TOLD("", state, words, "State", none, "Of a filesystem that is not mounted: how its last mount ended.") \
  FIELD("", read_only, s.read_only, flag, "Read-only", gauge("varve_read_only"), \
        "1: nothing can be written; without having been asked for it is after an error.") \
  FIELD("", read_only_reason, s.read_only_reason, words, "Because", none, "Why nothing can be written.") \
  COUNTER("", uptime_seconds, seconds, "", gauge("varve_mounted_seconds"), "Since the mount.") \
  FIELD("", snapshot, s.snapshot, words, "", none, "The snapshot that is shown instead of the newest state.") \
  FIELD("space", block_bytes, kBlockSize, bytes, "", none, "Size of a block.") \
  COUNTER("space", device_blocks, blocks, "Device", gauge("varve_device_bytes"), "Size of the filesystem.") \
  COUNTER("space", live_blocks, share, "Live", gauge("varve_live_bytes"), "Blocks in use.") \
  COUNTER("space", garbage_blocks, share, "Garbage", gauge("varve_garbage_bytes"), "Old versions that a cleaner has not collected.") \
  COUNTER("space", reserve_blocks, share, "Reserve", gauge("varve_reserve_bytes"), "Kept for cleaning and checkpoints.") \
  COUNTER("space", reclaimable_blocks, share, "  freed by a checkpoint", none, "Garbage that the next checkpoint frees without cleaning.") \
  COUNTER("space", charged_blocks, share, "Charged to users", gauge("varve_charged_bytes"), "What counts as used by users.") \
  COUNTER("space", available_blocks, blocks, "", gauge("varve_available_bytes"), "What users can still write, as df shows it.") \
  COUNTER("space", segment_blocks, blocks, "Segment", none, "Size of a segment.") \
  FIELD("space.segments", total, s.segments.total, count, "Total", none, "Segments of the device.") \
  FIELD("space.segments", clean, s.segments.clean, count, "Clean", none, "Segments that can be filled now.") \
  FIELD("space.segments", open, s.segments.open, count, "Open", none, "Segments that are being filled.") \
  FIELD("space.segments", refilling, s.segments.refilling, count, "Open for holes", none, "Open ones of which the holes are written.") \
  FIELD("space.segments", empty, s.segments.empty, count, "Empty, to be settled", none, \
        "Segments without anything live, which the next settled checkpoint makes clean.") \
  FIELD("space.segments", used, s.segments.used, count, "Used", none, "Segments with something live.") \
  FIELD("space", utilisation, s.utilisation, list, "", none, "Used segments by the share of their blocks that is live, in even steps.") \
  FIELD("space", groups, groups_json(s), list, "", none, "Segments by the head that filled them, and how much of that is live.") \
  FIELD("snapshots", count, s.snapshots.count, count, "", gauge("varve_snapshots"), "Snapshots.") \
  FIELD("snapshots", held_bytes, s.snapshots.held_blocks << kBlockShift, bytes, "", gauge("varve_snapshots_held_bytes"), \
        "Blocks that only snapshots need.") \
  FIELD("snapshots", giving_back, s.snapshots.giving_back, flag, "", none, "What deleted ones held is being given back.") \
  FIELD("snapshots", damage, s.snapshots.damage, words, "", none, "What is damaged of the tables of snapshots, and what to do.") \
  FIELD("protection", on, s.protection.is_on(), flag, "", none, "Automatic snapshots are made.") \
  FIELD("protection", seconds, s.protection.is_on() ? s.protection.window_s : 0, seconds, "", none, "How far back all of them are kept.") \
  FIELD("protection", every_seconds, s.protection.interval_s(), seconds, "", none, "How often one is made.") \
  FIELD("protection", protect, s.protection.window_text(), words, "", none, "The rules, as the option protect= has them.") \
  FIELD("protection", rules, rules_json(s), list, "", none, "Up to which age they are kept, and how far apart.") \
  FIELD("protection", kept_by_rule, s.snapshots.kept_by_rule, list, "", none, "How many each rule keeps.") \
  FIELD("protection", oldest_seconds, s.snapshots.oldest_automatic_s, seconds, "", none, "Age of the oldest.") \
  FIELD("protection", snapshots, s.snapshots.automatic, count, "", gauge("varve_automatic_snapshots"), "Snapshots that go by themselves.") \
  FIELD("protection", held_bytes, s.snapshots.loose_blocks << kBlockShift, bytes, "", gauge("varve_automatic_snapshots_held_bytes"), \
        "Blocks that only these need; they count as free.") \
  FIELD("protection", given_up, s.snapshots.given_up, count, "", counter("varve_automatic_snapshots_given_up"), \
        "Of these, for the room that they held.") \
  COUNTER("log", lsn, count, "Last chunk", none, "Number of the last chunk of the log.") \
  COUNTER("log", durable_lsn, count, "Durable up to", none, "Number of the last chunk that a crash leaves.") \
  COUNTER("log", chunks, count, "Chunks written", none, "Chunks since the mount.") \
  COUNTER("log", flushes, count, "Flushes", counter("varve_flushes"), "Flushes of the device.") \
  COUNTER("log", pending_bytes, bytes, "Waiting to be written", none, "Memory of data on its way to the device.") \
  COUNTER("log", log_bytes_since_checkpoint, bytes, "To replay after a crash", gauge("varve_log_bytes"), \
          "What a recovery would have to read.") \
  COUNTER("log", delta_records, count, "Records in memory", none, "Changes since the checkpoint.") \
  COUNTER("log", delta_bytes, bytes, "Memory of records", gauge("varve_delta_bytes"), "Memory of changes since the checkpoint.") \
  COUNTER("log", serial, count, "Settled checkpoint", none, "Number of the newest settled checkpoint.") \
  COUNTER("log", checkpoints, count, "Checkpoints", counter("varve_checkpoints"), "Checkpoints since the mount.") \
  FIELD("log", checkpoint_running, s.checkpoint_running, flag, "Checkpoint running", none, "One is being made.") \
  COUNTER("log", replayed_chunks, count, "Chunks replayed at mount", none, "Chunks that the mount had to recover.") \
  FIELD("device_profile", erase_unit, s.device_profile.erase_blocks * kBlockSize, bytes, "", none, \
        "What the device erases at once. 0: not known.") \
  FIELD("device_profile", erase_unit_is, name_of(s.device_profile.erase_source), words, "", none, "How that is known.") \
  FIELD("device_profile", streams, s.device_profile.streams, count, "", none, "Places that can be written in turn. 0: not known.") \
  FIELD("device_profile", streams_are, name_of(s.device_profile.streams_source), words, "", none, "How that is known.") \
  COUNTER("traffic", user_blocks_written, blocks, "By users", counter("varve_user_written_bytes"), "Written by users.") \
  COUNTER("traffic", data_blocks_written, blocks, "Data for users", none, "Written to the device for users.") \
  COUNTER("traffic", chain_blocks_written, blocks, "Log headers", counter("varve_chain_written_bytes"), "Log headers written.") \
  COUNTER("traffic", node_blocks_written, blocks, "Metadata nodes", counter("varve_node_written_bytes"), "Tree nodes written.") \
  COUNTER("traffic", cleaned_blocks_written, blocks, "Moved by cleaning", counter("varve_cleaned_written_bytes"), "Moved by cleaning.") \
  COUNTER("traffic", refilled_blocks_written, blocks, "Of all, into holes", none, \
          "Written into holes of used segments, by users and cleaning.") \
  COUNTER("traffic", cleaned_blocks_read, blocks, "", none, "Read by cleaning.") \
  COUNTER("traffic", device_bytes_written, bytes, "To the device, in all", counter("varve_device_written_bytes"), \
          "Written to the device in all.") \
  COUNTER("traffic", device_bytes_read, bytes, "From the device", counter("varve_device_read_bytes"), "Read from the device in all.") \
  COUNTER("traffic", device_writes, count, "", counter("varve_device_writes"), "Write requests to the device.") \
  COUNTER("traffic", device_reads, count, "", counter("varve_device_reads"), "Read requests to the device.") \
  COUNTER("traffic", device_read_errors, count, "", counter("varve_device_read_errors"), "Read requests that the device failed.") \
  COUNTER("traffic", device_write_errors, count, "", counter("varve_device_write_errors"), \
          "Write and flush requests that the device failed.") \
  FIELD("traffic", write_cost, s.write_cost, factor, "Write cost", gauge("varve_write_cost_ratio"), \
        "Blocks written for each block of users since the mount.") \
  FIELD("traffic", lifetime_write_cost, s.lifetime_write_cost, factor, "Write cost, lifetime", none, "The same since mkfs.") \
  FIELD("cleaner", running, s.cleaner_running, flag, "Running", none, "It has something to do.") \
  FIELD("cleaner", state, s.cleaner_state, words, "State", none, "What it does, or why it does nothing.") \
  FIELD("cleaner", strategy, s.strategy, words, "Strategy", none, "How it cleans.") \
  FIELD("cleaner", decision, s.strategy_explanation, words, "Decision", none, "Why the strategy has chosen what it does.") \
  FIELD("cleaner", victim_policy, s.victim_policy, words, "Policy", none, "Which segments it takes.") \
  FIELD("cleaner", placement, s.placement, words, "Placement", none, "Which blocks share segments.") \
  COUNTER("cleaner", segments_cleaned, count, "Segments cleaned", counter("varve_segments_cleaned"), "Segments emptied since the mount.") \
  COUNTER("cleaner", pinned_segments, count, "Pinned by bad blocks", gauge("varve_pinned_segments"), \
          "Segments that bad blocks keep in use.") \
  COUNTER("cleaner", pinned_garbage_blocks, blocks, "", none, "Garbage in these.") \
  FIELD("waits", node, wait_json(s, operation::WaitCause::node), wait, "Tree nodes", none, "For a tree node from the device.") \
  FIELD("waits", data, wait_json(s, operation::WaitCause::data), wait, "Blocks of files", none, "For blocks of a file from the device.") \
  FIELD("waits", durable, wait_json(s, operation::WaitCause::durable), wait, "Flushes", none, "For a flush.") \
  FIELD("waits", memory, wait_json(s, operation::WaitCause::memory), wait, "Memory for changes", none, \
        "For a checkpoint, because changes fill their memory.") \
  FIELD("waits", space, wait_json(s, operation::WaitCause::space), wait, "Clean segments", none, \
        "For a checkpoint, because clean segments run short.") \
  FIELD("waits", in_flight, wait_json(s, operation::WaitCause::in_flight), wait, "Writes on their way", none, \
        "For writes that are on their way.") \
  FIELD("scrub", state, name_of(s.scrub.phase), words, "State", none, "Of the newest one: never, running, stopped, finished, failed.") \
  FIELD("scrub", reason, s.scrub.reason, words, "Because", none, "Why it failed.") \
  FIELD("scrub", started, s.scrub.started, time, "Began", none, "When the newest scrub began, since 1970.") \
  FIELD("scrub", finished, s.scrub.finished, time, "", gauge("varve_scrub_finished_timestamp_seconds"), \
        "When the newest scrub came to its end, since 1970. 0: it has not, or there was none.") \
  FIELD("scrub", bytes_per_second, s.scrub.bytes_per_second, bytes, "", none, "Its limit. 0: none.") \
  FIELD("scrub", verified_blocks, s.scrub.blocks, blocks, "Verified", none, "How much it has verified.") \
  FIELD("scrub", live_blocks, s.scrub.blocks_all, blocks, "Live", none, "How much there is to verify.") \
  FIELD("scrub", errors, s.scrub.errors, count, "Errors", gauge("varve_scrub_errors"), "Damaged places that the newest scrub has found.") \
  FIELD("scrub", snapshot_errors, s.scrub.snapshot_errors, count, "", none, "Of this mount, in what only snapshots hold.") \
  COUNTER("memory", node_cache_bytes, bytes, "Tree nodes", gauge("varve_node_cache_bytes"), "Memory of tree nodes.") \
  COUNTER("memory", node_cache_hits, count, "  hits", counter("varve_node_cache_hits"), "Tree nodes found in memory.") \
  COUNTER("memory", node_cache_misses, count, "  misses", counter("varve_node_cache_misses"), "Tree nodes read from the device.") \
  COUNTER("memory", inodes_cached, count, "Inodes cached", none, "Inodes in memory.") \
  COUNTER("memory", references, count, "Inodes the kernel holds", none, "Inodes that the kernel may ask for by number.") \
  COUNTER("memory", memory_limit_bytes, bytes, "Limit", gauge("varve_memory_limit_bytes"), "Bound of the daemon's memory.") \
  FIELD("lifetime", user_blocks, s.lifetime.user_blocks, blocks, "Written by users", counter("varve_lifetime_user_written_bytes"), \
        "Written by users since mkfs.") \
  FIELD("lifetime", cleaned_blocks, s.lifetime.cleaned_blocks, blocks, "Moved by cleaning", none, "Moved by cleaning since mkfs.") \
  FIELD("lifetime", node_blocks, s.lifetime.node_blocks, blocks, "Metadata nodes", none, "Tree nodes written since mkfs.") \
  FIELD("lifetime", chain_blocks, s.lifetime.chain_blocks, blocks, "Log headers", none, "Log headers written since mkfs.") \
  FIELD("lifetime", device_bytes, s.lifetime.device_bytes, bytes, "To the device, in all", counter("varve_lifetime_device_written_bytes"), \
        "Written to the device since mkfs.") \
  FIELD("lifetime", checkpoints, s.lifetime.checkpoints, count, "Checkpoints", none, "Checkpoints since mkfs.") \
  FIELD("lifetime", mounts, s.lifetime.mounts, count, "Mounts", none, "Mounts since mkfs.") \
  FIELD("lifetime", recoveries, s.lifetime.recoveries, count, "Recoveries", counter("varve_recoveries"), \
        "Mounts that had to recover since mkfs.") \
  FIELD("lifetime", segments_cleaned, s.lifetime.segments_cleaned, count, "Segments cleaned", none, "Segments emptied since mkfs.") \
  FIELD("lifetime", errors, s.lifetime.errors, count, "Errors", counter("varve_errors"), \
        "Errors of the device and damage found since mkfs. Alarm on any increase.") \
  FIELD("", first_error, to_json(s.first_error), event, "First error", none, \
        "Since mkfs: when, what, and of which block and inode. null: none.") \
  FIELD("", last_error, to_json(s.last_error), event, "Last error", none, "The same of the last one.") \
  FIELD("faults", unreadable, s.faults.unreadable, count, "Reads that failed", counter("varve_unreadable"), \
        "Reads since the mount that the device failed.") \
  FIELD("faults", damaged, s.faults.damaged, count, "Reads of damaged blocks", counter("varve_damaged"), \
        "Reads since the mount of what did not match its checksum.") \
  FIELD("faults", other, s.faults.other, count, "Others", none, "Writes and flushes that failed, and faults of the program.") \
  FIELD("faults", places_last_hour, s.faults.places_last_hour, count, "Bad blocks, last hour", none, \
        "Blocks of the device that could not be read, or were damaged, within an hour.") \
  FIELD("faults", places_last_day, s.faults.places_last_day, count, "Bad blocks, last day", gauge("varve_bad_places"), \
        "Blocks of the device that could not be read, or were damaged, within a day. Replace the medium when it grows.") \
  TOLD("lease", held, flag, "Held", none, "The lease of the device is this mount's.") \
  TOLD("lease", lost_because, words, "Lost because", none, "Why it has been lost.") \
  TOLD("lease", holder, words, "Holder", none, "The program and machine that have it.") \
  TOLD("lease", others_may_reach_it, flag, "Others may reach it", none, "Other machines can have the device, too.") \
  TOLD("lease", last_look_ms, count, "Last look (ms ago)", none, "When the lease was last looked at.") \
  TOLD("connection", connected, flag, "Connected", gauge("varve_device_connected"), \
       "0: the device is a server's that cannot be reached now. Nothing for others.") \
  TOLD("connection", away_ms, count, "", none, "For how long the server has not been reached.") \
  TOLD("connection", patience_ms, count, "", none, "How long that is waited for.") \
  TOLD("connection", reconnects, count, "Connected anew", counter("varve_device_reconnects"), "Connections that were lost and came back.") \
  TOLD("host", full, flag, "Has no room", gauge("varve_host_full"), \
       "1: the host has no room for what is written. It is held, and changes are refused until there is room.") \
  TOLD("host", since_ms, count, "", none, "For how long it has had no room.") \
  TOLD("host", held_bytes, bytes, "Held in memory", gauge("varve_held_bytes"), "Written, but held in memory until the host has room.") \
  TOLD("host", times, count, "Had no room (times)", counter("varve_host_full_times"), "How often the host had no room since the mount.") \
  TOLD("mount", source, words, "", none, "The device or image, as the mount table has it.") \
  TOLD("mount", mount_point, words, "At", none, "Where it is mounted.") \
  TOLD("mount", pid, count, "Process", none, "The daemon.") \
  TOLD("mount", threads, count, "Serving threads", none, "Threads that serve requests.") \
  TOLD("mount", protocol, words, "FUSE", none, "Version of the protocol that the kernel agreed to.") \
  TOLD("mount", options, words, "Options", none, "Options of the mount, as they were given.") \
  TOLD("mount", log, words, "Log", none, "Where the daemon's messages are.") \
  TOLD("mount", features, list, "Features", none, "What the kernel agreed to.") \
  TOLD("mount", snapshots_dir, words, "", none, "The folder of snapshots, in the root.") \
  TOLD("mount", shut_down, flag, "", none, "Somebody has ended all writing (FS_IOC_SHUTDOWN).") \
  TOLD("mount", read_only, flag, "", none, "It was mounted read-only.") \
  TOLD("mount", requests, list, "", none, "Requests served, by operation.") \
  TOLD("mount", latencies, list, "", none, "How long they took, by operation: number, sum, and a histogram of microseconds.")
// clang-format on
