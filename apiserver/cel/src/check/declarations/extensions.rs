//! cel-go's extensions: strings (version 2), lists (version 3), sets, maps of two-variable
//! comprehensions.

/// Functions and overloads in the notation that `super::parse_table` reads.
pub(super) const TABLE: &str = "
@sortByAssociatedKeys
  list_int_sortByAssociatedKeys list(T).(list(int)) -> list(T)
  list_uint_sortByAssociatedKeys list(T).(list(uint)) -> list(T)
  list_double_sortByAssociatedKeys list(T).(list(double)) -> list(T)
  list_bool_sortByAssociatedKeys list(T).(list(bool)) -> list(T)
  list_google.protobuf.Duration_sortByAssociatedKeys list(T).(list(duration)) -> list(T)
  list_google.protobuf.Timestamp_sortByAssociatedKeys list(T).(list(timestamp)) -> list(T)
  list_string_sortByAssociatedKeys list(T).(list(string)) -> list(T)
  list_bytes_sortByAssociatedKeys list(T).(list(bytes)) -> list(T)
cel.@mapInsert
  @mapInsert_map_key_value (map(K, V), K, V) -> map(K, V)
  @mapInsert_map_map (map(K, V), map(K, V)) -> map(K, V)
charAt
  string_char_at_int string.(int) -> string
distinct
  list_distinct list(T).() -> list(T)
flatten
  list_flatten list(list(T)).() -> list(T)
  list_flatten_int list(dyn).(int) -> list(dyn)
format
  string_format string.(list(dyn)) -> string
indexOf
  string_index_of_string string.(string) -> int
  string_index_of_string_int string.(string, int) -> int
join
  list_join list(string).() -> string
  list_join_string list(string).(string) -> string
lastIndexOf
  string_last_index_of_string string.(string) -> int
  string_last_index_of_string_int string.(string, int) -> int
lists.range
  lists_range (int) -> list(int)
lowerAscii
  string_lower_ascii string.() -> string
replace
  string_replace_string_string string.(string, string) -> string
  string_replace_string_string_int string.(string, string, int) -> string
reverse
  list_reverse list(T).() -> list(T)
sets.contains
  list_sets_contains_list (list(T), list(T)) -> bool
sets.equivalent
  list_sets_equivalent_list (list(T), list(T)) -> bool
sets.intersects
  list_sets_intersects_list (list(T), list(T)) -> bool
slice
  list_slice list(T).(int, int) -> list(T)
sort
  list_int_sort list(int).() -> list(int)
  list_uint_sort list(uint).() -> list(uint)
  list_double_sort list(double).() -> list(double)
  list_bool_sort list(bool).() -> list(bool)
  list_google.protobuf.Duration_sort list(duration).() -> list(duration)
  list_google.protobuf.Timestamp_sort list(timestamp).() -> list(timestamp)
  list_string_sort list(string).() -> list(string)
  list_bytes_sort list(bytes).() -> list(bytes)
split
  string_split_string string.(string) -> list(string)
  string_split_string_int string.(string, int) -> list(string)
strings.quote
  strings_quote (string) -> string
substring
  string_substring_int string.(int) -> string
  string_substring_int_int string.(int, int) -> string
trim
  string_trim string.() -> string
upperAscii
  string_upper_ascii string.() -> string
";
