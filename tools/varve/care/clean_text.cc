#include "varve/care/clean_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/counted.h"
#include "base/types.h"
#include "varve/observe/status_text.h"

namespace varve::tool {

namespace {

class View {
 public:
  explicit View(const Json& state) : state_(state) {}

  std::string head() const {
    const Json request = part(state_, "request");
    return fmt::format("{} ({}, {})", request.value("strategy", "?"), request.value("policy", "?"),
                       request.value("placement", "?"));
  }
  std::string forecast() const {
    const Json f = part(state_, "forecast");
    std::string text = fmt::format("{} would {}\n", head(), f.value("what", "do nothing"));
    text += line("Read", size(f, "read_blocks")) + line("Written", size(f, "written_blocks"));
    if (!f.contains("files")) text += line("Freed", size(f, "freed_blocks"));
    return text + files(f) + "Nothing was written.\n";
  }
  std::string report() const {
    std::string text = fmt::format("{}: {} in {:.1f} s, {}: {}\n", head(), state_.value("state", "?"),
                                   state_.value("seconds", 0.0), counted(count(state_, "rounds"), "round"), state_.value("reason", ""));
    text += line("Read", size(state_, "read_blocks"));
    text += line("Written", size(state_, "written_blocks") + fmt::format(", metadata {}", size(state_, "metadata_blocks")));
    const Json before = part(state_, "before"), now = part(state_, "now");
    text += line("Freed", fmt::format("{}: {} of {} segments are clean, {} before", freed(), count(now, "clean_segments"),
                                      count(state_, "segments"), count(before, "clean_segments")));
    text += line("Garbage", fmt::format("{}, {} before", size(now, "garbage_blocks"), size(before, "garbage_blocks")));
    text += line("Log ends in", fmt::format("segment {} but for {} that are open, {} before", count(now, "end_segment"),
                                            count(now, "open_segments"), count(before, "end_segment")));
    return text + files(state_);
  }
  std::string progress() const {
    std::string text = fmt::format("{} moved, {} freed", size(state_, "written_blocks"), freed());
    if (const Json f = part(state_, "files"); !f.empty()) text += fmt::format(", {} seen", counted(count(f, "seen"), "file"));
    if (share() >= 0) text += fmt::format(", {:.0f} % done", 100 * share());
    const std::string doing = state_.value("doing", "");
    return text + (doing.empty() ? "" : "; " + doing);
  }

  double share() const {
    const std::uint64_t first = count(state_, "left_at_first"), left = std::min(first, count(state_, "left"));
    if (state_.contains("files") || first == 0) return -1;
    return static_cast<double>(first - left) / static_cast<double>(first);
  }

 private:
  static Json part(const Json& json, const char* key) {
    return json.contains(key) && json[key].is_object() ? json[key] : Json::object();
  }
  static std::uint64_t count(const Json& json, const char* key) { return json.value(key, std::uint64_t{0}); }
  static std::string size(const Json& json, const char* key) { return size_text(count(json, key) << kBlockShift); }
  static std::string line(const char* label, const std::string& value) { return fmt::format("  {:<13}{}\n", label, value); }

  // Defragmenting may end with fewer clean segments than it began with.
  std::string freed() const {
    const std::uint64_t before = count(part(state_, "before"), "clean_segments"), now = count(part(state_, "now"), "clean_segments");
    const std::uint64_t blocks = count(state_, "segment_blocks") << kBlockShift;
    return now >= before ? size_text((now - before) * blocks) : "-" + size_text((before - now) * blocks);
  }
  static std::string files(const Json& json) {
    const Json f = part(json, "files");
    if (f.empty()) return "";
    const std::uint64_t unreadable = count(f, "unreadable"), directories = count(f, "unreadable_directories");
    return line("Files", fmt::format("{} seen, {} moved; {} pieces, {} before{}{}", count(f, "seen"), count(f, "moved"),
                                     count(f, "fragments_after"), count(f, "fragments_before"),
                                     unreadable ? fmt::format("; {} cannot be read", unreadable) : "",
                                     directories ? fmt::format("; {} directories cannot be read", directories) : ""));
  }

  const Json& state_;
};

}  // namespace

std::string clean_text(const Json& state) {
  if (state.value("state", "") == "never") return "Nobody has asked for cleaning since it was mounted.\n";
  return state.contains("forecast") ? View(state).forecast() : View(state).report();
}

std::string clean_progress(const Json& state) { return View(state).progress(); }

double clean_share(const Json& state) { return View(state).share(); }

}  // namespace varve::tool
