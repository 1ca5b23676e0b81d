// What one checkpoint does to snapshots (docs/design.md, "Snapshots"). It makes and deletes them, and keeps the blocks that only they hold.
// It notes where those stand that the cleaner has moved. It gives back what a deleted one held alone, some of it at a time.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "format/item.h"
#include "snapshots/deletion_step.h"
#include "snapshots/places.h"
#include "snapshots/snapshots.h"
#include "tree/edit_list.h"
#include "tree/node_writer.h"
#include "tree/segment_ledger.h"
#include "tree/tree_view.h"

namespace varve::snapshots {

class SnapshotMerge {
 public:
  struct Parts {
    Snapshots& snapshots;
    tree::NodeSource& source;
    tree::NodeWriter& writer;
    tree::SegmentLedger& ledger;
    const tree::TreeView& old;
    Serial serial;
    std::size_t memory_bytes;  // for edits, about
  };
  struct Creation {
    std::string name;
    std::uint64_t clock = 0;
    Timestamp made;
    bool automatic = false;
  };
  // `list`: as it is to be, but for what is created.
  SnapshotMerge(const Parts& parts, SnapshotList list, std::vector<Serial> renamed, std::vector<HeldMove> moves);

  // --- while the inode file is merged ---
  // The live tree lets go of these blocks of a file. `moved_to`: where the cleaner has put the only one, or none.
  Status gone(const format::Extent& extent, BlockAddr moved_to);
  tree::NodeSink& sink() { return sink_; }  // for the inode file's nodes

  // --- afterwards ---
  Status finish(const std::optional<Creation>& creation, const DeletionStep& step, const tree::MergeOptions& options, tree::TreeView& next);
  // Copies that the cleaner has made, which count from now on.
  const std::vector<HeldMove>& arrived() const { return arrived_; }
  SnapshotList take_list() { return std::move(list_); }

 private:
  class Sink : public tree::NodeSink {
   public:
    explicit Sink(SnapshotMerge& merge, bool of_tables) : merge_(merge), of_tables_(of_tables) {}
    std::uint64_t identity() const override { return merge_.parts_.writer.identity(); }
    Serial serial() const override { return merge_.parts_.writer.serial(); }
    Result<BlockAddr> allocate() override { return merge_.parts_.writer.allocate(); }
    Status write(BlockAddr address, std::span<const std::byte> block, std::uint32_t crc, format::TreeId tree, std::uint8_t level) override {
      return merge_.parts_.writer.write(address, block, crc, tree, level);
    }
    void release(BlockAddr address, Serial birth) override;

   private:
    SnapshotMerge& merge_;
    const bool of_tables_;
  };
  // The tables: what cannot be read of them is noted as their damage.
  class Tables : public tree::NodeSource {
   public:
    explicit Tables(const Parts& parts) : parts_(parts) {}
    Result<tree::NodePtr> get(const tree::NodeWant& want) override { return told(parts_.source.get(want)); }
    Result<tree::NodePtr> get_child(const tree::Siblings& siblings, std::uint8_t level) override {
      return told(parts_.source.get_child(siblings, level));
    }
    void prefetch(std::span<const tree::NodeWant> wants) override { parts_.source.prefetch(wants); }
    template <class T>
    Result<T> told(Result<T> read) const {
      if (read.ok() || !tree::is_of_one_node(read.error())) return read;
      return parts_.snapshots.note_damage(read.error());
    }

   private:
    const Parts& parts_;
  };
  // A list of dead blocks that grows.
  struct Growing {
    Serial death;
    std::optional<format::DeadRun> last;
    format::DeadPieceBuilder piece;
  };

  Status gone(BlockAddr node, Serial birth);
  Status gone_with_copies(const format::Extent& extent, const format::Birth& birth);
  Status keep(const format::Extent& extent, BlockAddr stands, const format::Birth& birth);
  Status arrive(const HeldMove& move);
  Status rename(BlockAddr from, BlockAddr to, const format::Birth& birth);  // in what old trees call it
  Status add_dead(Serial holder, Serial death, const format::DeadRun& run);
  void close_piece(Serial holder, Growing& list);
  void put_piece(Serial holder, Growing& list);
  Status close_lists();
  Status spill();
  Status merge_tables(const tree::MergeOptions& options);

  Error contradiction(std::string what) { return parts_.snapshots.note_damage(Error(Errc::corrupt, std::move(what))); }
  Status give_back(DeletionStep step);
  Status empty_list(SnapshotItem& deleted, DeletionStep& step);
  Result<std::uint64_t> give_back(Serial death, const format::DeadRun& run, DeletionStep& step);
  enum class Stands : std::uint8_t { as_named, elsewhere };
  Status release(const format::DeadRun& run, Stands stands, BlockAddr place, std::uint64_t blocks);
  Result<std::uint64_t> forget_names(BlockAddr place, std::uint64_t blocks, DeletionStep& step);
  Status purge(DeletionStep step);

  const Parts parts_;
  Tables source_{parts_};
  Sink sink_{*this, false}, tables_sink_{*this, true};
  SnapshotList list_;
  const SnapshotItem* holder_;  // of what dies now
  std::uint64_t shared_for_good_;  // nodes of the newest .ifile that one which was asked for has, too; or more
  std::map<BlockAddr, HeldMove> moves_;
  std::vector<HeldMove> arrived_;
  tree::TreeRoot tables_;
  format::SnapshotTables counts_;
  tree::EditList edits_;
  std::map<Serial, Growing> growing_;
  std::map<Serial, bool> changed_;  // items to be written
  Status failure_;                  // of what cannot return one
};

}  // namespace varve::snapshots
