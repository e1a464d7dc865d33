# Sets a variable to the name by which a shared library is loaded, as a linker would note it (libzip.so.4).
function(shared_library_name variable library)
  execute_process(COMMAND ${CMAKE_OBJDUMP} -p ${library}
    OUTPUT_VARIABLE headers COMMAND_ERROR_IS_FATAL ANY)
  if(NOT headers MATCHES "SONAME +([^\n]+)")
    message(FATAL_ERROR "${library} does not say by which name it is loaded")
  endif()
  set(${variable} ${CMAKE_MATCH_1} PARENT_SCOPE)
endfunction()
