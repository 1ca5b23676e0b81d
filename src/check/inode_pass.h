// First pass: every item of the inode file, judged by itself and against its inode.
#pragma once

#include "check/data_verifier.h"
#include "check/directory_index.h"
#include "check/inode_values.h"
#include "check/tree_walk.h"

namespace varve::check {

class InodePass : public ItemVisitor {
 public:
  // `verifier` may be null.
  InodePass(Context& context, Claims& claims, Namespace& names, DataVerifier* verifier)
      : context_(context), claims_(claims), names_(names), verifier_(verifier) {}

  std::uint64_t visit(const format::ItemRef& item, BlockAddr leaf) override;
  void gap() override;
  void finish();  // after the last item

 private:
  void begin_inode(Ino ino);
  void end_inode();
  void visit_hidden(const format::ItemRef& item);
  std::uint64_t visit_extent(const format::ItemRef& item, BlockAddr leaf);
  std::uint64_t visit_tail(const format::ItemRef& item, BlockAddr leaf);
  void claim_extent(std::uint64_t first, const format::Extent& extent);
  void visit_attributes(const format::ItemRef& item, BlockAddr leaf);
  void check_extents(const format::Attributes& attributes);
  void count(const format::Attributes& attributes);

  Context& context_;
  Claims& claims_;
  Namespace& names_;
  DataVerifier* verifier_;

  // of the inode whose items are passing
  Ino ino_;
  bool has_attributes_ = true;
  bool torn_ = false;      // items of it are in an unreadable node: what compares them as a whole is left out
  bool after_gap_ = false;  // the next inode may have lost its beginning
  std::uint64_t owned_ = 0;        // blocks
  std::uint64_t extent_end_ = 0;   // of the last extent
  std::uint64_t written_end_ = 0;  // of the last written one
  std::uint64_t tail_end_ = 0;     // in bytes, of the tail; 0: there is none
  DirectoryIndex directory_;
  Pieces xattrs_, symlink_;
};

// Second walk, only when something has to be located: claims extents, judges nothing.
class ExtentClaimer : public ItemVisitor {
 public:
  explicit ExtentClaimer(Claims& claims) : claims_(claims) {}
  std::uint64_t visit(const format::ItemRef& item, BlockAddr leaf) override;

 private:
  Claims& claims_;
};

}  // namespace varve::check
