//! Files that belong to the user of this process alone: they hold keys, Secrets, or the requests of
//! users.
//!
//! A symbolic link could lead anywhere, another owner could read on, and every user who may write
//! could have written already: such files are refused, and not repaired. Rights to read are those
//! that the owner has given. Shared by the library and the program.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::path::Path;

/// Opens a file, or creates it (mode 0600) if the options say so.
pub(crate) fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    // Before the open, which could have effects, and for a link fails with another text.
    check(path)?;
    restrict(options);
    let file = options.open(path)?;
    // Again: another file may have taken the place of the first file.
    let about = file.metadata()?;
    judge(&about)?;
    if is_open_to_others(&about) {
        return Err(io::Error::other(
            "others may write to it; if its contents are good, take that right away (chmod go-w)",
        ));
    }
    Ok(file)
}

/// Checks the file at a path that is about to be opened or replaced; there may be none.
pub(crate) fn check(path: &Path) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(about) => judge(&about),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Refuses links and files of other users.
fn judge(about: &Metadata) -> io::Result<()> {
    if about.file_type().is_symlink() {
        return Err(io::Error::other("it is a symbolic link; name the file that it leads to"));
    }
    if is_foreign(about) {
        return Err(io::Error::other(
            "it belongs to another user; remove it, or name another file",
        ));
    }
    Ok(())
}

#[cfg(unix)]
mod system {
    use std::fs::{Metadata, OpenOptions};
    use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};

    use rustix::fs::OFlags;

    /// Sets the mode of a new file at creation, and lets links be refused by the system.
    pub(super) fn restrict(options: &mut OpenOptions) {
        let flags = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or(0);
        options.mode(0o600).custom_flags(flags);
    }

    /// Whether another user owns a file. Devices, such as a terminal, keep nothing.
    pub(super) fn is_foreign(about: &Metadata) -> bool {
        about.uid() != rustix::process::geteuid().as_raw() && !about.file_type().is_char_device()
    }

    /// Whether others than the owner may write to a file.
    pub(super) fn is_open_to_others(about: &Metadata) -> bool {
        about.mode() & 0o022 != 0 && !about.file_type().is_char_device()
    }
}

/// Rights of files that this program does not know.
#[cfg(not(unix))]
mod system {
    use std::fs::{Metadata, OpenOptions};

    pub(super) fn restrict(_options: &mut OpenOptions) {}

    pub(super) fn is_foreign(_about: &Metadata) -> bool {
        false
    }

    pub(super) fn is_open_to_others(_about: &Metadata) -> bool {
        false
    }
}

use system::{is_foreign, is_open_to_others, restrict};

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    fn append(path: &Path) -> Result<File, String> {
        open(path, OpenOptions::new().append(true).create(true)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_that_others_may_have_written_is_not_opened() {
        let folder = std::env::temp_dir().join(format!("windlass-files-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (file, link) = (folder.join("file"), folder.join("link"));
        assert!(append(&file).is_ok());
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&file), 0o600);
        symlink(&file, &link).unwrap();
        assert!(append(&link).unwrap_err().contains("a symbolic link"));
        assert!(check(&link).is_err() && check(&file).is_ok() && check(&folder.join("x")).is_ok());
        for (bits, is_fine) in [(0o620, false), (0o602, false), (0o640, true), (0o644, true)] {
            std::fs::set_permissions(&file, PermissionsExt::from_mode(bits)).unwrap();
            let opened = append(&file).map(drop);
            assert_eq!(opened.is_ok(), is_fine, "{bits:o}: {opened:?}");
        }
        // Only the superuser may give a file away.
        if chown(&file, Some(1), None).is_ok() {
            assert!(append(&file).unwrap_err().contains("belongs to another user"));
        }
        assert!(append(Path::new("/dev/null")).is_ok(), "a device keeps nothing");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
