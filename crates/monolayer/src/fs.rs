//! Files and directories that are written whole or not at all: beside their place first, then renamed.

use std::io::Write as _;
use std::path::Path;

use crate::error::{Error, Result};

/// What files that are being written are called until they are whole.
const PREFIX: &str = ".monolayer-";

/// Puts a file in place, whole or not at all.
pub fn replace_file(path: impl AsRef<Path>, bytes: &[u8]) -> Result<()> {
    replace_file_at(path.as_ref(), bytes)
}

fn replace_file_at(path: &Path, bytes: &[u8]) -> Result<()> {
    let wrap = |e: std::io::Error| Error::io(path, e);
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // Temporary files are for their owner alone; this one will be a file like any other.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.prefix(PREFIX).tempfile_in(parent(path)).map_err(wrap)?;
    file.write_all(bytes).and_then(|()| file.as_file().sync_all()).map_err(wrap)?;
    file.persist(path).map_err(|e| wrap(e.error))?;
    Ok(())
}

/// Puts a directory, filled by `fill`, in the place of an old one or of none.
pub fn replace_dir(dir: impl AsRef<Path>, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let mut fill = Some(fill);
    replace_dir_by(dir.as_ref(), &mut |new| fill.take().map_or(Ok(()), |fill| fill(new)))
}

/// [`replace_dir`], compiled once for all that fill directories; `fill` is called once at most.
fn replace_dir_by(dir: &Path, fill: &mut dyn FnMut(&Path) -> Result<()>) -> Result<()> {
    let (parent, replaces) = (parent(dir), dir.exists());
    std::fs::create_dir_all(parent).map_err(|e| Error::io(parent, e))?;
    let stage = stage_in(parent)?;
    let (new, old) = (stage.path().join("new"), stage.path().join("old"));
    std::fs::create_dir(&new).map_err(|e| Error::io(&new, e))?;
    fill(&new)?;
    // The old directory steps aside first: a directory cannot be renamed onto one that is not empty.
    if replaces {
        std::fs::rename(dir, &old).map_err(|e| Error::io(dir, e))?;
    }
    std::fs::rename(&new, dir).map_err(|e| {
        if replaces {
            let _ = std::fs::rename(&old, dir);
        }
        Error::io(dir, e)
    })
}

/// Puts some of the files that `fill` makes into a directory that is there, one after another in the order of `names`; those
/// that `fill` did not make are left alone.
pub fn replace_files(dir: impl AsRef<Path>, names: &[&str], fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let dir = dir.as_ref();
    let stage = stage_in(dir)?;
    let new = stage.path().join("new");
    fill(&new)?;
    for (from, to) in names.iter().map(|name| (new.join(name), dir.join(name))) {
        if from.exists() {
            std::fs::rename(&from, &to).map_err(|e| Error::io(&to, e))?;
        }
    }
    Ok(())
}

fn stage_in(dir: &Path) -> Result<tempfile::TempDir> {
    tempfile::Builder::new().prefix(PREFIX).tempdir_in(dir).map_err(|e| Error::io(dir, e))
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_half_written() {
        let room = tempfile::tempdir().unwrap();
        let file = room.path().join("a");
        replace_file(&file, b"one").unwrap();
        replace_file(&file, b"two").unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"two");
        let dir = room.path().join("d");
        let put = |text: &'static str| move |dir: &Path| replace_file(dir.join("f"), text.as_bytes());
        replace_dir(&dir, put("one")).unwrap();
        let failed = replace_dir(&dir, |new| {
            put("two")(new)?;
            Err(Error::setting("no", "no"))
        });
        assert!(failed.is_err() && std::fs::read(dir.join("f")).unwrap() == b"one");
        replace_dir(&dir, put("three")).unwrap();
        assert_eq!(std::fs::read(dir.join("f")).unwrap(), b"three");
        let made = |new: &Path| {
            std::fs::create_dir(new).unwrap();
            put("four")(new)
        };
        replace_files(&dir, &["f", "not made"], made).unwrap();
        assert_eq!(std::fs::read(dir.join("f")).unwrap(), b"four");
        // No trace of what was on the way.
        assert_eq!((std::fs::read_dir(room.path()).unwrap().count(), std::fs::read_dir(&dir).unwrap().count()), (2, 1));
    }

    #[test]
    #[cfg(unix)]
    fn a_replaced_file_is_a_file_like_any_other() {
        use std::os::unix::fs::PermissionsExt as _;
        let room = tempfile::tempdir().unwrap();
        let mode = |name: &str| std::fs::metadata(room.path().join(name)).unwrap().permissions().mode();
        replace_file(room.path().join("replaced"), b"").unwrap();
        std::fs::write(room.path().join("plain"), b"").unwrap();
        assert_eq!(mode("replaced"), mode("plain"));
    }
}
