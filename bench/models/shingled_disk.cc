#include "models/shingled_disk.h"

#include <algorithm>
#include <cmath>

namespace varve::bench {

ShingledDisk::ShingledDisk(Facts facts, const ShingleParameters& parameters)
    : DeviceModel(std::move(facts)),
      parameters_(parameters),
      spindle_(parameters.spindle),
      cache_pages_(static_cast<std::uint64_t>(static_cast<double>(parameters.spindle.size) * parameters.cache_share) / kPage),
      cached_in_band_(parameters.spindle.size / parameters.band + 1) {}

// The cache lies in front of the bands.
std::uint64_t ShingledDisk::place_of(std::uint64_t page) const {
  const auto found = cached_.find(page);
  return found == cached_.end() ? cache_pages_ * kPage + page * kPage : found->second * kPage;
}

std::size_t ShingledDisk::choose(std::span<const Request> waiting) const {
  std::size_t best = 0;
  double least = -1;
  for (std::size_t i = 0; i < waiting.size() && waiting[i].op == Op::read; ++i) {
    const double seconds = spindle_.look(place_of(waiting[i].offset / kPage), waiting[i].length, false, now_).seconds();
    if (least >= 0 && seconds >= least) continue;
    least = seconds;
    best = i;
  }
  return best;
}

DeviceModel::Duration ShingledDisk::seconds_for(const Request& request) {
  double seconds = parameters_.request;
  now_ += seconds;
  if (request.op == Op::read) seconds += read(request);
  if (request.op == Op::write) seconds += write(request);
  if (request.op == Op::flush || request.durable) spindle_.let_go();
  return {0, seconds};
}

double ShingledDisk::idle(double seconds) {
  const double end = now_ + seconds;
  now_ += std::min(seconds, parameters_.idle_before_cleaning);
  while (!waiting_bands_.empty() && now_ < end) done().background_ns += static_cast<std::uint64_t>(clean_one() * 1e9);
  const double overrun = std::max(now_ - end, 0.0);
  done().background_ns -= static_cast<std::uint64_t>(overrun * 1e9);
  now_ = std::max(now_, end);
  return overrun;
}

double ShingledDisk::move_to(std::uint64_t offset, std::uint64_t length, bool write) {
  if (spindle_.at() != offset) ++done().seeks;
  const double seconds = spindle_.go(offset, length, write, now_, done().energy).seconds();
  now_ += seconds;
  if (write) done().programmed += length;
  return seconds;
}

double ShingledDisk::read(const Request& request) {
  double seconds = 0;
  for (std::uint64_t page = request.offset / kPage, end = request.end() / kPage; page < end;) {
    std::uint64_t next = page + 1;
    while (next < end && place_of(next) == place_of(page) + (next - page) * kPage) ++next;
    seconds += move_to(place_of(page), (next - page) * kPage, false);
    page = next;
  }
  return seconds;
}

std::list<ShingledDisk::Stream>::iterator ShingledDisk::stream_for(const Request& request) {
  const auto found = std::find_if(streams_.begin(), streams_.end(), [&](const Stream& stream) { return stream.next == request.offset; });
  if (found != streams_.end()) {
    streams_.splice(streams_.begin(), streams_, found);
    return streams_.begin();
  }
  if (request.offset % parameters_.band != 0) return streams_.end();
  streams_.push_front({request.offset / parameters_.band, request.offset});
  return streams_.begin();
}

double ShingledDisk::write(const Request& request) {
  const std::uint64_t boundary = (request.offset / parameters_.band + 1) * parameters_.band;
  if (request.end() > boundary) {
    const Request head{Op::write, request.offset, boundary - request.offset, request.durable};
    const Request tail{Op::write, boundary, request.end() - boundary, request.durable};
    const double seconds = write(head);
    return seconds + write(tail);
  }
  const auto stream = stream_for(request);
  if (stream == streams_.end()) return write_to_cache(request);
  forget_cached(request.offset, request.end());
  double seconds = move_to(cache_pages_ * kPage + request.offset, request.length, true);
  stream->next = request.end();
  if (stream->next == boundary)
    streams_.erase(stream);
  else if (streams_.size() > parameters_.streams)
    seconds += close(std::prev(streams_.end()));
  return seconds;
}

// What was behind its end in the band has to be brought back.
double ShingledDisk::close(std::list<Stream>::iterator stream) {
  const std::uint64_t from = stream->next, to = (stream->band + 1) * parameters_.band;
  streams_.erase(stream);
  const double seconds = move_to(cache_pages_ * kPage + from, to - from, false);
  done().copied += to - from;
  return seconds + move_to(cache_pages_ * kPage + from, to - from, true);
}

double ShingledDisk::write_to_cache(const Request& request) {
  const std::uint64_t pages = request.length / kPage;
  double seconds = make_room(pages);
  if (next_place_ + pages > cache_pages_) next_place_ = 0;
  seconds += move_to(next_place_ * kPage, request.length, true);
  for (std::uint64_t i = 0; i < pages; ++i) {
    const std::uint64_t page = request.offset / kPage + i, band = page * kPage / parameters_.band;
    if (cached_.insert_or_assign(page, next_place_ + i).second && cached_in_band_[band]++ == 0) waiting_bands_.push_back(band);
  }
  cached_pages_ += pages;  // what it replaces stays in the way until its band is cleaned
  next_place_ += pages;
  return seconds;
}

double ShingledDisk::make_room(std::uint64_t pages) {
  double seconds = 0;
  while (cached_pages_ + pages > cache_pages_ && !waiting_bands_.empty()) seconds += clean_one();
  if (waiting_bands_.empty()) cached_pages_ = 0;
  return seconds;
}

double ShingledDisk::clean_one() {
  const std::uint64_t band = waiting_bands_.front(), from = band * parameters_.band;
  const std::uint64_t length = std::min(parameters_.band, parameters_.spindle.size - from);
  const double share = static_cast<double>(cached_in_band_[band]) / static_cast<double>(std::max<std::uint64_t>(cached_.size(), 1));
  const auto freed = static_cast<std::uint64_t>(std::ceil(static_cast<double>(cached_pages_) * share));
  double seconds = move_to(cache_pages_ * kPage + from, length, false);
  seconds += move_to(cache_pages_ * kPage + from, length, true);
  done().copied += length;
  ++done().erases;
  forget_cached(from, from + length);
  cached_pages_ -= std::min(cached_pages_, freed);
  return seconds;
}

void ShingledDisk::forget_cached(std::uint64_t from, std::uint64_t to) {
  const std::uint64_t band = from / parameters_.band;
  if (cached_in_band_[band] == 0) return;
  for (std::uint64_t page = from / kPage; page < to / kPage; ++page) cached_in_band_[band] -= cached_.erase(page);
  if (cached_in_band_[band] == 0) waiting_bands_.remove(band);
}

}  // namespace varve::bench
