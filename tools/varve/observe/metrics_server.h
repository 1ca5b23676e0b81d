// Gives one text to each HTTP client, one after the other.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace varve::tool {

struct Page {
  const char* type;  // of its content
  std::string text;
};
// `accept`: what the client takes, as it says (Accept:); empty: it says nothing.
using MakePage = std::function<Page(std::string_view accept)>;

// Until SIGINT, SIGTERM or SIGHUP. `place` is unix:PATH or ADDRESS:PORT with an address of this machine's loopback: there is no password.
// Errc::invalid: another place; Errc::in_use, access...: it cannot be opened.
Status serve_text(const std::string& place, const MakePage& make);

}  // namespace varve::tool
