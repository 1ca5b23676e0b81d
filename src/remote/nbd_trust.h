// Whether an encrypted connection would be to the server that it names, and what to do about connections that do not come about.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace varve::remote {

// Of nbds:// names. Where no CA is named, libnbd 1.14 (Debian 12) takes the certificate of any server. So there must be one: in the
// folder of tls-certificates=, or where libnbd looks without it; or a key that both know (tls-psk-file=). Errc::invalid says so.
Status check_trust(const std::string& uri);

// What to do about an error of libnbd's that ended the attempt to connect.
std::string_view remedy_for(std::string_view error);

}  // namespace varve::remote
