// Gives one text to each HTTP client, one after the other.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"

namespace varve::tool {

// Until SIGINT or SIGTERM. `place` is unix:PATH or ADDRESS:PORT with an address of this machine's loopback: there is no password.
// Errc::invalid: another place; Errc::in_use, access...: it cannot be opened.
Status serve_text(const std::string& place, const std::function<std::string()>& make);

}  // namespace varve::tool
