file(STRINGS "${POINTS}" said LIMIT_COUNT 1)
if(said STREQUAL "broken")
  message(FATAL_ERROR "error: a header is missing")
endif()
