// Asks a daemon of 0.1.0, which goes on serving its mount while the tools have been replaced.
#pragma once

#include <string>

#include "base/result.h"
#include "control/requests.h"

namespace varve::tool {

// Puts errno of an ioctl about `what` into words: this is no filesystem of Varve, for one.
Error refused(int error, const std::string& what);

// `error`: of the request of today.
Result<control::Answer> ask_older(int file, const control::Request& request, int error);

}  // namespace varve::tool
