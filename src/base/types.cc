#include "base/types.h"

namespace varve {

fmt::format_context::iterator write_number(std::uint64_t number, fmt::format_context& context) {
  return fmt::format_to(context.out(), "{}", number);
}

}  // namespace varve
