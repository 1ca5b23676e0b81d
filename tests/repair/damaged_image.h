// Ways to damage an image of a small or a big tree: each makes it anew.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "check/checking.h"
#include "format/record.h"
#include "repair/node_surgery.h"

namespace varve::repair::test {

using Device = std::unique_ptr<io::MemDevice>;

// A small tree: /dir with /dir/file, /dir/sub and /link, an orphan.
struct Small {
  check::test::ImageBuilder builder{4096};
  Ino dir = builder.add_directory(kRootIno, "dir");
  Ino file = builder.add_file(dir, "file", 20, 8);
  Ino sub = builder.add_directory(dir, "sub");
  Ino other = builder.add_file(sub, "other", 3);
  Ino link = builder.add_symlink(kRootIno, "link", "dir/file");
  Ino orphan = builder.add_orphan();

  Small() { builder.set_xattrs(file, {{"user.a", format::Bytes(3000, std::byte{7})}}); }
  Device build() { return builder.build(); }
};

// Enough for interior nodes.
struct Big {
  check::test::ImageBuilder builder;
  Big() { check::test::fill(builder); }
  Device build() { return builder.build(); }
};

std::function<Device()> with_items(std::function<void(const Small&, check::test::Items&)> change);
// The filesystem may have tails, and /dir/sub/other has one: 100 bytes behind its 3 blocks.
std::function<Device()> with_tail(std::function<void(const Small&, check::test::Items&)> change);
void put_tail(check::test::Items& items, Ino file, std::uint64_t block, std::size_t bytes);
void change_attributes(check::test::Items& items, Ino ino, const std::function<void(format::Attributes&)>& change);
std::function<Device()> with_attributes(std::function<Ino(const Small&)> which, std::function<void(format::Attributes&)> change);
std::function<Device()> with_entry(std::function<Ino(const Small&)> which, std::uint64_t cookie,
                                   std::function<void(const Small&, format::Dirent&)> change);
std::function<Device()> with_extent(std::function<void(const Small&, format::Extent&)> change);
std::function<Device()> with_image(std::function<void(format::Superblock&)> change);
std::function<Device()> with_super(std::function<void(format::Superblock&)> change);
std::function<Device()> with_segment(std::function<void(std::vector<std::byte>&)> change);
// Changed when it is finished.
std::function<Device()> with_big(std::function<void(const Big&, io::MemDevice&)> change);
std::function<Device()> with_small(std::function<void(const Small&, io::MemDevice&)> change);
std::function<Device()> with_node(format::TreeId tree, unsigned level, std::size_t which, std::function<void(std::span<std::byte>)> change);
void raise_second(std::vector<format::ChildRef>& children);
// Above all that the leaf before it has.
void lower_first_of_a_file(std::vector<format::ChildRef>& children);
// One of an interior node's keys is another than the first of the leaf that it stands for.
std::function<Device()> with_keys(void (*change)(std::vector<format::ChildRef>&));
std::function<Device()> without_node(format::TreeId tree, unsigned level, std::size_t which);
void put_chunk(io::MemDevice& device, const format::Superblock& super, BlockAddr place, std::uint64_t lsn, std::uint32_t previous,
               std::uint64_t durable, bool spoilt, const format::Bytes& records = {});
// The filesystem was not unmounted, and its log says this.
std::function<Device()> with_log(std::function<void(const Small&, check::test::Items&)> change,
                                 std::function<format::Record(const Small&)> record);
format::Record new_directory_xattr(const Small& s);
Ino dir_of(const Small& s);
Ino file_of(const Small& s);
Ino link_of(const Small& s);
Ino sub_of(const Small& s);
Ino root_of(const Small&);
void add_entry(check::test::Items& items, const format::Superblock& super, Ino directory, std::uint64_t cookie,
               const format::Dirent& entry);

}  // namespace varve::repair::test
