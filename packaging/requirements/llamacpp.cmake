# Read by CMake at the start of llama-cpp-python's own project. It asks for llama.cpp's command-line library, which
# nothing in Python uses and which would take most of the time; a plain variable goes before that.
set(LLAMA_BUILD_COMMON OFF)
