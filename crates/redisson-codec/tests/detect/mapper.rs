//! The settings of an application's `ObjectMapper`.

use std::collections::BTreeSet;

use redelay_compat_values::vectors::rows;
use redisson_codec::detect::{Format, Kind};

const JACKSON: Format = Format::Plain(Kind::JsonJackson);

/// What the payloads of a file show together.
fn shown(file: &str) -> BTreeSet<&'static str> {
    rows(file).iter().flat_map(|row| JACKSON.mapper_settings(&row.payload)).collect()
}

#[test]
fn payloads_show_the_settings_of_their_mapper() {
    let files = [
        ("json-jackson", &[][..]),
        ("json-jackson-classes", &[]),
        ("json-jackson-places", &[]),
        ("shapes-json-jackson", &[]),
        ("shapes-typed-json", &[]),
        ("mapper-numbers", &["java_time"]),
        ("mapper-typed-numbers", &["java_time"]),
        ("mapper-property", &["java_time"]),
        ("mapper-text", &["java_time_as_text"]),
        ("mapper-wrapper", &["java_time", "wrapper_array"]),
        ("mapper-everything", &["java_time", "wrapper_array"]),
        ("mapper-patterns", &["java_time", "local_date", "local_date_time", "local_time", "wrapper_array"]),
        ("shapes-json-jackson-jsr310", &["java_time"]),
        ("shapes-json-jackson-iso", &["java_time_as_text"]),
        ("shapes-wrapper-array", &["java_time", "wrapper_array"]),
    ];
    let found = files.map(|(file, _)| (file, shown(file)));
    let expected = files.map(|(file, settings)| (file, settings.iter().copied().collect()));
    assert_eq!(found, expected);
}

#[test]
fn other_payloads_show_none() {
    for payload in [
        &br#"{"@class":"com.acme.Order","sizes":[7,2,29],"rest":[2024,13,1],"pair":["a.b",{}]}"#[..],
        br#"["java.util.Date",1709210096789]"#,
        b"[1,2",
        b"",
    ] {
        assert!(JACKSON.mapper_settings(payload).is_empty(), "{}", payload.escape_ascii());
    }
    let payload = br#"["com.acme.Order",{}]"#;
    assert_eq!(JACKSON.mapper_settings(payload), ["wrapper_array"]);
    assert!(Format::Plain(Kind::Json).mapper_settings(payload).is_empty());
}
