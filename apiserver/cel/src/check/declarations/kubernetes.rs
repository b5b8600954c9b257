//! Kubernetes' libraries: lists, regular expressions, URLs, addresses, quantities, versions,
//! formats.

/// Functions and overloads in the notation that `super::parse_table` reads.
pub(super) const TABLE: &str = "
add
  quantity_add kubernetes.Quantity.(kubernetes.Quantity) -> kubernetes.Quantity
  quantity_add_int kubernetes.Quantity.(int) -> kubernetes.Quantity
asApproximateFloat
  quantity_get_float kubernetes.Quantity.() -> double
asInteger
  quantity_get_int kubernetes.Quantity.() -> int
cidr
  string_to_cidr (string) -> net.CIDR
compareTo
  quantity_compare_to kubernetes.Quantity.(kubernetes.Quantity) -> int
  semver_compare_to kubernetes.Semver.(kubernetes.Semver) -> int
containsCIDR
  cidr_contains_cidr_string net.CIDR.(string) -> bool
  cidr_contains_cidr net.CIDR.(net.CIDR) -> bool
containsIP
  cidr_contains_ip_string net.CIDR.(string) -> bool
  cidr_contains_ip_ip net.CIDR.(net.IP) -> bool
family
  ip_family net.IP.() -> int
find
  string_find_string string.(string) -> string
findAll
  string_find_all_string string.(string) -> list(string)
  string_find_all_string_int string.(string, int) -> list(string)
format.byte
  format.byte () -> kubernetes.NamedFormat
format.date
  format.date () -> kubernetes.NamedFormat
format.datetime
  format.datetime () -> kubernetes.NamedFormat
format.dns1035Label
  format.dns1035Label () -> kubernetes.NamedFormat
format.dns1035LabelPrefix
  format.dns1035LabelPrefix () -> kubernetes.NamedFormat
format.dns1123Label
  format.dns1123Label () -> kubernetes.NamedFormat
format.dns1123LabelPrefix
  format.dns1123LabelPrefix () -> kubernetes.NamedFormat
format.dns1123Subdomain
  format.dns1123Subdomain () -> kubernetes.NamedFormat
format.dns1123SubdomainPrefix
  format.dns1123SubdomainPrefix () -> kubernetes.NamedFormat
format.labelValue
  format.labelValue () -> kubernetes.NamedFormat
format.named
  format-named (string) -> optional_type(kubernetes.NamedFormat)
format.qualifiedName
  format.qualifiedName () -> kubernetes.NamedFormat
format.uri
  format.uri () -> kubernetes.NamedFormat
format.uuid
  format.uuid () -> kubernetes.NamedFormat
getEscapedPath
  url_get_escaped_path kubernetes.URL.() -> string
getHost
  url_get_host kubernetes.URL.() -> string
getHostname
  url_get_hostname kubernetes.URL.() -> string
getPort
  url_get_port kubernetes.URL.() -> string
getQuery
  url_get_query kubernetes.URL.() -> map(string, list(string))
getScheme
  url_get_scheme kubernetes.URL.() -> string
indexOf
  list_a_index_of_int list(A).(A) -> int
ip
  string_to_ip (string) -> net.IP
  cidr_ip net.CIDR.() -> net.IP
ip.isCanonical
  ip_is_canonical (string) -> bool
isCIDR
  is_cidr (string) -> bool
isGlobalUnicast
  ip_is_global_unicast net.IP.() -> bool
isGreaterThan
  quantity_is_greater_than kubernetes.Quantity.(kubernetes.Quantity) -> bool
  semver_is_greater_than kubernetes.Semver.(kubernetes.Semver) -> bool
isIP
  is_ip (string) -> bool
isInteger
  quantity_is_integer kubernetes.Quantity.() -> bool
isLessThan
  quantity_is_less_than kubernetes.Quantity.(kubernetes.Quantity) -> bool
  semver_is_less_than kubernetes.Semver.(kubernetes.Semver) -> bool
isLinkLocalMulticast
  ip_is_link_local_multicast net.IP.() -> bool
isLinkLocalUnicast
  ip_is_link_local_unicast net.IP.() -> bool
isLoopback
  ip_is_loopback net.IP.() -> bool
isQuantity
  is_quantity_string (string) -> bool
isSemver
  is_semver_string (string) -> bool
  is_semver_string_bool (string, bool) -> bool
isSorted
  list_int_is_sorted_bool list(int).() -> bool
  list_uint_is_sorted_bool list(uint).() -> bool
  list_double_is_sorted_bool list(double).() -> bool
  list_bool_is_sorted_bool list(bool).() -> bool
  list_duration_is_sorted_bool list(duration).() -> bool
  list_timestamp_is_sorted_bool list(timestamp).() -> bool
  list_string_is_sorted_bool list(string).() -> bool
  list_bytes_is_sorted_bool list(bytes).() -> bool
isURL
  is_url_string (string) -> bool
isUnspecified
  ip_is_unspecified net.IP.() -> bool
jsonpatch.escapeKey
  string_jsonpatch_escapeKey_string (string) -> string
lastIndexOf
  list_a_last_index_of_int list(A).(A) -> int
major
  semver_major kubernetes.Semver.() -> int
masked
  cidr_masked net.CIDR.() -> net.CIDR
max
  list_int_max_int list(int).() -> int
  list_uint_max_uint list(uint).() -> uint
  list_double_max_double list(double).() -> double
  list_bool_max_bool list(bool).() -> bool
  list_duration_max_duration list(duration).() -> duration
  list_timestamp_max_timestamp list(timestamp).() -> timestamp
  list_string_max_string list(string).() -> string
  list_bytes_max_bytes list(bytes).() -> bytes
min
  list_int_min_int list(int).() -> int
  list_uint_min_uint list(uint).() -> uint
  list_double_min_double list(double).() -> double
  list_bool_min_bool list(bool).() -> bool
  list_duration_min_duration list(duration).() -> duration
  list_timestamp_min_timestamp list(timestamp).() -> timestamp
  list_string_min_string list(string).() -> string
  list_bytes_min_bytes list(bytes).() -> bytes
minor
  semver_minor kubernetes.Semver.() -> int
patch
  semver_patch kubernetes.Semver.() -> int
prefixLength
  cidr_prefix_length net.CIDR.() -> int
quantity
  string_to_quantity (string) -> kubernetes.Quantity
semver
  string_to_semver (string) -> kubernetes.Semver
  string_bool_to_semver (string, bool) -> kubernetes.Semver
sign
  quantity_sign (kubernetes.Quantity) -> int
string
  ip_to_string (net.IP) -> string
  cidr_to_string (net.CIDR) -> string
sub
  quantity_sub kubernetes.Quantity.(kubernetes.Quantity) -> kubernetes.Quantity
  quantity_sub_int kubernetes.Quantity.(int) -> kubernetes.Quantity
sum
  list_int_sum_int list(int).() -> int
  list_uint_sum_uint list(uint).() -> uint
  list_double_sum_double list(double).() -> double
  list_duration_sum_duration list(duration).() -> duration
url
  string_to_url (string) -> kubernetes.URL
validate
  format-validate kubernetes.NamedFormat.(string) -> optional_type(list(string))
";
