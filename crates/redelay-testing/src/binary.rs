//! Finds the executable of a server.

use crate::startup::on_path;
#[cfg(feature = "_own")]
use crate::version::Version;
use std::path::PathBuf;

/// The server of a test that does not choose one. `choice` is the value of `REDELAY_SERVER`, or empty.
pub(crate) fn chosen(choice: &str) -> Result<PathBuf, String> {
    if choice.is_empty() {
        let found = on_path("redis-server").or_else(|| on_path("valkey-server"));
        return found.ok_or_else(|| {
            "neither redis-server nor valkey-server is on PATH: install one, or set REDELAY_SERVER to the path of one"
                .to_owned()
        });
    }
    #[cfg(feature = "_own")]
    if let Some(version) = Version::ALL.into_iter().find(|version| version.name() == choice) {
        return version.executable();
    }
    let path = PathBuf::from(choice);
    // A word without a slash is a file on PATH, and not one in the current folder.
    match choice.contains('/') {
        true if path.is_file() => Ok(path),
        true => Err(format!("REDELAY_SERVER={choice} is not a file")),
        false => on_path(choice).ok_or_else(|| format!("REDELAY_SERVER={choice} is not on PATH")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choice_is_a_path_or_a_file_on_path_or_explained() {
        let here = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        assert_eq!(chosen(here), Ok(here.into()));
        assert_eq!(chosen("sh"), Ok(on_path("sh").unwrap()));
        for (choice, part) in [("redis-8.0", "not on PATH"), ("./no/redis-server", "not a file")] {
            let sentence = chosen(choice).unwrap_err();
            assert!(sentence.contains(choice) && sentence.contains(part), "{sentence}");
        }
    }

    #[cfg(feature = "_own")]
    #[test]
    fn choice_is_a_name_or_explained() {
        for version in Version::ALL {
            match chosen(version.name()) {
                Ok(path) => assert_eq!(version.executable(), Ok(path)),
                Err(sentence) => assert!(sentence.contains("run scripts/servers.sh"), "{sentence}"),
            }
        }
    }
}
