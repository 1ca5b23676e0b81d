# The compiler cache, where ccache is installed. What one checkout has compiled is found in every other: objects name no folder of this machine.

find_program(VARVE_CCACHE ccache)
find_program(VARVE_ENV env)
if(VARVE_CCACHE AND VARVE_ENV AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # The sloppiness is what precompiled headers need: their macros and times are not compared.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${VARVE_ENV} CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros ${VARVE_CCACHE})
endif()

# A debugger that is started in the checkout finds its sources by these names.
add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
