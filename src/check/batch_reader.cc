#include "check/batch_reader.h"

#include <algorithm>
#include <vector>

namespace varve::check {

namespace {

constexpr std::size_t kMostInFlight = 128;

}  // namespace

void BatchReader::read(std::span<ReadPiece> pieces) {
  for (; !pieces.empty(); pieces = pieces.subspan(std::min(pieces.size(), kMostInFlight))) {
    const auto batch = pieces.first(std::min(pieces.size(), kMostInFlight));
    std::vector<io::IoRequest> requests(batch.size());
    std::size_t open = batch.size();
    for (std::size_t i = 0; i < batch.size(); ++i) {
      io::IoRequest& request = requests[i];
      request.kind = io::IoKind::read;
      request.offset = batch[i].address.v * kBlockSize;
      request.add(batch[i].out.data(), batch[i].out.size());
      request.done = [&piece = batch[i], &open](io::IoRequest& finished) {
        piece.error = finished.error;
        --open;
      };
      queue_->submit(request);
    }
    while (open > 0) queue_->wait(-1);
  }
}

}  // namespace varve::check
