// Requests of tools (control/requests.h), served by the daemon.
#pragma once

#include <functional>
#include <string_view>

#include "base/result.h"
#include "control/requests.h"

namespace varve::fuse {

class Request;

// Errc::not_permitted, in words for the caller. By the table of control/requests.h.
Status may_ask(Request& r, std::string_view ask);

// Calls respond() once, on the serving thread.
using Respond = std::function<void(Result<control::Answer>)>;
void serve_control(Request& r, const control::Request& asked, const Respond& respond);

// ops_control.cc: kControlIoctl
Status control_message(Request& r);
// ops_older.cc: what tools of before 0.2.0 ask; ENOTTY: not even they do
Status older_message(Request& r, std::uint32_t command);

}  // namespace varve::fuse
