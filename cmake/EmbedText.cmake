# SPDX-License-Identifier: Apache-2.0
# Embeds text files in a program.
#
#   qrane_embed_text(<target> <namespace> <header> <file>...)
#
# adds to <target> a generated source with the texts of the files in the arrays embedded_texts and embedded_text_count
# of a namespace, which a header declares. Files must be ASCII; a long one is split into several literals.
# The same file is the script that the build rule runs.

if(CMAKE_SCRIPT_MODE_FILE AND EMBED_OUTPUT)
  set(part_bytes 16000)  # well under the 64 KB that the standard asks compilers to take in one literal
  set(text "// Generated from ${EMBED_COUNT} files by cmake/EmbedText.cmake.\n#include \"${EMBED_HEADER}\"\n\n")
  string(APPEND text "namespace ${EMBED_NAMESPACE} {\n\nnamespace {\n\n")
  set(table "")
  math(EXPR last "${EMBED_COUNT} - 1")
  foreach(i RANGE ${last})
    set(path "${EMBED_FILE_${i}}")
    get_filename_component(name "${path}" NAME)
    file(READ "${path}" content)
    string(LENGTH "${content}" length)
    set(position 0)
    set(parts 0)
    string(APPEND text "const char* const parts_${i}[] = {\n")
    while(position LESS length OR parts EQUAL 0)
      string(SUBSTRING "${content}" ${position} ${part_bytes} part)
      string(APPEND text "R\"embedded(${part})embedded\",\n")
      math(EXPR position "${position} + ${part_bytes}")
      math(EXPR parts "${parts} + 1")
    endwhile()
    string(APPEND text "};\n\n")
    string(APPEND table "    {\"${name}\", parts_${i}, ${parts}},\n")
  endforeach()
  string(APPEND text "}  // namespace\n\nconst qrane::detail::EmbeddedText embedded_texts[] = {\n${table}};\n")
  string(APPEND text "const std::size_t embedded_text_count = ${EMBED_COUNT};\n\n}  // namespace ${EMBED_NAMESPACE}\n")
  file(WRITE "${EMBED_OUTPUT}" "${text}")
  return()
endif()

set(QRANE_EMBED_TEXT_SCRIPT "${CMAKE_CURRENT_LIST_FILE}")

function(qrane_embed_text target namespace header)
  string(MAKE_C_IDENTIFIER "${namespace}" stem)
  set(output "${CMAKE_CURRENT_BINARY_DIR}/${stem}_texts.cpp")
  set(definitions "")
  set(paths "")
  set(count 0)
  foreach(file IN LISTS ARGN)
    get_filename_component(path "${file}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    list(APPEND paths "${path}")
    list(APPEND definitions "-DEMBED_FILE_${count}=${path}")
    math(EXPR count "${count} + 1")
  endforeach()
  add_custom_command(
    OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" "-DEMBED_OUTPUT=${output}" "-DEMBED_COUNT=${count}"
            "-DEMBED_NAMESPACE=${namespace}" "-DEMBED_HEADER=${header}" ${definitions}
            -P "${QRANE_EMBED_TEXT_SCRIPT}"
    DEPENDS ${paths} "${QRANE_EMBED_TEXT_SCRIPT}"
    COMMENT "Embedding ${count} text files for ${namespace}"
    VERBATIM)
  target_sources(${target} PRIVATE "${output}")
endfunction()
