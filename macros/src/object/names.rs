//! From the name of a field in YAML to the name in Rust, by k8s-openapi's rule.

/// Returns the name in Rust of a field that is called `json` in YAML: `containerPort` becomes
/// `container_port`, `podIPs` becomes `pod_ips`, `type` becomes `type_`.
///
/// A name in `snake_case` stays unchanged.
pub(crate) fn rust_name(json: &str) -> String {
    match json {
        "$ref" => return "ref_path".to_owned(),
        "$schema" => return "schema".to_owned(),
        _ => {}
    }
    let letters: Vec<char> = json.chars().collect();
    let mut name = String::with_capacity(json.len() + 8);
    for (at, letter) in letters.iter().enumerate() {
        match letter {
            '-' | '.' | '/' => name.push('_'),
            letter if letter.is_uppercase() => {
                if begins_word(&letters, at) {
                    name.push('_');
                }
                name.extend(letter.to_lowercase());
            }
            letter => name.push(*letter),
        }
    }
    // Keywords are the names of a few fields: `type`, `enum`, `continue`.
    if syn::parse_str::<syn::Ident>(&name).is_err() {
        name.push('_');
    }
    name
}

/// Whether the capital letter at this place begins a word: behind a small letter or a digit, and
/// before a small letter at the end of an abbreviation (`openAPIV3Schema`).
fn begins_word(letters: &[char], at: usize) -> bool {
    let is_upper = |at: usize| letters.get(at).is_some_and(|letter| letter.is_uppercase());
    if at == 0 || letters[at - 1] == '_' {
        return false;
    }
    if !is_upper(at - 1) {
        return true;
    }
    // The plural of an abbreviation is a single word: `clusterIPs`.
    let is_plural = letters.get(at + 1) == Some(&'s')
        && letters.get(at + 2).is_none_or(|letter| letter.is_uppercase());
    letters.get(at + 1).is_some_and(|next| !next.is_uppercase()) && !is_plural
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use super::*;

    #[test]
    fn names_become_those_of_k8s_openapi() {
        let pairs = [
            ("name", "name"),
            ("containerPort", "container_port"),
            ("hostIP", "host_ip"),
            ("clusterIPs", "cluster_ips"),
            ("serverAddressByClientCIDRs", "server_address_by_client_cidrs"),
            ("openAPIV3Schema", "open_api_v3_schema"),
            ("type", "type_"),
            ("$ref", "ref_path"),
            ("x-kubernetes-list-type", "x_kubernetes_list_type"),
            ("already_snake", "already_snake"),
        ];
        for (json, rust) in pairs {
            assert_eq!(rust_name(json), rust);
        }
    }

    /// Names in the sources of k8s-openapi, whose readers match `"hostIP" => Field::Key_host_ip`.
    fn names_of(folder: &Path, found: &mut BTreeMap<String, String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                names_of(&path, found);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            for line in text.lines() {
                let Some((json, rust)) = line.trim().split_once(" => Field::Key_") else {
                    continue;
                };
                let (json, rust) = (json.trim_matches('"'), rust.trim_end_matches(','));
                found.insert(json.to_owned(), rust.to_owned());
            }
        }
    }

    /// The source of k8s-openapi: below cargo's home, or at the path from `cargo metadata` (a
    /// vendored source, which needs every dependency of every platform).
    fn source() -> PathBuf {
        let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
        let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
        let lock = include_str!("../../../Cargo.lock");
        let version = lock.split("name = \"k8s-openapi\"\nversion = \"").nth(1).unwrap();
        let folder = format!("k8s-openapi-{}/src", version.split('"').next().unwrap());
        let registries = home.and_then(|home| std::fs::read_dir(home.join("registry/src")).ok());
        let folders = registries.into_iter().flatten().flatten();
        let folder =
            folders.map(|registry| registry.path().join(&folder)).find(|path| path.is_dir());
        folder.unwrap_or_else(|| {
            let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
            let mut command = Command::new(cargo);
            command.args(["metadata", "--format-version=1", "--locked"]);
            let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
            let metadata = String::from_utf8(output.stdout).unwrap();
            let manifests = metadata.split("\"manifest_path\":\"").skip(1);
            let mut manifests = manifests.filter_map(|rest| rest.split('"').next());
            let manifest = manifests.find(|path| path.contains("/k8s-openapi"));
            PathBuf::from(manifest.expect("the source of k8s-openapi")).with_file_name("src")
        })
    }

    #[test]
    fn every_field_of_k8s_openapi_has_the_name_that_the_rule_gives_it() {
        let mut found = BTreeMap::new();
        names_of(&source(), &mut found);
        assert!(found.len() > 900, "only {} fields were found", found.len());
        let wrong: Vec<_> = found.iter().filter(|(json, rust)| rust_name(json) != **rust).collect();
        assert!(wrong.is_empty(), "(name in YAML, name in Rust): {wrong:?}");
    }
}
