#include "check/batch_reader.h"

#include <algorithm>
#include <vector>

#include "io/lent_reactor.h"
#include "io/patient_read.h"

namespace varve::check {

namespace {

constexpr std::size_t kMostInFlight = 128;

}  // namespace

void BatchReader::read_again(ReadPiece& piece) {
  if (piece.error == 0 || piece.out.size() > kBlockSize) return;
  if (io::read_patiently(device_, piece.address.v * kBlockSize, piece.out).ok()) piece.error = 0;
}

void BatchReader::read(std::span<ReadPiece> pieces) {
  const io::LentReactor reactor;
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
      device_.submit(*reactor, request);
    }
    while (open > 0) reactor->wait(-1);
    for (ReadPiece& piece : batch) read_again(piece);
  }
}

}  // namespace varve::check
