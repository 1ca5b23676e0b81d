#include "fuse/operations/status_pages.h"

#include <algorithm>
#include <utility>

namespace varve::fuse {

namespace {
constexpr std::size_t kKept = 16;
}

StatusPages::Piece StatusPages::cut(const Document& document, std::uint32_t offset, std::size_t room) {
  const auto total = static_cast<std::uint32_t>(document.text.size()), from = std::min(offset, total);
  return {document.name, from, total, document.text.substr(from, room), document.right};
}

StatusPages::Piece StatusPages::add(std::string text, std::size_t room, control::Right right) {
  const Lock lock(mutex_);
  Document made{next_name_++, std::move(text), right};
  Piece first = cut(made, 0, room);
  if (made.text.size() > room) documents_.push_back(std::move(made));
  if (documents_.size() > kKept) documents_.pop_front();
  return first;
}

Result<StatusPages::Piece> StatusPages::piece(std::uint64_t document, std::uint32_t offset, std::size_t room) {
  const Lock lock(mutex_);
  for (const Document& kept : documents_)
    if (kept.name == document) return cut(kept, offset, room);
  return Errc::no_attribute;
}

}  // namespace varve::fuse
