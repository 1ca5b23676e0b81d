#include "log/log.h"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "base/crc32c.h"
#include "io/first_exception.h"

namespace varve::log {

namespace {

std::uint32_t payload_crc_of(std::span<const PayloadPtr> payload) {
  std::vector<std::byte> crcs(payload.size() * 4);
  for (std::size_t i = 0; i < payload.size(); ++i)
    for (unsigned byte = 0; byte < 4; ++byte)
      crcs[i * 4 + byte] = static_cast<std::byte>(payload[i]->crc >> (8 * byte));
  return crc32c(crcs);
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

Log::Log(IoContext& io, SegmentTable& segments, std::uint64_t identity, Clock& clock, std::uint64_t most_in_flight)
    : io_(io),
      segments_(segments),
      identity_(identity),
      durability_(io),
      clock_(clock),
      bandwidth_(kLeastInFlight, std::max(most_in_flight, kLeastInFlight)) {}

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

void Log::write_payload(const format::Run& run, std::span<const PayloadPtr> blocks) {
  for (std::size_t begin = 0; begin < blocks.size();) {
    auto request = std::make_unique<io::IoRequest>();
    request->kind = io::IoKind::write;
    request->offset = (run.start + begin).v << kBlockShift;
    std::vector<PayloadPtr> keep;
    while (begin + keep.size() < blocks.size() && request->iov.size() < io::kMaxIov) {
      const PayloadPtr& block = blocks[begin + keep.size()];
      add_block(*request, block->data);
      in_flight_.add(run.start + begin + keep.size(), block);
      keep.push_back(block);
    }
    const BlockAddr address = run.start + begin;
    begin += keep.size();
    const std::uint64_t bytes = request->length;
    launched(bytes);
    payload_blocks_written_.fetch_add(keep.size(), std::memory_order_relaxed);
    const std::uint64_t ticket = durability_.payload_started();
    io_.start(std::move(request), [this, ticket, address, bytes, keep = std::move(keep)](int error) {
      for (std::size_t i = 0; i < keep.size(); ++i) in_flight_.remove(address + i);
      landed(bytes, [&] { durability_.payload_done(ticket, error); });
    });
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
                     const ChunkStamp& stamp, const Urgency& urgency) {
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

  auto buffer = std::make_shared<AlignedBuffer>(place.header_blocks * kBlockSize);
  chain_.crc = format::encode_chunk(header, records, buffer->span());
  chain_.lsn = header.lsn;
  const std::uint32_t total = header.total_blocks();
  segments_.touch(place.address);
  chain_.rest.start = chain_.rest.start + total;
  chain_.rest.blocks -= total;
  if (!chain_.rest.blocks) segments_.close(segments_.geometry().segment_of(place.address), clock_hint);

  auto request = std::make_unique<io::IoRequest>();
  request->kind = io::IoKind::write;
  request->offset = place.address.v << kBlockShift;
  request->add(buffer->data(), buffer->size());
  for (std::size_t i = 0; i < payload.size(); ++i) {
    add_block(*request, payload[i]->data);
    in_flight_.add(place.payload() + i, payload[i]);
  }
  const std::uint64_t bytes = request->length;
  launched(bytes);
  chunks_written_.fetch_add(1, std::memory_order_relaxed);
  header_blocks_written_.fetch_add(place.header_blocks, std::memory_order_relaxed);
  payload_blocks_written_.fetch_add(payload.size(), std::memory_order_relaxed);
  request->durable = durability_.chunk_started(header.lsn, urgency.commit, urgency.since_ns);
  submit_chunk(std::move(request),
               [this, lsn = header.lsn, at = place.payload(), bytes, buffer,
                keep = std::vector<PayloadPtr>(payload.begin(), payload.end())](int error) {
                 for (std::size_t i = 0; i < keep.size(); ++i) in_flight_.remove(at + i);
                 landed(bytes, [&] { durability_.chunk_done(lsn, error); });
               });
  return header.lsn;
}

void Log::submit_chunk(std::unique_ptr<io::IoRequest> request, std::function<void(int)> done) {
  bool ask = false;
  {
    const Lock lock(held_mutex_);
    if (!epoch_on_disk_ || given_up_) {
      held_.push_back({std::move(request), std::move(done)});
      ask = !epoch_asked_ && !given_up_;
      epoch_asked_ |= ask;
    }
  }
  if (request) io_.start(std::move(request), std::move(done));
  if (ask && epoch_wanted_) epoch_wanted_();
}

void Log::give_up() {
  std::vector<HeldChunk> held;
  {
    const Lock lock(held_mutex_);
    given_up_ = true;
    held.swap(held_);
  }
  io::call_for_all(held, [](HeldChunk& chunk) { chunk.done(ECANCELED); });
}

void Log::epoch_written() noexcept {
  std::vector<HeldChunk> held;
  {
    const Lock lock(held_mutex_);
    epoch_on_disk_ = true;
    if (!given_up_) held.swap(held_);
  }
  for (HeldChunk& chunk : held) io_.start(std::move(chunk.request), std::move(chunk.done));
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
