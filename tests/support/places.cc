#include "support/places.h"

namespace varve::test {

std::string source_folder() { return VARVE_SOURCE_FOLDER; }
std::string example_plugin() { return VARVE_EXAMPLE_PLUGIN; }

}  // namespace varve::test
