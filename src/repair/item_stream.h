// The items of a leaf plan in key order, each key once.
#pragma once

#include <functional>

#include "base/result.h"
#include "repair/leaf_plan.h"

namespace varve::repair {

using ItemVisit = std::function<Status(const format::ItemRef&, Trust)>;

// Stops at the first error of visit. A leaf that has become unreadable since the plan was made is Errc::io.
Status for_each_item(io::BlockDevice& device, const LeafPlan& plan, const ItemVisit& visit);

}  // namespace varve::repair
