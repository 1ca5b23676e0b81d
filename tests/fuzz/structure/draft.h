// An image in the making: a base image and what mutations have changed of it. Only that is copied, and only its checksums and those of
// blocks that lead to it are made right again.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "fuzz/structure/base_image.h"
#include "fuzz/structure/mutation.h"

namespace varve::fuzz {

class Draft {
 public:
  explicit Draft(const BaseImage& base, bool only_tables = false) : base_(base), only_tables_(only_tables && !base.tables.empty()) {}

  void apply(const Mutation& mutation);
  std::string place_of(const Mutation& mutation) const;  // that apply() would change now, for people
  // The same by hand, for tests. False: it does not fit.
  bool edit(unsigned block, const std::function<void(std::vector<Element>&)>& change);
  // With checksums made right up to the superblocks and along the log. The draft is used up.
  std::unique_ptr<io::MemDevice> finish();

 private:
  using Elements = std::vector<Element>;

  unsigned pick(std::uint16_t number) const;                  // a block, or of former checkpoints
  unsigned pick_alike(Part part, unsigned number) const;      // of the same part
  View bytes(unsigned block) const;
  Bytes& own(unsigned block);

  void change_elements(const Mutation& m, unsigned block);
  bool put(unsigned block, const Elements& elements);
  bool change(const Mutation& m, unsigned block, Elements& elements);
  static std::size_t element_of(const Mutation& m, Part part, const Elements& elements);
  void add_copy(const Mutation& m, Part part, Elements& elements, Element element) const;
  void alter_field(const Mutation& m, Part part, const Elements& elements, Element& element) const;
  void alter_key(const Mutation& m, format::Key& key) const;
  void match_content(Part part, Element& element) const;
  void alter_header(const Mutation& m, unsigned block);
  void alter_superblock(const Mutation& m);
  void raw_bytes(const Mutation& m, unsigned block);
  void copy_block(const Mutation& m, unsigned block);
  void spoil(const Mutation& m);
  std::uint64_t number_for(const Mutation& m, const Field& field) const;
  std::uint64_t own_number(Meaning meaning, std::uint64_t choice, std::uint64_t now) const;
  std::uint64_t own_address(std::uint64_t choice) const;

  void note_ancestors();
  std::uint32_t seal_all_below(unsigned block);
  void seal_chunks();
  void write_superblocks(io::MemDevice& device, Bytes block) const;

  const BaseImage& base_;
  const bool only_tables_;
  std::map<unsigned, Bytes> changed_;
  std::map<unsigned, std::uint32_t> sealed_;   // while it finishes
  std::set<unsigned> under_way_;               // the same: references may form a circle
  std::set<unsigned> kept_;                    // references to these stay
  std::map<std::uint64_t, Bytes> content_;     // blocks of files
  std::uint8_t copies_ = 0xFF;                 // of the superblock
};

std::string to_text(const Recipe& recipe);  // for people
// The image that a recipe describes.
std::unique_ptr<io::MemDevice> image_of(const Recipe& recipe);

}  // namespace varve::fuzz
