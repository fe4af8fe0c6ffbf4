# Cross-compilation with Debian's gcc-arm-none-eabi.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR arm)
set(CMAKE_C_COMPILER arm-none-eabi-gcc)
set(CMAKE_OBJDUMP arm-none-eabi-objdump)
set(CMAKE_EXECUTABLE_SUFFIX_C .elf)
# There is nothing to link a trial program with.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
