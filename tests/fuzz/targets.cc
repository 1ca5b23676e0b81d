#include "fuzz/decoders.h"
#include "fuzz/image.h"
#include "fuzz/requests.h"
#include "fuzz/streams.h"
#include "fuzz/units.h"

namespace varve::fuzz {

std::span<const Target> targets() {
  static constexpr Target kTargets[] = {{"superblock", superblock, superblock_seeds, 3000},
                                        {"chunk", chunk, chunk_seeds, 3000},
                                        {"records", records, record_seeds, 10000},
                                        {"node", node, node_seeds, 10000},
                                        {"item", item, item_seeds, 20000},
                                        {"map_record", map_record, map_record_seeds, 3000},
                                        {"units", units, unit_seeds, 3000},
                                        {"options", options, option_seeds, 3000},
                                        {"requests", requests, request_seeds, 1000},
                                        {"image", image, image_seeds, 300, vary_image},
                                        {"sfile", sfile, sfile_seeds, 100, vary_image},
                                        {"streams", streams, stream_seeds, 1000}};
  return kTargets;
}

}  // namespace varve::fuzz
