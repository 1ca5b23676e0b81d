// The parts of an inode that are judged as a whole once its attributes come by.
#pragma once

#include "check/context.h"
#include "format/item.h"

namespace varve::check {

// A blob that is stored in numbered pieces.
class Pieces {
 public:
  void clear();
  void add(std::uint64_t number, std::span<const std::byte> value);

  bool empty() const { return next_ == 0 && !broken_; }
  bool broken() const { return broken_; }
  const format::Bytes& bytes() const { return bytes_; }

 private:
  format::Bytes bytes_;
  std::uint64_t next_ = 0;
  bool broken_ = false;
};

std::uint8_t type_of(const format::Attributes& attributes);  // DT_*

void check_xattrs(Context& context, Ino ino, const Pieces& pieces);
void check_symlink(Context& context, Ino ino, const format::Attributes& attributes, const Pieces& pieces);
void check_attributes(Context& context, Ino ino, const format::Attributes& attributes);

}  // namespace varve::check
