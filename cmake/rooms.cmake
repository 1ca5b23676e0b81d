# One static library per room of src/; target_link_libraries in each room's list is the layering of docs/design.md.

add_library(varve_options INTERFACE)
target_compile_options(varve_options INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor $<$<BOOL:${VARVE_WERROR}>:-Werror>
                       $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>)
# gcc tidies its memory first at half a GiB instead of at 128 MiB: a twentieth less time, and a tenth more memory at most.
target_compile_options(varve_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=524288>)
# spdlog for all: a source that does not link it gets all of it from the header, with a logger of its own, which nobody hears.
target_link_libraries(varve_options INTERFACE Threads::Threads spdlog::spdlog)
include(${CMAKE_CURRENT_LIST_DIR}/precompiled.cmake)

# varve_join(target [batch]): twelve sources at once, or so many, unless VARVE_JOINED is off. Those of a test are few and large.
function(varve_join target)
  if(VARVE_JOINED)
    varve_compile_jointly(${target} ${ARGN} 12)
  endif()
endfunction()

# varve_compile_jointly(target batch): at the end of the folder's CMakeLists.txt, when all sources are known, each `batch` of them becomes one.
# UNITY_BUILD names sources by the folder of this checkout, so that a compiler cache would find nothing in another one.
function(varve_compile_jointly target batch)
  cmake_language(EVAL CODE "cmake_language(DEFER CALL varve_write_joined ${target} ${batch})")
endfunction()

function(varve_write_joined target batch)
  get_target_property(sources ${target} SOURCES)
  set(compiled)
  set(joined 0)
  set(names)
  foreach(source ${sources})
    get_source_file_property(apart ${source} SKIP_UNITY_BUILD_INCLUSION)
    if(apart)
      list(APPEND compiled ${source})
    else()
      list(APPEND names ${source})
    endif()
  endforeach()
  while(names)
    set(text)
    foreach(index RANGE 1 ${batch})
      if(names)
        list(POP_FRONT names source)
        get_filename_component(source ${source} ABSOLUTE)
        file(RELATIVE_PATH source ${CMAKE_CURRENT_BINARY_DIR} ${source})
        string(APPEND text "#include \"${source}\"\n")
      endif()
    endforeach()
    set(file ${CMAKE_CURRENT_BINARY_DIR}/${target}_${joined}.cc)
    file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
    list(APPEND compiled ${file})
    math(EXPR joined "${joined} + 1")
  endwhile()
  set_target_properties(${target} PROPERTIES SOURCES "${compiled}")
endfunction()

# varve_join_tool(target): what a tool says and asks, at the speed of people and devices, which a compiler need not spend a minute on.
function(varve_join_tool target)
  varve_join(${target} 20)
  varve_precompiled(${target} tool_headers)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# varve_library(room source...): twenty sources at once, which saves a tenth of its time more, unless VARVE_JOINED_ROOMS is off. Then each
# must be complete by itself: the preset fuzz checks that.
function(varve_library room)
  add_library(varve_${room} STATIC ${ARGN})
  if(VARVE_JOINED_ROOMS)
    varve_compile_jointly(varve_${room} 20)
  endif()
  target_include_directories(varve_${room} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(varve_${room} PUBLIC varve_options)
  varve_precompiled(varve_${room} room_headers)
endfunction()

# With the thread sanitizer only those tests are run that start threads: tests/threaded names them, and every other build checks that none is missing
# (tests/support/thread_watch.cc).
set(flags "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_DEBUG}")
string(FIND "${flags}" "-fsanitize=thread" thread_sanitizer)
string(FIND "${flags}" "-fsanitize" sanitizer)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS tests/threaded)
add_custom_target(threaded)  # all that the thread sanitizer has to see

# varve_threaded_cases(program result): a filter for its tests that start threads; nothing if there are none.
function(varve_threaded_cases program result)
  file(STRINGS ${PROJECT_SOURCE_DIR}/tests/threaded line REGEX "^${program} ")
  string(REGEX REPLACE "^[^ ]+ " "" cases "${line}")
  set(${result} "${cases}" PARENT_SCOPE)
endfunction()

# varve_add_test(name program [FILTER filter] [PARTS n] [LABELS label...] [TIMEOUT s] [COST s] [ENVIRONMENT variable=value...] [FILES file...])
# A run of a test program, in n parts of about as many tests. FILES: what it reads besides. COST: one that takes long begins early, or it would
# be left over at the end with a processor to itself.
function(varve_add_test name program)
  cmake_parse_arguments(T "" "FILTER;PARTS;TIMEOUT;COST" "LABELS;ENVIRONMENT;FILES" ${ARGN})
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 1800)  # with sanitizers, on a busy machine
  endif()
  if(NOT T_PARTS)
    set(T_PARTS 1)
  endif()
  if(NOT T_COST)
    set(T_COST 0)
  endif()
  if(NOT thread_sanitizer EQUAL -1)
    varve_threaded_cases(${program} cases)
    if(NOT cases OR T_FILTER)
      return()  # long variants are for all builds the same tests
    endif()
    set(T_FILTER ${cases})
    add_dependencies(threaded ${program})
  endif()
  if(T_FILTER)
    set(filter --gtest_filter=${T_FILTER})
  endif()
  foreach(part RANGE 1 ${T_PARTS})
    set(test ${name})
    set(environment ${T_ENVIRONMENT})
    if(T_PARTS GREATER 1)
      string(APPEND test _${part}of${T_PARTS})
      math(EXPR index "${part} - 1")
      list(APPEND environment GTEST_TOTAL_SHARDS=${T_PARTS} GTEST_SHARD_INDEX=${index})
    endif()
    add_test(NAME ${test} COMMAND ${program} ${filter})
    set_tests_properties(${test} PROPERTIES TIMEOUT ${T_TIMEOUT} LABELS "${T_LABELS}" SKIP_RETURN_CODE 77
                         ENVIRONMENT "${environment}" REQUIRED_FILES "${T_FILES}" COST "${T_COST}")
  endforeach()
endfunction()

# varve_test(name SOURCES source... LIBS library... [PARTS n] [LABELS label...] [TIMEOUT s] [COST s] [FILES file...])
# Label nightly: only ./run-tests --nightly runs it.
function(varve_test name)
  cmake_parse_arguments(T "" "TIMEOUT;PARTS;COST" "SOURCES;LIBS;LABELS;FILES" ${ARGN})
  add_executable(${name} ${T_SOURCES})
  varve_join(${name})
  varve_precompiled(${name} test_headers)
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O0>)  # half as long to compile; what computes is in libraries
  target_link_libraries(${name} PRIVATE ${T_LIBS} varve_test_program fmt::fmt GTest::gtest GTest::gmock GTest::gtest_main)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/bin)
  varve_add_test(${name} ${name} PARTS ${T_PARTS} TIMEOUT ${T_TIMEOUT} COST ${T_COST} LABELS ${T_LABELS} FILES ${T_FILES})
endfunction()
