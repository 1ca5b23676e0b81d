# One static library per room of src/; target_link_libraries in each room's list is the layering of docs/design.md.

add_library(varve_options INTERFACE)
target_compile_options(varve_options INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor $<$<BOOL:${VARVE_WERROR}>:-Werror>
                       $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>)
target_link_libraries(varve_options INTERFACE Threads::Threads)

# varve_join(target): twelve sources at once, unless VARVE_JOINED is off. Those of a test are few and large.
function(varve_join target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${VARVE_JOINED} UNITY_BUILD_BATCH_SIZE 12)
endfunction()

# varve_join_tool(target): what a tool says and asks, at the speed of people and devices, which a compiler need not spend a minute on.
function(varve_join_tool target)
  varve_join(${target})
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# varve_library(room source...): twenty sources at once, which saves a tenth of its time more, unless VARVE_JOINED_ROOMS is off. Then each
# must be complete by itself: the preset fuzz checks that.
function(varve_library room)
  add_library(varve_${room} STATIC ${ARGN})
  set_target_properties(varve_${room} PROPERTIES UNITY_BUILD ${VARVE_JOINED_ROOMS} UNITY_BUILD_BATCH_SIZE 20)
  target_include_directories(varve_${room} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(varve_${room} PUBLIC varve_options)
endfunction()

# varve_test(name SOURCES source... LIBS library... [LABELS label...] [TIMEOUT s])
# Label nightly: only ./run-tests --nightly runs it.
function(varve_test name)
  cmake_parse_arguments(T "" "TIMEOUT" "SOURCES;LIBS;LABELS" ${ARGN})
  add_executable(${name} ${T_SOURCES})
  varve_join(${name})
  target_link_libraries(${name} PRIVATE ${T_LIBS} GTest::gtest GTest::gmock GTest::gtest_main)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/bin)
  add_test(NAME ${name} COMMAND ${name})
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 1800)  # with sanitizers, on a busy machine
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${T_TIMEOUT} LABELS "${T_LABELS}" SKIP_RETURN_CODE 77)
endfunction()
