#include "repair/item_stream.h"

#include <algorithm>
#include <optional>

#include "base/buffer.h"
#include "io/patient_read.h"

namespace varve::repair {

namespace {

constexpr std::size_t kBatch = 64;

}  // namespace

Status for_each_item(io::BlockDevice& device, const LeafPlan& plan, const ItemVisit& visit) {
  AlignedBuffer buffer(kBatch * kBlockSize);
  std::optional<format::Key> last;
  for (std::size_t at = 0; at < plan.leaves.size(); at += kBatch) {
    const std::size_t count = std::min(kBatch, plan.leaves.size() - at);
    std::vector<io::ReadPiece> pieces;
    for (std::size_t i = 0; i < count; ++i)
      pieces.push_back({plan.leaves[at + i].address, buffer.span().subspan(i * kBlockSize, kBlockSize)});
    io::read_pieces(device, pieces);
    for (std::size_t i = 0; i < count; ++i) {
      const LeafPiece& leaf = plan.leaves[at + i];
      if (pieces[i].error || format::block_crc(pieces[i].out) != leaf.crc)
        return Error(Errc::io, fmt::format("{}: block {} cannot be read any more", device.name(), leaf.address));
      const auto header = TRY(format::decode_node_header(pieces[i].out));
      for (const format::ItemRef& item : TRY(format::decode_items(pieces[i].out, header))) {
        if (!leaf.range.contains(item.key) || (last && item.key <= *last)) continue;
        last = item.key;
        TRY(visit(item, leaf.trust));
      }
    }
  }
  return {};
}

}  // namespace varve::repair
