//! Profiles: named servers in a file, with what their commands need. No message quotes a value of the file:
//! it may be a password.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use redelay::codec::detect::Format;
use redelay::inspector::matches;
use serde::Deserialize;

use crate::failure::Failure;

/// A server, as the file describes it.
#[derive(Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Profile {
    /// `redis://…`, with or without user and password.
    pub(crate) url: Option<String>,
    /// The user, whose password the command prints.
    pub(crate) user: Option<String>,
    /// A program with its arguments that prints the password, or a line for `sh -c`.
    pub(crate) password_command: Option<PasswordCommand>,
    /// The same for the sentinels, which have users of their own.
    pub(crate) sentinel_user: Option<String>,
    pub(crate) sentinel_password_command: Option<PasswordCommand>,
    pub(crate) tls: Option<Tls>,
    /// What the names of all queues begin with on the server: it is put in front, and not printed.
    pub(crate) name_prefix: String,
    /// The codecs of queues, by patterns of their names.
    pub(crate) codec: BTreeMap<String, String>,
    /// Files that describe the Java classes of payloads.
    pub(crate) classes: Vec<PathBuf>,
    /// Paths in payloads whose values are not printed.
    pub(crate) mask: Vec<String>,
}

#[derive(Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum PasswordCommand {
    Line(String),
    Words(Vec<String>),
}

/// PEM files.
#[derive(Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Tls {
    /// An authority that is trusted besides those of the system.
    pub(crate) ca: Option<PathBuf>,
    /// The client's certificate, and its key.
    pub(crate) cert: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
    /// The name in the server's certificate, if it is not that of the URL.
    pub(crate) server_name: Option<String>,
}

/// Where the file is: `$XDG_CONFIG_HOME/redelay/config.toml`, or in `~/.config`.
pub(crate) fn path(variable: impl Fn(&str) -> Option<std::ffi::OsString>) -> Option<PathBuf> {
    let set = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || Some(set("HOME")?.join(".config"));
    Some(set("XDG_CONFIG_HOME").or_else(home)?.join("redelay").join("config.toml"))
}

/// Reads a profile. Without a name it is `default`, if the file has it.
pub(crate) fn load(name: Option<&str>, path: Option<&Path>) -> Result<Option<Profile>, Failure> {
    let text = match path.map(std::fs::read_to_string) {
        Some(Ok(text)) => text,
        Some(Err(error)) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(wrong(path, &format!("cannot be read: {error}")));
        }
        _ => String::new(),
    };
    let mut profiles = parse(&text).map_err(|why| wrong(path, &why))?;
    match (profiles.remove(name.unwrap_or("default")), name) {
        (Some(profile), _) => Ok(Some(profile)),
        (None, None) => Ok(None),
        (None, Some(name)) => {
            let names: Vec<_> = profiles.keys().map(|name| format!("`{name}`")).collect();
            let has = if names.is_empty() { "no profile".into() } else { names.join(", ") };
            Err(wrong(path, &format!("has no profile `{name}`; it has {has}")))
        }
    }
}

fn wrong(path: Option<&Path>, why: &str) -> Failure {
    let file = path.map_or_else(|| "config.toml".into(), |path| path.display().to_string());
    Failure::Usage(format!("the configuration {file} {why}"))
}

fn parse(text: &str) -> Result<BTreeMap<String, Profile>, String> {
    let profiles: BTreeMap<String, Profile> = toml::from_str(text).map_err(|error| {
        let line =
            error.span().map_or(0, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        // What serde says of another type quotes the value.
        let why = match error.message() {
            message if message.starts_with("unknown field") => message.to_owned(),
            message if message.starts_with("invalid type") || message.starts_with("data did not match") => {
                "a value of another type is expected".into()
            }
            _ => "it is no TOML of the expected form".into(),
        };
        format!("is wrong in line {line}: {why}")
    })?;
    for (name, profile) in &profiles {
        for (pattern, codec) in &profile.codec {
            codec.parse::<Format>().map_err(|error| {
                format!("has an unknown codec for `{pattern}` in the profile `{name}`: {error}")
            })?;
        }
        // It would hide nothing.
        if profile.mask.iter().any(|path| path.split('.').any(str::is_empty)) {
            return Err(format!("has a path with an empty name in the mask of the profile `{name}`"));
        }
        if profile.user.is_some() && profile.password_command.is_none() {
            return Err(format!("has a user without a password_command in the profile `{name}`"));
        }
        if profile.sentinel_user.is_some() && profile.sentinel_password_command.is_none() {
            let keys = "a sentinel_user without a sentinel_password_command";
            return Err(format!("has {keys} in the profile `{name}`"));
        }
    }
    Ok(profiles)
}

impl Profile {
    /// The codec that the file names for a queue: that of the longest pattern.
    pub(crate) fn codec_of(&self, queue: &[u8]) -> Option<Format> {
        let fitting = self.codec.iter().filter(|(pattern, _)| matches(pattern.as_bytes(), queue));
        fitting.max_by_key(|(pattern, _)| pattern.len())?.1.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_profiles() {
        let profiles = parse(
            r#"
            [prod]
            url = "rediss://redis-1:6379"
            user = "looks"
            password_command = ["pass", "show", "redis"]
            tls = { ca = "/etc/ca.pem" }
            name_prefix = "shop:"
            mask = ["card.number"]
            [prod.codec]
            "*" = "json"
            "orders*" = "lz4+kryo5"
            [test]
            password_command = "cat secret"
            "#,
        )
        .unwrap();
        let prod = &profiles["prod"];
        assert_eq!(prod.codec_of(b"orders:7"), "lz4+kryo5".parse().ok());
        assert_eq!(prod.codec_of(b"mails"), "json".parse().ok());
        assert_eq!(profiles["test"].codec_of(b"mails"), None);
        assert_eq!(prod.tls.as_ref().unwrap().ca.as_deref(), Some(Path::new("/etc/ca.pem")));
    }

    #[test]
    fn what_is_wrong_is_said_without_the_values() {
        for (text, why) in [
            ("[a]\nurl = 'redis://:secret@x'\nurl = 2", "wrong in line"),
            ("[a]\npasword = 'secret'", "unknown field `pasword`"),
            ("[a]\nurl = ['secret']", "wrong in line 2: a value of another type is expected"),
            ("[a]\ntls = 'secret'", "a value of another type is expected"),
            ("[a]\npassword_command = 7", "a value of another type is expected"),
            ("[a]\nurl = secret", "wrong in line 2"),
            ("[a.codec]\nq = 'kryo'", "unknown codec for `q` in the profile `a`: expected kryo5"),
            ("[a]\nuser = 'u'", "without a password_command"),
            ("[a]\nmask = ['card', '']", "a path with an empty name in the mask of the profile `a`"),
            ("[a]\nmask = ['card..number']", "a path with an empty name"),
        ] {
            let wrong = parse(text).err().unwrap();
            assert!(wrong.contains(why) && !wrong.contains("secret"), "{wrong}");
        }
    }

    #[test]
    fn a_missing_profile_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.toml");
        assert!(load(None, Some(&file)).unwrap().is_none());
        std::fs::write(&file, "[prod]\n[test]").unwrap();
        assert!(load(None, Some(&file)).unwrap().is_none());
        assert!(load(Some("prod"), Some(&file)).unwrap().is_some());
        let missing = load(Some("live"), Some(&file)).err().unwrap().to_string();
        assert!(missing.ends_with("has no profile `live`; it has `prod`, `test`"), "{missing}");
    }

    #[test]
    fn the_file_is_where_configurations_are() {
        let path = |variables: &[(&str, &str)]| {
            path(|name| Some(variables.iter().find(|(found, _)| *found == name)?.1.into()))
        };
        let file = |path: &str| Some(PathBuf::from(path));
        assert_eq!(path(&[("HOME", "/home/a")]), file("/home/a/.config/redelay/config.toml"));
        assert_eq!(path(&[("XDG_CONFIG_HOME", "/x"), ("HOME", "/h")]), file("/x/redelay/config.toml"));
        assert_eq!(path(&[("XDG_CONFIG_HOME", "")]), None);
    }

    #[test]
    fn codecs_have_the_patterns_of_ls() {
        let file = r"
            [prod.codec]
            'order[sz]' = 'json'
            'mail?' = 'int'
            'a\*' = 'kryo5'
        ";
        let profiles = parse(file).unwrap();
        for (name, codec) in [
            ("orders", Some("json")),
            ("order", None),
            ("mails", Some("int")),
            ("mail", None),
            ("a*", Some("kryo5")),
            ("ab", None),
        ] {
            let codec = codec.and_then(|codec| codec.parse().ok());
            assert_eq!(profiles["prod"].codec_of(name.as_bytes()), codec, "{name}");
        }
    }
}
