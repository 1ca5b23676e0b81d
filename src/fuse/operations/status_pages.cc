#include "fuse/operations/status_pages.h"

#include <algorithm>
#include <cstring>

namespace varve::fuse {

namespace {

constexpr std::size_t kKept = 16;

control::StatusPage cut(std::uint64_t name, const std::string& text, std::uint32_t offset) {
  control::StatusPage page;
  page.snapshot = name;
  page.total = static_cast<std::uint32_t>(text.size());
  page.offset = std::min(offset, page.total);
  std::memcpy(page.text, text.data() + page.offset, std::min(sizeof page.text, std::size_t{page.total - page.offset}));
  return page;
}

}  // namespace

control::StatusPage StatusPages::add(std::string text) {
  const Lock lock(mutex_);
  const std::uint64_t name = next_name_++;
  control::StatusPage first = cut(name, text, 0);
  if (text.size() > sizeof first.text) {
    Document& kept = documents_.emplace_back();
    kept.name = name;
    kept.text = std::move(text);
  }
  if (documents_.size() > kKept) documents_.pop_front();
  return first;
}

Result<control::StatusPage> StatusPages::page(std::uint64_t document, std::uint32_t offset) {
  const Lock lock(mutex_);
  for (const Document& kept : documents_)
    if (kept.name == document) return cut(kept.name, kept.text, offset);
  return Errc::no_attribute;
}

}  // namespace varve::fuse
