//! A folder for one test, gone with it.

use std::path::{Path, PathBuf};

/// A folder below the system's temporary one; removed when dropped.
pub struct Dir(PathBuf);

impl Dir {
    /// A new, empty folder. `name` tells tests of one process apart.
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("velodrome-lab-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("the temporary folder can be written");
        Self(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
