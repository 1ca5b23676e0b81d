// A file that a command writes for people: a picture, a page.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace varve::tool {

struct OutputKind {
  std::string_view name;   // "PNG"
  std::string_view begin;  // what such a file begins with
};

// In place of what stands there only if that is of this kind or empty, and then in one step: nobody's image is written over by a slip.
// Never to a device. Pipes and terminals take it as well, and links stay. Errors name the file.
Status write_output(const std::string& path, std::string_view content, const OutputKind& kind);

}  // namespace varve::tool
