#include "log/log.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <fmt/format.h>

#include "base/crc32c.h"
#include "base/invariant.h"

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

// A write of payload, or of a chunk, with all that it needs until it is done.
struct Log::Write : io::IoRequest {
  explicit Write(Log& its_log) : log(its_log) {}
  bool is_chunk() const { return static_cast<bool>(header); }

  Log& log;
  AlignedBuffer header;
  Lsn lsn;                   // of a chunk
  bool commit = false;         // somebody waits for it
  std::uint64_t began_ns = 0;  // of such a one, where gaps are tried
  std::optional<std::uint32_t> before;
  std::uint64_t ticket = 0;  // of payload
  BlockAddr payload_at;
  boost::container::small_vector<PayloadPtr, 4> payload;
};

Log::Log(device::IoContext& io, segments::SegmentTable& segments, std::uint64_t identity, Clock& clock, std::uint64_t most_in_flight,
         std::optional<std::uint32_t> chunk_gap)
    : io_(io),
      segments_(segments),
      clock_(clock),
      identity_(identity),
      heads_(segments),
      turn_gap_(io.device().geometry().rotational, chunk_gap),
      durability_(io),
      flow_(clock, most_in_flight),
      most_in_request_(io.device().geometry().request_bytes ? io.device().geometry().request_bytes >> kBlockShift : io::kMaxIov) {}

Log::~Log() = default;

void Log::start(const ChainPosition& position, std::uint64_t epoch, bool epoch_on_disk) {
  INVARIANT(chunks() == 0);
  chain_.start(position);
  epoch_ = epoch;
  const Lock lock(held_mutex_);
  epoch_on_disk_ = epoch_on_disk;
  durability_.start(position.lsn);
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
  MEMORY_INVARIANT(write.payload.empty());
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
  // What was not written is read from here for as long as the mount stands. Nothing is written any more, so that its place stays its own.
  for (std::size_t i = 0; i < write.payload.size() && !write.error; ++i) {
    if (write.commit) in_flight_.remember_part(write.payload_at + i, *write.payload[i]);
    in_flight_.remove(write.payload_at + i);
  }
  flow_.landed(write.length);
  const bool tells = write.durable && write.began_ns && !write.error && !write.was_held;
  if (tells) turn_gap_.observe({write.lsn, write.before, write.began_ns, clock_.monotonic_ns()});
  if (write.is_chunk()) durability_.chunk_done(write.lsn, write.error, write.reactor());
  else durability_.payload_done(write.ticket, write.error, write.reactor());
}

// Each chunk that is sealed from now on waits for them.
std::vector<std::unique_ptr<Log::Write>> Log::writes_of(BlockAddr at, std::span<const PayloadPtr> blocks) {
  std::vector<std::unique_ptr<Write>> writes;
  for (std::size_t begin = 0; begin < blocks.size(); begin += writes.back()->payload.size()) {
    Write& write = *writes.emplace_back(new_write(at + begin));
    add_payload(write, at + begin, blocks.subspan(begin, std::min(most_in_request_, blocks.size() - begin)));
    flow_.launched(write.length);
    payload_blocks_written_.fetch_add(write.payload.size(), std::memory_order_relaxed);
    write.ticket = durability_.payload_started();
  }
  return writes;
}

void Log::write_payload(const format::Run& run, std::span<const PayloadPtr> blocks, io::Reactor* reactor) {
  INVARIANT(blocks.size() == run.blocks);
  for (auto& write : writes_of(run.start, blocks)) start(std::move(write), reactor);
}

Result<ChunkPlace> Log::place_chunk(std::uint16_t header_blocks, std::uint32_t payload_blocks, bool commit) {
  return chain_.place(header_blocks, payload_blocks, turn_gap_.choose(commit && chain_.has_room_for_gaps()));
}

Lsn Log::write_chunk(const ChunkPlace& place, std::span<const std::byte> records, std::span<const PayloadPtr> payload,
                     const ChunkStamp& stamp, const Urgency& urgency, io::Reactor* reactor) {
  format::ChunkHeader header;
  header.identity = identity_;
  header.epoch = epoch_;
  header.lsn = chain_.position().lsn + 1;
  header.previous_crc = chain_.position().crc;
  header.header_blocks = place.header_blocks;
  header.payload_blocks = place.payload_blocks;
  header.record_bytes = static_cast<std::uint32_t>(records.size());
  header.address = place.address;
  header.run = place.run;
  header.next_run = place.next_run;
  header.elsewhere = place.elsewhere;
  header.durable = durability_.durable();
  header.settled = settled();
  header.clock = stamp.clock;
  header.next_ino = stamp.next_ino;
  header.payload_crc = payload_crc_of(payload);

  auto chunk = new_write(place.address);
  chunk->header = AlignedBuffer(place.header_blocks * kBlockSize);
  chunk->lsn = header.lsn;
  chunk->add(chunk->header.data(), chunk->header.size());
  INVARIANT(payload.size() == place.payload_blocks);
  INVARIANT(header.durable < header.lsn);
  chain_.take(place, format::encode_chunk(header, records, chunk->header.span()));

  // Payload that is too long for one request is written behind it, and the chunk is not written before that is.
  const std::size_t beside_header = most_in_request_ - std::min<std::size_t>(most_in_request_ - 1, place.header_blocks);
  const auto first = payload.first(std::min(payload.size(), beside_header));
  add_payload(*chunk, place.payload(), first);
  INVARIANT(chunk->payload.size() == first.size());
  auto rest = writes_of(place.payload() + first.size(), payload.subspan(first.size()));
  flow_.launched(chunk->length);
  chunks_written_.fetch_add(1, std::memory_order_relaxed);
  header_blocks_written_.fetch_add(place.header_blocks, std::memory_order_relaxed);
  payload_blocks_written_.fetch_add(first.size(), std::memory_order_relaxed);
  chunk->durable = durability_.chunk_started(header.lsn, urgency.commit, urgency.since_ns);
  chunk->before = place.before;
  chunk->commit = urgency.commit;
  if (urgency.commit && turn_gap_.leaves_any()) chunk->began_ns = clock_.monotonic_ns();
  submit_chunk(std::move(chunk), reactor);
  for (auto& write : rest) start(std::move(write), reactor);
  return header.lsn;
}

// The run that the chunk says it stands in ends with it, so that the next one stands in the next run.
Status Log::leave(const ChunkStamp& stamp, std::uint64_t now_ns) {
  if (!TRY(chain_.prepare_to_leave())) return {};
  const ChunkPlace place = TRY(place_chunk(1, 0, false));
  INVARIANT(place.next_run.blocks > 0);
  write_chunk(place, {}, {}, stamp, {.commit = false, .since_ns = now_ns});
  return {};
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
  for (std::unique_ptr<Write>& chunk : held) {
    chunk->error = ECANCELED;
    written(*chunk.release());
  }
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

}  // namespace varve::log
