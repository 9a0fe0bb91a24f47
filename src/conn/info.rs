//! What a server says of itself (`INFO`). Pure.

/// The oldest server that is supported: `LPOP key count` and `CLIENT INFO` came with it.
pub(super) const OLDEST_SERVER: (u32, u32) = (6, 2);

/// The field of this name in the reply of `INFO`.
pub(crate) fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

/// What the server is, with its own version: `Redis 7.0.15`, `Valkey 9.1.0`.
pub(crate) fn product(info: &str) -> String {
    match (field(info, "valkey_version"), field(info, "redis_version")) {
        (Some(version), _) => format!("Valkey {version}"),
        (None, Some(version)) => format!("Redis {version}"),
        (None, None) => "an unknown version".to_owned(),
    }
}

/// Reads `redis_version:7.0.15` out of `INFO server`. Valkey reports the Redis version it is compatible with
/// there.
pub(super) fn parse_version(info: &str) -> Option<(String, (u32, u32))> {
    let version = field(info, "redis_version")?;
    let mut parts = version.split('.').map_while(|part| part.parse().ok());
    Some((version.to_owned(), (parts.next()?, parts.next()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_read_from_info() {
        let info = "# Server\r\nredis_version:6.0.16\r\nredis_mode:standalone\r\n";
        assert_eq!(parse_version(info), Some(("6.0.16".into(), (6, 0))));
        assert!(parse_version(info).unwrap().1 < OLDEST_SERVER);
        assert!(parse_version("redis_version:7.0.15").unwrap().1 > OLDEST_SERVER);
        assert_eq!(parse_version("nothing"), None);
    }
}
