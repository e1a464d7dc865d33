# In a unity build, as our presets make it, the files of a folder are compiled as one, for it is the headers that take
# long. ALONE: files that are compiled one by one.
function(unity_by_folder target)
  cmake_parse_arguments(PARSE_ARGV 1 unity "" "" ALONE)
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    if(NOT source IN_LIST unity_ALONE)
      cmake_path(GET source PARENT_PATH folder)
      string(MAKE_C_IDENTIFIER "in_${folder}" group)
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
    endif()
  endforeach()
endfunction()
