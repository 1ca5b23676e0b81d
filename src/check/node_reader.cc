#include "check/node_reader.h"

#include <cstring>

#include "io/patient_read.h"

namespace varve::check {

NodeBatch NodeReader::fetch(std::span<const format::NodeRef> refs, format::TreeId tree, unsigned level) {
  NodeBatch batch{AlignedBuffer(refs.size() * kBlockSize), std::vector<FetchedNode>(refs.size())};
  std::vector<io::ReadPiece> pieces;
  std::vector<std::size_t> of_piece;
  for (std::size_t i = 0; i < refs.size(); ++i) {
    const auto out = batch.buffer.span().subspan(i * kBlockSize, kBlockSize);
    const BlockAddr place = place_of_ ? place_of_(refs[i].address) : refs[i].address;
    if (place.v >= context_.device.geometry().blocks()) {
      complain(Code::node_unreadable, refs[i].address, "behind the end of the device");
      continue;
    }
    batch.nodes[i].block = out;
    pieces.push_back({place, out});
    of_piece.push_back(i);
  }
  io::read_pieces(context_.device, pieces);
  for (std::size_t p = 0; p < pieces.size(); ++p) {
    const std::size_t i = of_piece[p];
    if (pieces[p].error) {
      complain(Code::node_unreadable, refs[i].address, std::strerror(pieces[p].error));
    } else {
      judge(refs[i], tree, level, batch.nodes[i]);
    }
  }
  return batch;
}

void NodeReader::complain(Code code, BlockAddr address, std::string detail) {
  if (context_.bad_nodes.insert(address.v).second) context_.add(code, {address, {}}, std::move(detail));
}

void NodeReader::judge(const format::NodeRef& ref, format::TreeId tree, unsigned level, FetchedNode& node) {
  const format::NodeExpectation expected{context_.super().identity, ref.address, ref.crc, tree, static_cast<int>(level)};
  const auto header = format::check_node(node.block, expected);
  const auto alone = format::decode_node_header(node.block);  // the own CRC, which readers do not compute
  if (!header.ok() || !alone.ok()) {
    complain(Code::node_damaged, ref.address, (header.ok() ? alone : header).error().message());
    return;
  }
  if (header->serial > context_.super().serial)
    context_.add(Code::node_from_future, {ref.address, {}},
                 fmt::format("of checkpoint {}, the newest is {}", header->serial, context_.super().serial));
  node.header = *header;
  node.good = true;
}

}  // namespace varve::check
