#include "varve/observe/past_errors.h"

#include <fmt/format.h>

#include "base/counted.h"
#include "format/superblock.h"
#include "varve/observe/status_text.h"

namespace varve::tool {

PastErrors past_errors(const Json& status) {
  const auto part = [&](const char* key) { return status.value(key, Json::object()); };
  const auto scrub = part("scrub"), last = part("last_error");
  PastErrors errors{part("lifetime").value("errors", std::uint64_t{0}), 0, 0};
  if (last.is_object()) errors.last = last.value("seconds", std::int64_t{0});
  format::ScrubMark mark;
  mark.started = scrub.value("started", std::int64_t{0});
  mark.finished = scrub.value("finished", std::int64_t{0});
  mark.errors = scrub.value("errors", std::uint64_t{0});
  errors.verified = mark.verified();
  return errors;
}

std::string text_of(const PastErrors& errors) {
  if (errors.count == 0) return "no errors";
  std::string text = counted(errors.count, "error") + " since it was made";
  if (errors.last > 0) text += ", the last " + local_time_text(errors.last);
  return errors.are_over() ? text + "; a look at everything of " + local_time_text(errors.verified) + " found nothing any more" : text;
}

}  // namespace varve::tool
