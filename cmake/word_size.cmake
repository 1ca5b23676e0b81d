# Offsets of 32 bits would be cut at 4 GiB, and nobody has run Varve on such a machine.
if(NOT CMAKE_SIZEOF_VOID_P EQUAL 8)
  message(FATAL_ERROR "Varve needs a 64-bit system: take a compiler for x86-64 or arm64.")
endif()
