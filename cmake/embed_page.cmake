# Writes what pages are made of as C++: cmake -DVEGA=... -DPAGE=... -DOUTPUT=... -P embed_page.cmake
#
# Vega comes as its modules, each written for a require() of its own, in the order in which they need each other.
# Those that draw maps, trees and the like are left out.
set(modules util time format loader scale canvas scenegraph dataflow statistics expression selection functions
  runtime view event-selector parser interpreter encode transforms view-transforms)
set(script "const vega = (() => {\nconst modules = {}, require = name => modules[name];\n")
foreach(module IN LISTS modules)
  file(READ ${VEGA}/vega-${module}.min.js text)
  string(REPLACE "vega-selection" "vega-selections" name "vega-${module}")
  string(APPEND script
    "(() => { const exports = modules['${name}'] = {}, module = {exports};\n${text}\n})();\n")
endforeach()
string(APPEND script [[
Object.assign(modules['vega-dataflow'].transforms, modules['vega-encode'], modules['vega-transforms'],
  modules['vega-view-transforms']);
return Object.assign({}, ...Object.values(modules));
})();
]])
file(READ ${PAGE}/page.js text)
string(APPEND script "${text}")
string(FIND "${script}" "</script" end)
if(NOT end EQUAL -1)
  message(FATAL_ERROR "${VEGA}: a module contains </script, which would end the page's script")
endif()
file(READ ${PAGE}/page.css style)
file(READ ${PAGE}/vega_license.txt license)

# SHA-256 in base64, as a Content-Security-Policy has it.
function(hash_of text variable)
  set(digits ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/)
  string(SHA256 hex "${text}")
  set(result)
  foreach(place RANGE 0 63 3)  # 12 bits are two digits
    string(SUBSTRING "${hex}00" ${place} 3 bits)
    math(EXPR high "0x${bits} >> 6")
    math(EXPR low "0x${bits} & 63")
    string(SUBSTRING ${digits} ${high} 1 high)
    string(SUBSTRING ${digits} ${low} 1 low)
    string(APPEND result ${high}${low})
  endforeach()
  string(SUBSTRING ${result} 0 43 result)  # the rest is padding
  set(${variable} "sha256-${result}=" PARENT_SCOPE)
endfunction()
hash_of("${script}" script_hash)
hash_of("${style}" style_hash)

set(source "#include \"lnorm/report/page/assets.hpp\"\n\nnamespace lnorm::page {\n\n")
foreach(asset script script_hash style style_hash license)
  string(APPEND source "const std::string_view ${asset} = R\"lnorm(${${asset}})lnorm\";\n\n")
endforeach()
file(WRITE ${OUTPUT} "${source}}  // namespace lnorm::page\n")
