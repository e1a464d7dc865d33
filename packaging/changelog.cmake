# From CHANGELOG.md, whose first entry is this version's ("## 0.4.0 (2026-11-22)"): LNORM_RELEASE_DATE, and
# LNORM_RELEASE_NOTES, its lines.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/CHANGELOG.md)
file(READ ${PROJECT_SOURCE_DIR}/CHANGELOG.md changes)
if(NOT changes MATCHES "\n## ([0-9.]+) \\(([-0-9]+)\\)\n\n(((- |  )[^\n]+\n)+)" OR
    NOT CMAKE_MATCH_1 VERSION_EQUAL PROJECT_VERSION)
  message(FATAL_ERROR "CHANGELOG.md does not begin with what is new in ${PROJECT_VERSION}")
endif()
set(LNORM_RELEASE_DATE ${CMAKE_MATCH_2})
set(LNORM_RELEASE_NOTES "${CMAKE_MATCH_3}")
