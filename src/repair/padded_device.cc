#include "repair/padded_device.h"

#include <cerrno>

#include "io/reactor.h"

namespace varve::repair {

void PaddedDevice::submit(io::Reactor& reactor, io::IoRequest& request) {
  if (request.kind != io::IoKind::read) return reactor.finish_later(request, EROFS);
  if (request.offset + request.length > below_.geometry().size_bytes) return reactor.finish_later(request, EIO);
  below_.submit(reactor, request);
}

}  // namespace varve::repair
