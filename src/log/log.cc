#include "log/log.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <fmt/format.h>

#include "base/crc32c.h"
#include "io/first_exception.h"

namespace varve::log {

namespace {

std::uint32_t payload_crc_of(std::span<const PayloadPtr> payload) {
  std::uint32_t crc = 0;
  for (const PayloadPtr& block : payload) {
    std::array<std::byte, 4> bytes;
    for (unsigned byte = 0; byte < 4; ++byte) bytes[byte] = static_cast<std::byte>(block->crc >> (8 * byte));
    crc = crc32c(bytes, crc);
  }
  return crc;
}

// Neighbours in memory become one entry.
void add_block(io::IoRequest& request, std::byte* data) {
  if (!request.iov.empty()) {
    iovec& last = request.iov.back();
    if (static_cast<std::byte*>(last.iov_base) + last.iov_len == data) {
      last.iov_len += kBlockSize;
      request.length += kBlockSize;
      return;
    }
  }
  request.add(data, kBlockSize);
}

}  // namespace

constexpr std::uint64_t kLeastInFlight = 1u << 20;

// A write of payload, or of a chunk, with all that it needs until it is done.
struct Log::Write : io::IoRequest {
  explicit Write(Log& its_log) : log(its_log) {}
  bool is_chunk() const { return static_cast<bool>(header); }

  Log& log;
  AlignedBuffer header;
  Lsn lsn;                   // of a chunk
  std::uint64_t ticket = 0;  // of payload
  BlockAddr payload_at;
  boost::container::small_vector<PayloadPtr, 4> payload;
};

Log::Log(IoContext& io, SegmentTable& segments, std::uint64_t identity, Clock& clock, std::uint64_t most_in_flight)
    : io_(io),
      segments_(segments),
      identity_(identity),
      durability_(io),
      clock_(clock),
      bandwidth_(kLeastInFlight, std::max(most_in_flight, kLeastInFlight)) {}

Log::~Log() = default;

void Log::start(const ChainPosition& position, std::uint64_t epoch, bool epoch_on_disk) {
  chain_ = position;
  epoch_ = epoch;
  const Lock lock(held_mutex_);
  epoch_on_disk_ = epoch_on_disk;
  durability_.start(position.lsn);
}

format::Run Log::allocate(unsigned group, std::uint32_t blocks) {
  format::Run& head = heads_[group];
  if (!head.blocks) {
    auto id = segments_.take(static_cast<std::uint8_t>(group), clock_hint);
    if (!id) return {};
    head = {segments_.geometry().start_of(*id), segments_.geometry().blocks};
  }
  const format::Run got{head.start, std::min(head.blocks, blocks)};
  segments_.touch(got.start);
  head_used_[group] = clock_hint;
  head.start = head.start + got.blocks;
  head.blocks -= got.blocks;
  if (!head.blocks) segments_.close(segments_.geometry().segment_of(got.start), clock_hint);
  return got;
}

// The superblock may go on naming their rests, which is believed after a clean unmount only, by a checkpoint of then.
unsigned Log::give_up_heads(std::uint64_t before) {
  unsigned closed = 0;
  for (unsigned group = 1; group < heads_.size(); ++group) {
    format::Run& head = heads_[group];
    if (!head.blocks || head_used_[group] >= before) continue;
    segments_.close(segments_.geometry().segment_of(head.start), clock_hint);
    head = {};
    ++closed;
  }
  return closed;
}

// --- holes ------------------------------------------------------------------------------------------------------------

format::Run Log::allocate_in_hole(std::uint32_t blocks) {
  const format::Run got = holes_.take(blocks);
  if (got.blocks) segments_.touch(got.start);
  close_finished_holes();
  return got;
}

void Log::give_up_begun_holes() {
  holes_.give_up_begun();
  close_finished_holes();
}

void Log::give_up_holes() {
  holes_.give_up();
  close_finished_holes();
}

void Log::close_finished_holes() {
  for (SegmentId segment : holes_.take_finished()) segments_.close(segment, clock_hint);
}

// --- writing ----------------------------------------------------------------------------------------------------------

std::unique_ptr<Log::Write> Log::new_write(BlockAddr at) {
  auto write = std::make_unique<Write>(*this);
  write->kind = io::IoKind::write;
  write->offset = at.v << kBlockShift;
  write->done = [](io::IoRequest& request) {
    auto& finished = static_cast<Write&>(request);
    finished.log.written(finished);
  };
  write->abandoned = [](io::IoRequest& request) { delete static_cast<Write*>(&request); };
  return write;
}

void Log::add_payload(Write& write, BlockAddr at, std::span<const PayloadPtr> blocks) {
  write.payload_at = at;
  for (const PayloadPtr& block : blocks) {
    if (write.iov.size() == io::kMaxIov) break;
    in_flight_.add(at + write.payload.size(), block);
    write.payload.push_back(block);
    add_block(write, block->data);
  }
}

void Log::start(std::unique_ptr<Write> write, io::Reactor* reactor) {
  io_.start(*write, reactor);
  (void)write.release();  // written() has it
}

void Log::written(Write& write) {
  const std::unique_ptr<Write> owned(&write);
  for (std::size_t i = 0; i < write.payload.size(); ++i) in_flight_.remove(write.payload_at + i);
  landed(write.length, [&] {
    if (write.is_chunk()) durability_.chunk_done(write.lsn, write.error, write.reactor());
    else durability_.payload_done(write.ticket, write.error, write.reactor());
  });
}

void Log::write_payload(const format::Run& run, std::span<const PayloadPtr> blocks, io::Reactor* reactor) {
  for (std::size_t begin = 0; begin < blocks.size();) {
    auto write = new_write(run.start + begin);
    add_payload(*write, run.start + begin, blocks.subspan(begin));
    begin += write->payload.size();
    launched(write->length);
    payload_blocks_written_.fetch_add(write->payload.size(), std::memory_order_relaxed);
    write->ticket = durability_.payload_started();
    start(std::move(write), reactor);
  }
}

bool Log::advance_run() {
  if (!chain_.next_run.blocks) return false;
  if (chain_.rest.blocks) segments_.close(segments_.geometry().segment_of(chain_.rest.start), clock_hint);
  chain_.rest = chain_.next_run;
  chain_.next_run = {};
  return true;
}

Result<ChunkPlace> Log::place_chunk(std::uint16_t header_blocks, std::uint32_t payload_blocks) {
  const std::uint32_t need = header_blocks + payload_blocks;
  if (chain_.rest.blocks < need && !advance_run())
    return Error(Errc::no_space, "the log has no clean segment left to go on in");
  if (chain_.rest.blocks < need) return Error(Errc::invalid, fmt::format("a chunk of {} blocks fits in no run", need));
  if (!chain_.next_run.blocks) {
    if (auto id = segments_.take(format::kGroupChain))
      chain_.next_run = {segments_.geometry().start_of(*id), segments_.geometry().blocks};
  }
  ChunkPlace place;
  place.address = chain_.rest.start;
  place.run = chain_.rest;
  place.next_run = chain_.next_run;
  place.header_blocks = header_blocks;
  place.payload_blocks = payload_blocks;
  return place;
}

Lsn Log::write_chunk(const ChunkPlace& place, std::span<const std::byte> records, std::span<const PayloadPtr> payload,
                     const ChunkStamp& stamp, const Urgency& urgency, io::Reactor* reactor) {
  format::ChunkHeader header;
  header.identity = identity_;
  header.epoch = epoch_;
  header.lsn = chain_.lsn + 1;
  header.previous_crc = chain_.crc;
  header.header_blocks = place.header_blocks;
  header.payload_blocks = place.payload_blocks;
  header.record_bytes = static_cast<std::uint32_t>(records.size());
  header.address = place.address;
  header.run = place.run;
  header.next_run = place.next_run;
  header.durable = durability_.durable();
  header.settled = stamp.settled;
  header.clock = stamp.clock;
  header.next_ino = stamp.next_ino;
  header.payload_crc = payload_crc_of(payload);

  auto chunk = new_write(place.address);
  chunk->header = AlignedBuffer(place.header_blocks * kBlockSize);
  chunk->lsn = header.lsn;
  chunk->add(chunk->header.data(), chunk->header.size());
  chain_.crc = format::encode_chunk(header, records, chunk->header.span());
  chain_.lsn = header.lsn;
  const std::uint32_t total = header.total_blocks();
  segments_.touch(place.address);
  chain_.rest.start = chain_.rest.start + total;
  chain_.rest.blocks -= total;
  if (!chain_.rest.blocks) segments_.close(segments_.geometry().segment_of(place.address), clock_hint);

  add_payload(*chunk, place.payload(), payload);
  launched(chunk->length);
  chunks_written_.fetch_add(1, std::memory_order_relaxed);
  header_blocks_written_.fetch_add(place.header_blocks, std::memory_order_relaxed);
  payload_blocks_written_.fetch_add(payload.size(), std::memory_order_relaxed);
  chunk->durable = durability_.chunk_started(header.lsn, urgency.commit, urgency.since_ns);
  submit_chunk(std::move(chunk), reactor);
  return header.lsn;
}

void Log::submit_chunk(std::unique_ptr<Write> chunk, io::Reactor* reactor) {
  bool ask = false;
  {
    const Lock lock(held_mutex_);
    if (!epoch_on_disk_ || given_up_) {
      held_.push_back(std::move(chunk));
      ask = !epoch_asked_ && !given_up_;
      epoch_asked_ |= ask;
    }
  }
  if (chunk) start(std::move(chunk), reactor);
  if (ask && epoch_wanted_) epoch_wanted_();
}

void Log::give_up() {
  std::vector<std::unique_ptr<Write>> held;
  {
    const Lock lock(held_mutex_);
    given_up_ = true;
    held.swap(held_);
  }
  io::call_for_all(held, [this](std::unique_ptr<Write>& chunk) {
    chunk->error = ECANCELED;
    written(*chunk.release());
  });
}

void Log::epoch_written() noexcept {
  std::vector<std::unique_ptr<Write>> held;
  {
    const Lock lock(held_mutex_);
    epoch_on_disk_ = true;
    if (!given_up_) held.swap(held_);
  }
  for (auto& chunk : held) start(std::move(chunk), nullptr);
}

void Log::launched(std::uint64_t bytes) {
  bytes_in_flight_.fetch_add(bytes, std::memory_order_relaxed);
  bandwidth_.started(bytes, clock_.monotonic_ns());
}

template <class Note>
void Log::landed(std::uint64_t bytes, Note&& note_durability) {
  bytes_in_flight_.fetch_sub(bytes, std::memory_order_relaxed);
  bandwidth_.done(bytes, clock_.monotonic_ns());
  std::vector<std::function<void()>> ready;
  {
    const Lock lock(room_mutex_);
    if (!is_full()) ready.swap(room_waiters_);
  }
  io::FirstException thrown;
  thrown.run([&] { io::call_for_all(ready, [](auto& call) { call(); }); });
  thrown.run(note_durability);
  thrown.rethrow();
}

void Log::when_room(std::function<void()> ready) {
  {
    const Lock lock(room_mutex_);
    if (is_full()) {
      room_waiters_.push_back(std::move(ready));
      return;
    }
  }
  ready();
}

}  // namespace varve::log
