//! Which codec wrote a payload: the payloads are Redisson's, damaged ones, and random bytes.

mod hostile;
mod mapper;
mod printed;
mod samples;
mod vectors;

use redelay_compat_values::vectors::{Row, rows};
use redisson_codec::detect::{Candidate, Format};

/// The files of vectors, and what wrote the payloads in them. `wrapper-array`, `jsr310` and `iso` are object
/// mappers of an application in `JsonJacksonCodec`.
const FILES: [(&str, &str); 55] = [
    ("bytes", "bytes"),
    ("cbor-jackson", "cbor-jackson"),
    ("cbor-jackson-classes", "cbor-jackson"),
    ("cbor-jackson-places", "cbor-jackson"),
    ("double", "double"),
    ("int", "int"),
    ("java-serialization", "java-serialization"),
    ("json-jackson", "json-jackson"),
    ("json-jackson-classes", "json-jackson"),
    ("json-jackson-places", "json-jackson"),
    ("kryo5", "kryo5"),
    ("kryo5-classes", "kryo5"),
    ("kryo5-kinds", "kryo5"),
    ("kryo5-places", "kryo5"),
    ("kryo5-serialized", "kryo5"),
    ("long", "long"),
    ("lz4v2-kryo5", "lz4+kryo5"),
    ("lz4v2-string", "lz4+string"),
    ("mapper-abstract", "json-jackson"),
    ("mapper-abstract-property", "json-jackson"),
    ("mapper-everything", "json-jackson"),
    ("mapper-everything-property", "json-jackson"),
    ("mapper-numbers", "json-jackson"),
    ("mapper-patterns", "json-jackson"),
    ("mapper-property", "json-jackson"),
    ("mapper-text", "json-jackson"),
    ("mapper-typed-numbers", "json"),
    ("mapper-typed-text", "json"),
    ("mapper-wrapper", "json-jackson"),
    ("msgpack-jackson", "msgpack-jackson"),
    ("msgpack-jackson-classes", "msgpack-jackson"),
    ("msgpack-jackson-places", "msgpack-jackson"),
    ("msgpack-untyped", "msgpack"),
    ("shapes-cbor-jackson", "cbor-jackson"),
    ("shapes-json-jackson", "json-jackson"),
    ("shapes-json-jackson-iso", "json-jackson"),
    ("shapes-json-jackson-jsr310", "json-jackson"),
    ("shapes-kryo5", "kryo5"),
    ("shapes-marshalling", "jboss-marshalling"),
    ("shapes-msgpack-jackson", "msgpack-jackson"),
    ("shapes-serialization", "java-serialization"),
    ("shapes-smile", "smile"),
    ("shapes-typed-json", "json"),
    ("shapes-wrapper-array", "json-jackson"),
    ("snappyv1-kryo5", "snappy-v1+kryo5"),
    ("snappyv1-string", "snappy-v1+string"),
    ("snappyv2-kryo5", "snappy+kryo5"),
    ("snappyv2-string", "snappy+string"),
    ("string", "string"),
    ("typed-json-amounts", "json"),
    ("typed-json-order", "json"),
    ("typed-json-small", "json"),
    ("typed-json-string", "json"),
    ("zstd-kryo5", "zstd+kryo5"),
    ("zstd-string", "zstd+string"),
];

/// Every vector, and the format that it is of.
fn all_rows() -> Vec<(Format, Row)> {
    let files = FILES.into_iter().flat_map(|(file, format)| {
        let format: Format = format.parse().expect("a format");
        rows(file).into_iter().map(move |row| (format, row))
    });
    files.collect()
}

/// The formats that are as likely as the first.
fn likeliest(candidates: &[Candidate]) -> Vec<Format> {
    let best = candidates.iter().take_while(|candidate| candidate.reason == candidates[0].reason);
    best.map(|candidate| candidate.format).collect()
}
