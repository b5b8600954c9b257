use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::*;
use windlass_core::clock::Clock;
use windlass_core::error::ErrorKind;

/// A plugin that leaves a mark when run.
struct Marker {
    folder: PathBuf,
}

impl Marker {
    fn new(name: &str) -> Self {
        let name = format!("windlass-policy-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let this = Self { folder };
        let script = format!(
            "#!/bin/sh\ntouch {}\nprintf '%s' '{}'\n",
            this.mark().display(),
            r#"{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"t"}}"#
        );
        std::fs::write(this.program(), script).unwrap();
        let executable = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(this.program(), executable).unwrap();
        this
    }

    fn program(&self) -> PathBuf {
        self.folder.join("plugin")
    }

    fn mark(&self) -> PathBuf {
        self.folder.join("was-run")
    }

    /// Returns the policy's refusals, at the start and at the run; `None` when the plugin ran.
    async fn refusal(&self, policy: ExecPolicy) -> Option<String> {
        let plugin = ExecPlugin { policy, ..ExecPlugin::new(self.program()) };
        let early = plugin.check();
        let late = plugin.run(&Clock::system()).await;
        assert_eq!(early.is_err(), late.is_err(), "{early:?} {late:?}");
        assert_eq!(late.is_ok(), self.mark().exists(), "{late:?}");
        let _ = std::fs::remove_file(self.mark());
        let (early, late) = (early.err()?, late.err()?);
        assert_eq!((early.kind(), early.to_string()), (ErrorKind::Config, late.to_string()));
        Some(early.to_string())
    }
}

impl Drop for Marker {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[tokio::test]
async fn a_plugin_runs_unless_its_policy_denies_it_and_a_refusal_says_what_to_do() {
    let marker = Marker::new("deny");
    assert_eq!(marker.refusal(ExecPolicy::AllowAll).await, None);
    let text = marker.refusal(ExecPolicy::Deny).await.unwrap();
    assert!(text.contains("may not be run") && text.contains("with_exec_policy"), "{text}");
    assert!(text.contains("--credential-plugins"), "{text}");
}

/// As client-go: both paths are resolved, and must be equal.
#[tokio::test]
async fn a_list_allows_exactly_the_programs_at_its_paths() {
    let marker = Marker::new("list");
    let program = marker.program();
    let allowed = ExecPolicy::allow_list([PathBuf::from("/bin/other"), program.clone()]);
    assert_eq!(marker.refusal(allowed).await, None);
    let link = marker.folder.join("link");
    std::os::unix::fs::symlink(&program, &link).unwrap();
    for entry in [
        PathBuf::from("plugin"),
        PathBuf::from("/bin/plugin"),
        PathBuf::from(""),
        marker.folder.clone(),
        link,
    ] {
        let text = marker.refusal(ExecPolicy::allow_list([entry])).await.unwrap();
        assert!(text.contains("not in the list"), "{text}");
    }
    let nothing = ExecPolicy::AllowList(Vec::new());
    let text = marker.refusal(nothing).await.unwrap();
    assert!(text.contains("is empty") && text.contains("Deny"), "{text}");
}

#[test]
fn a_bare_name_in_list_and_kubeconfig_is_the_program_that_path_finds() {
    let plugin = |command: &str, entry: &str| ExecPlugin {
        policy: ExecPolicy::allow_list([entry]),
        ..ExecPlugin::new(command)
    };
    let sh = resolve(Path::new("sh")).unwrap();
    let sh = sh.to_str().unwrap();
    for (command, entry) in [("sh", "sh"), ("sh", sh), (sh, "sh"), (sh, sh)] {
        plugin(command, entry).check().unwrap();
    }
    plugin("sh", "cat").check().unwrap_err();
    // A path is no bare name, though both end alike.
    plugin("./sh", "sh").check().unwrap_err();
}

#[tokio::test]
async fn a_listed_plugin_that_is_not_there_is_told_when_it_is_to_run() {
    let mut plugin = ExecPlugin::new("windlass-no-such-plugin");
    plugin.policy = ExecPolicy::allow_list(["windlass-no-such-plugin"]);
    plugin.check().unwrap();
    let text = plugin.run(&Clock::system()).await.unwrap_err().to_string();
    assert!(text.contains("no such program"), "{text}");
}
