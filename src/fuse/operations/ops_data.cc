#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "fuse/operations/operations.h"
#include "fuse/operations/request.h"

namespace varve::fuse {

namespace {

Result<fs::FallocateMode> to_mode(std::uint32_t mode) {
  switch (mode) {
    case 0:
      return fs::FallocateMode::allocate;
    case FALLOC_FL_KEEP_SIZE:
      return fs::FallocateMode::allocate_keep_size;
    case FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE:
      return fs::FallocateMode::punch_hole;
    case FALLOC_FL_ZERO_RANGE:
      return fs::FallocateMode::zero_range;
    case FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE:
      return fs::FallocateMode::zero_range_keep_size;
    default:
      return Errc::unsupported;
  }
}

// Calls change(flags, mode_changes) with what a caller without CAP_FSETID takes away from the file that it changes. The
// kernel goes on showing the mode it has cached: where that is no longer true, it has to be told.
template <class Change>
void change_unprivileged(Request& r, Ino ino, Change change) {
  r.serve([&r, ino] { return r.fs().getattr(r.operation(), ino); },
          [&r, change = std::move(change)](const fs::Attr& attr) {
            // Of a caller's groups only this one is known; sgid that does not mean execution is not worth asking for more.
            change(fs::WriteFlags{.drop_privileges = true, .drop_sgid = (attr.mode & S_ISGID) && r.caller().gid != attr.gid},
                   (attr.mode & (S_ISUID | S_ISGID)) != 0);
          });
}

// The kernel says itself whose writes and truncation take away privileges. Of other changes only the user is known: root
// stands for CAP_FSETID.
template <class Change>
void change_as_user(Request& r, Ino ino, Change change) {
  if (r.caller().uid != 0)
    change_unprivileged(r, ino, std::move(change));
  else
    change({}, false);
}

void forget_attributes(Request& r, Ino ino, bool changed) {
  if (changed) r.session().drop_cached_attributes(ino);
}

void reply_written(Request& r, std::size_t bytes) { r.reply_struct(fuse_write_out{static_cast<std::uint32_t>(bytes), 0}); }

struct DataToWrite {
  std::uint64_t offset;
  std::span<const std::byte> bytes;
  bool is_synced;  // durable before the answer: of asynchronous I/O the kernel leaves that to us
};

void write_data(Request& r, const DataToWrite& data, fs::WriteFlags flags, bool mode_changes) {
  r.serve_result([=, &r, keeper = r.keep_message()] {
                   return r.fs().write(r.operation(), r.node(), data.offset, data.bytes, flags, keeper);
                 },
                 [&r, data, flags, mode_changes](const Result<std::size_t>& written) {
                   const std::uint64_t offset = data.offset, end = data.offset + data.bytes.size();
                   Session& session = r.session();
                   if (!written.ok()) {
                     const Errc why = written.error().code();
                     if (flags.from_cache && LostWrites::loses(why)) session.lose(r.node(), offset, end, why);
                     return r.reply_error(written.error());
                   }
                   session.lost_writes().settled(r.node(), offset, end);
                   session.space_watch().wrote(*written);
                   if (flags.from_cache) session.block_counts().wrote(r.node());
                   else session.block_counts().forget(r.node());  // the kernel asks by itself
                   forget_attributes(r, r.node(), mode_changes);
                   if (!data.is_synced) return reply_written(r, *written);
                   r.serve([&r] { return r.fs().sync(r.operation()); }, [&r, bytes = *written] { reply_written(r, bytes); });
                 });
}

void read_range(Request& r, const FileRange& range) {
  const auto space = r.reply_space(range.bytes);
  r.serve([&r, offset = range.offset, space, keep = range.keep_atime] {
            return r.fs().read(r.operation(), r.node(), offset, space, {.keep_atime = keep});
          },
          [&r, space](std::size_t bytes) { r.reply_bytes(space.first(bytes)); });
}

void reply_piece(Request& r, const FileRange& range, const AheadPiecePtr& piece) {
  if (const auto content = piece->content(range.bytes)) return r.reply_bytes(*content);
  read_range(r, range);
}

void read_claimed(Request& r, const FileRange& range, const AheadPiecePtr& piece) {
  if (!piece)
    read_range(r, range);
  else if (!piece->when_done([&r, range, piece] { r.post([&r, range, piece] { reply_piece(r, range, piece); }); }))
    reply_piece(r, range, piece);
}

void read_stream(Request& r, const FileRange& range) {
  // The request may be over before the pieces are started.
  ReadAhead& ahead = r.session().read_ahead();
  io::Reactor& reactor = r.reactor();
  const auto pool = r.pool();
  const auto pieces = ahead.follow(range, reactor);
  read_claimed(r, range, ahead.claim(range));
  for (const auto& piece : pieces) ahead.start(piece, pool);
}

void seek(Request& r, std::uint64_t offset, fs::SeekKind kind) {
  r.serve([&r, offset, kind] { return r.fs().seek(r.operation(), r.node(), offset, kind); },
          [&r](std::uint64_t found) { r.reply_struct(fuse_lseek_out{found}); });
}

void seek_after_flush(Request& r, std::uint64_t offset, fs::SeekKind kind) {
  r.session().flusher().flush(r.node(), offset,
                              [&r, offset, kind] { r.post([&r, offset, kind] { seek(r, offset, kind); }); });
}

// The kernel has asked for a capability, as it does before a write (ask_for_capability). Of a file without blocks that looked like data in
// its cache, of which there may be some as well. No write(2) can come between.
void count_blocks(Request& r, const std::function<void()>& go_on) {
  if (!r.session().block_counts().is_unseen(r.node())) return go_on();
  const auto counted = [&r, go_on] {
    r.session().block_counts().forget(r.node());
    go_on();
  };
  r.session().flusher().flush(r.node(), 0, [&r, counted] { r.post(counted); });
}

}  // namespace

Status read(Request& r) {
  const auto in = TRY(r.body().take<fuse_read_in>());
  const FileRange range{r.node(), in.offset, TRY(agreed_bytes(in)), (in.flags & O_NOATIME) != 0};
  if (range.bytes >= ReadAhead::kLeast)
    read_stream(r, range);
  else
    read_range(r, range);
  return {};
}

Status write(Request& r) {
  const auto in = TRY(r.body().take<fuse_write_in>());
  if (in.size > kMaxWrite) return Errc::invalid;
  const auto data = TRY(r.body().take_bytes(in.size));
  const bool from_cache = (in.write_flags & FUSE_WRITE_CACHE) != 0;
  const DataToWrite write{in.offset, data, !from_cache && (in.flags & O_DSYNC) != 0};
  const fs::WriteFlags plain{.from_cache = from_cache, .append = !from_cache && (in.flags & O_APPEND) != 0};
  if (in.write_flags & FUSE_WRITE_KILL_SUIDGID) {
    change_unprivileged(r, r.node(), [&r, write, plain](fs::WriteFlags flags, bool mode_changes) {
      flags.from_cache = plain.from_cache;
      flags.append = plain.append;
      write_data(r, write, flags, mode_changes);
    });
  } else {
    write_data(r, write, plain, false);
  }
  return {};
}

Status fallocate(Request& r) {
  const auto in = TRY(r.body().take<fuse_fallocate_in>());
  const auto mode = TRY(to_mode(in.mode));
  const auto change = [&r, in, mode](fs::WriteFlags flags, bool mode_changes) {
    flags.kernel_dates = r.session().kernel_dates();
    r.serve_result([=, &r] { return r.fs().fallocate(r.operation(), r.node(), mode, in.offset, in.length, flags); },
                   [&r, in, mode_changes](const Status& done) {
                     // The kernel takes a failure to have changed nothing; a part can have been allocated.
                     forget_attributes(r, r.node(), mode_changes || !done.ok());
                     if (!done.ok()) return r.reply_error(done.error());
                     if (in.mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE))
                       r.session().lost_writes().settled(r.node(), in.offset, in.offset + in.length);
                     const auto reply = [&r] { r.serve_change(Change::other, [] { return Status(); }, [&r] { r.reply(); }); };
                     count_blocks(r, reply);
                   });
  };
  change_as_user(r, r.node(), change);
  return {};
}

// The kernel asks without writing back first, and what is only in its cache would look like a hole.
Status lseek(Request& r) {
  const auto in = TRY(r.body().take<fuse_lseek_in>());
  const std::uint64_t offset = in.offset;
  if (in.whence == SEEK_HOLE) {
    seek_after_flush(r, offset, fs::SeekKind::hole);
  } else if (in.whence == SEEK_DATA) {
    r.serve_result([&r, offset] { return r.fs().seek(r.operation(), r.node(), offset, fs::SeekKind::data); },
                   [&r, offset](const Result<std::uint64_t>& found) {
                     // Data stays data, whatever the kernel holds back.
                     if (found.ok() && *found == offset) return r.reply_struct(fuse_lseek_out{offset});
                     seek_after_flush(r, offset, fs::SeekKind::data);
                   });
  } else {
    return Errc::invalid;
  }
  return {};
}

// The kernel has reported a refusal once at most: no fsync succeeds while what it was about is missing.
Status fsync(Request& r) {
  const auto in = TRY(r.body().take<fuse_fsync_in>());
  using Keeps = fs::Filesystem::Keeps;
  const Keeps keeps = in.fsync_flags & FUSE_FSYNC_FDATASYNC ? Keeps::all_but_times : Keeps::all;
  r.serve([&r, keeps] { return r.fs().fsync(r.operation(), r.node(), keeps); },
          [&r] {
            if (const auto why = r.session().lost_writes().why_lacking(r.node())) return r.reply_error(*why);
            r.reply();
          });
  return {};
}

// --- copying -----------------------------------------------------------------------------------------------------------

namespace {

void reply_copied(Request& r, std::uint64_t bytes, bool wide) {
  if (wide) return r.reply_struct(wire::CopyFileRangeOut{bytes});
  r.reply_struct(fuse_write_out{static_cast<std::uint32_t>(bytes), 0});
}

void write_copied(Request& r, const fuse_copy_file_range_in& in, std::span<const std::byte> data, bool wide) {
  const auto write_to = [=, &r, target = Ino{in.nodeid_out}](fs::WriteFlags flags, bool mode_changes) {
    flags.kernel_dates = r.session().kernel_dates();
    r.serve_change(
        Change::other, [=, &r] { return r.fs().write(r.operation(), target, in.off_out, data, flags); },
        [=, &r](std::size_t written) {
          r.session().lost_writes().settled(target, in.off_out, in.off_out + written);
          forget_attributes(r, target, mode_changes);
          reply_copied(r, written, wide);
        });
  };
  change_as_user(r, Ino{in.nodeid_out}, write_to);
}

// A piece per request: the caller comes again for the rest. The kernel has written back both ranges, and drops what it
// has cached of the second one afterwards.
Status copy(Request& r, bool wide) {
  const auto in = TRY(r.body().take<fuse_copy_file_range_in>());
  if (in.flags) return Errc::invalid;
  const auto room = r.reply_space(std::min<std::uint64_t>(in.len, kMaxWrite));
  r.serve([&r, in, room] { return r.fs().read(r.operation(), r.node(), in.off_in, room); },
          [&r, in, room, wide](std::size_t bytes) {
            if (bytes == 0) return reply_copied(r, 0, wide);
            write_copied(r, in, room.first(bytes), wide);
          });
  return {};
}

}  // namespace

Status copy_file_range(Request& r) { return copy(r, false); }
Status copy_file_range_64(Request& r) { return copy(r, true); }

}  // namespace varve::fuse
