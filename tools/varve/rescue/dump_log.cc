#include <fmt/format.h>

#include "format/chunk.h"
#include "log/recovery.h"
#include "varve/observe/superblock_json.h"
#include "varve/rescue/dump.h"

namespace varve::tool {

namespace {

Json header_json(const format::ChunkHeader& h) {
  Json json{{"lsn", h.lsn.v},
            {"address", h.address.v},
            {"header_blocks", h.header_blocks},
            {"payload_blocks", h.payload_blocks},
            {"record_bytes", h.record_bytes},
            {"previous_crc", fmt::format("{:08x}", h.previous_crc)},
            {"run", run_json(h.run)},
            {"next_run", run_json(h.next_run)},
            {"durable", h.durable.v},
            {"settled", h.settled.v},
            {"clock", h.clock},
            {"next_ino", h.next_ino}};
  if (h.elsewhere.blocks) json["elsewhere"] = run_json(h.elsewhere);
  return json;
}

Result<Json> chunk_json(const format::Chunk& chunk) {
  Json json = header_json(chunk.header);
  json["crc"] = fmt::format("{:08x}", chunk.crc);
  auto& records = json["records"] = Json::array();
  TRY(format::decode_records(chunk.records, [&](const format::Record& record) -> Status {
    records.push_back(record_json(record));
    return {};
  }));
  return json;
}

}  // namespace

Result<Json> dump_chunk(ImageReader& image, BlockAddr address) {
  const AlignedBuffer first = TRY(image.read_blocks(address, 1));
  const auto header = TRY(format::peek_chunk(first.span()));
  const AlignedBuffer blocks = TRY(image.read_blocks(address, header.header_blocks));
  return chunk_json(TRY(format::decode_chunk(blocks.span())));
}

Result<Json> dump_chain(ImageReader& image, const EachPart& each) {
  Json json{{"after_checkpoint", image.super().serial.v}};
  Json chunks = Json::array();
  const auto recovered =
      TRY(log::recover_chain(image.device(), image.super(), [&](const format::Chunk& chunk) -> Status {
        TRY(each(chunks.size()));
        chunks.push_back(TRY(chunk_json(chunk)));
        return {};
      }));
  json["chunks_to_replay"] = recovered.chunks;
  json["blocks"] = recovered.blocks;
  json["cut_short"] = recovered.cut_short;
  json["chunks"] = std::move(chunks);
  return json;
}

}  // namespace varve::tool
