// Takes out of leaves what users have written there themselves: names, targets of symlinks, values of extended attributes. Sizes stay.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "base/types.h"
#include "format/key.h"
#include "image/name_cipher.h"

namespace varve::image {

// The values of extended attributes, which come in pieces: becomes zeros. Names of attributes stay, as they are sorted, and so do ACLs and
// capabilities, which have a form that is checked.
class AttributeValues {
 public:
  void begin() { *this = {}; }
  void go_on(std::span<std::byte> piece);
  bool is_at_an_end() const { return part_ == Part::name_length && number_ == 0 && shift_ == 0; }

 private:
  enum class Part : std::uint8_t { name_length, name, value_length, value };
  bool take_length(std::byte byte);  // true: it is whole

  Part part_ = Part::name_length;
  std::uint64_t number_ = 0;  // length so far, then what is left of it
  unsigned shift_ = 0;
  std::string name_;
};

// These are names of one filesystem. Leaves come in the order of their keys, tree by tree.
class Names {
 public:
  explicit Names(const NameCipher& cipher) : cipher_(cipher) {}

  // `value`: of an item of a file or a snapshot.
  void change(const format::Key& key, std::span<std::byte> value);
  // The next leaves come behind the leaf or subtree at `place`: one that is done now, or was before, in another tree.
  void leave(BlockAddr place);
  void pass_by(BlockAddr place);

 private:
  const NameCipher& cipher_;
  AttributeValues attributes_;
  std::map<std::uint64_t, AttributeValues> unfinished_;  // behind these places
};

}  // namespace varve::image
