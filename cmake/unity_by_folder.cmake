# In a unity build, as our presets make it, the files of a folder are compiled as one, for it is the headers that take
# long. EXCEPT: folders whose files stay alone.
function(unity_by_folder target)
  cmake_parse_arguments(PARSE_ARGV 1 unity "" "" EXCEPT)
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    cmake_path(GET source PARENT_PATH folder)
    if(NOT folder IN_LIST unity_EXCEPT)
      string(MAKE_C_IDENTIFIER "in_${folder}" group)
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
    endif()
  endforeach()
endfunction()
