# Headers of libraries that most sources read, precompiled once. No header of Varve is here: an edit would compile everything again.
# CLI11 is only for builds that compile each source by itself: every source that reads it, precompiled or not, compiles its constants again.

option(VARVE_PRECOMPILED "Precompile the headers of libraries" OFF)
if(NOT VARVE_PRECOMPILED)
  function(varve_precompiled target headers)
  endfunction()
  return()
endif()

# A precompiled header holds only for the definitions that it was made with: all targets get those of the libraries in it.
foreach(library fmt::fmt spdlog::spdlog nlohmann_json::nlohmann_json)
  target_compile_definitions(varve_options INTERFACE $<TARGET_PROPERTY:${library},INTERFACE_COMPILE_DEFINITIONS>)
endforeach()

set(empty ${CMAKE_CURRENT_BINARY_DIR}/precompiled.cc)
file(CONFIGURE OUTPUT ${empty} CONTENT "// Only its precompiled header is of use.\n")
set(common <algorithm> <array> <atomic> <chrono> <cstdint> <cstring> <deque> <functional> <map> <memory> <mutex> <optional> <set> <span>
           <string> <string_view> <thread> <unordered_map> <utility> <vector> <fmt/format.h>)

# varve_precompile(headers library... HEADERS header...)
function(varve_precompile headers)
  cmake_parse_arguments(P "" "" "LIBS;HEADERS" ${ARGN})
  add_library(varve_${headers} STATIC ${empty})
  target_link_libraries(varve_${headers} PRIVATE varve_options ${P_LIBS})
  target_precompile_headers(varve_${headers} PRIVATE ${P_HEADERS})
endfunction()

varve_precompile(room_headers LIBS fmt::fmt HEADERS ${common})
varve_precompile(tool_headers LIBS fmt::fmt nlohmann_json::nlohmann_json CLI11::CLI11
                 HEADERS ${common} <nlohmann/json.hpp> $<$<NOT:$<BOOL:${VARVE_JOINED}>>:<CLI/CLI.hpp$<ANGLE-R>>)
target_compile_options(varve_tool_headers PRIVATE $<$<CONFIG:Release>:-O1>)  # as varve_join_tool has it
if(VARVE_TESTS)
  find_package(GTest REQUIRED)
  varve_precompile(test_headers LIBS fmt::fmt GTest::gmock HEADERS ${common} <gtest/gtest.h> <gmock/gmock.h>)
  target_compile_options(varve_test_headers PRIVATE $<$<CONFIG:Release>:-O0>)  # as varve_test has it
endif()

# varve_precompiled(target headers): the target reads room_headers, tool_headers or test_headers first.
function(varve_precompiled target headers)
  target_precompile_headers(${target} REUSE_FROM varve_${headers})
endfunction()
