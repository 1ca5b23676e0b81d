// Where a test program finds what it reads. Defined in one small source, so that nothing else names folders of this machine: a compiler
// cache finds the rest in every checkout.
#pragma once

#include <string>

namespace varve::test {

std::string source_folder();   // of the project
std::string example_plugin();  // examples/cleaner-plugin, built

}  // namespace varve::test
