// Makes filesystems with content, byte by byte, without the engine; right ones, and wrong ones on request.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>

#include "format/make.h"
#include "format/map_record.h"
#include "io/mem_device.h"

namespace varve::check::test {

struct Entry {  // of a directory
  Ino ino;
  std::uint8_t type = 0;
  std::string name;
};

using Items = std::map<format::Key, format::Bytes>;

class ImageBuilder {
 public:
  explicit ImageBuilder(std::uint64_t device_blocks = 16384, std::uint64_t seed = 1);

  Ino add_directory(Ino parent, const std::string& name);
  Ino add_file(Ino parent, const std::string& name, std::uint64_t blocks, std::uint64_t extent_blocks = 16);
  Ino add_symlink(Ino parent, const std::string& name, const std::string& target);
  Ino add_orphan();  // a file without a name
  void add_link(Ino parent, const std::string& name, Ino file);
  void set_xattrs(Ino ino, const std::vector<format::Xattr>& xattrs);
  void add_unwritten(Ino file, std::uint64_t first, std::uint64_t blocks);

  // What is to be wrong: called with the right values just before they are written.
  std::function<void(Items&)> change_items;
  std::function<void(std::map<std::uint64_t, format::ReverseEntry>&)> change_owners;                // by address
  std::function<void(std::uint64_t segment, std::vector<std::byte>& record)> change_segment;
  std::function<void(format::Superblock&)> change_image;
  std::function<void(format::Superblock&)> change_super;

  // The finished device; `super` and `nodes` tell what stands on it.
  std::unique_ptr<io::MemDevice> build();
  const format::Superblock& super() const { return super_; }
  const std::vector<format::MadeNode>& nodes() const { return nodes_; }
  const std::map<std::uint64_t, format::ReverseEntry>& owners() const { return owners_; }

  std::map<Ino, format::Attributes>& attributes() { return attributes_; }

 private:
  Ino new_inode(std::uint32_t mode);
  void add_entry(Ino parent, const std::string& name, Ino child);
  Items items() const;
  void write_tree();
  void write_maps();
  format::MapRecords reverse_records() const;
  format::MapRecords free_records() const;
  BlockAddr next_node() const { return super_.first_segment + nodes_.size(); }
  void own_node(format::TreeId tree, unsigned level, BlockAddr address);

  format::Superblock super_;
  std::map<Ino, format::Attributes> attributes_;
  std::map<Ino, std::map<std::uint64_t, Entry>> directories_;  // by cookie
  std::map<Ino, std::map<std::uint64_t, format::Extent>> extents_;
  std::map<Ino, format::Bytes> symlinks_, xattrs_;
  std::map<std::uint64_t, std::vector<std::byte>> data_;  // by address
  std::map<std::uint64_t, format::ReverseEntry> owners_;
  std::vector<format::MadeNode> nodes_;
  BlockAddr next_data_;
};

}  // namespace varve::check::test
