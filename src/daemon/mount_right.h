// May this process mount and unmount, as root may outside of containers?
#pragma once

namespace varve::daemon {

bool has_right_to_mount();  // by its capabilities

}  // namespace varve::daemon
