# Read by CMake at the start of llama-cpp-python's own project. It asks for llama.cpp's command-line library, which
# nothing in Python uses and which would take most of the time; a plain variable goes before that.
set(LLAMA_BUILD_COMMON OFF)
# Where torch has computed with AMX tiles before in the same thread, llama.cpp believes that they are still set up for it,
# and the processor ends the process (SIGILL). Without this macro it computes with AVX-512 there.
if(NOT MSVC)
  add_compile_options(-U__AMX_INT8__)
endif()
