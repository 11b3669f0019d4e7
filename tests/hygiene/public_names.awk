# SPDX-License-Identifier: Apache-2.0
#
# Prints the names that headers declare for users, one a line, such as `stepwell::data::take`. Relies on the layout of
# this tree: the declarations of a namespace begin in the first column.
function add(name) { if (name !~ /^operator/) print space "::" name }
FNR == 1 { depth = 0; space = "" }
/^namespace [a-z_:]+ \{$/ { opened[++depth] = space; space = space == "" ? $2 : space "::" $2; next }
/^\}  \/\/ namespace/ || (/^\}$/ && previous ~ /^(class|struct) [a-z_]+;$/) { space = opened[depth--]; next }
{ previous = $0 }
space !~ /^stepwell/ || space ~ /detail|_fix/ { next }
/^(requires|\/\/|#|[})]|extern template|static_assert)/ { next }
/^template/ { if ($0 !~ /^template<[^<>]*> [a-z]/) next; sub(/^template<[^<>]*> /, "") }
/^[^ ]/ {
  line = $0
  gsub(/\[\[[^]]*\]\] */, "", line)
  while (sub(/^(inline|constexpr|consteval|constinit|const) +/, "", line)) {}
  if (match(line, /^using [a-z_]+::[a-z_]+;/)) {
    sub(/;.*/, "", line)
    sub(/.*::/, "", line)
    add(line)
  } else if (match(line, /^(class|struct|enum class|concept|using) +[a-z_0-9]+/)) {
    name = substr(line, RSTART, RLENGTH)
    sub(/.* /, "", name)
    if (name != "namespace") add(name)
  } else if (match(line, /[a-z_0-9]+\(/) && substr(line, 1, RSTART) !~ /=|:[a-z_]$/) {
    add(substr(line, RSTART, RLENGTH - 1))
  } else if (match(line, /^[a-z_:0-9<>, *]* [a-z_0-9]+( = |\{|\[)/) || match(line, /^[a-z_:0-9]+ [a-z_0-9]+( = |\{|;)/)) {
    name = substr(line, RSTART, RLENGTH)
    sub(/( = |\{|\[|;)$/, "", name)
    sub(/.* /, "", name)
    add(name)
  }
}
