//! A thousand random values per codec, and three times as many in `make soak`. Each language reads what the
//! other one wrote.

use codec::{CborJackson, JsonJackson, Lz4V2, MsgPackJackson, SnappyV2, ZStd};
use fastrand::Rng;
use redelay::codec::{self, Codec, CodecError};
use redelay_fixture::Server;
use redelay_support::is_soak;
use serde_json::Value;

use crate::peer::Setup;
use crate::{random, report};
use redelay_compat_values::JavaValues;
use redelay_compat_values::vectors::{Row, rows};

/// A batch whose answers fit into a pipe, so that neither side waits for the other.
const BATCH: usize = 50;

#[test]
fn random_values_of_every_codec() {
    let server = Server::start();
    let url = server.url();
    let times = if is_soak() { 3 } else { 1 };
    let check = |name: &str, codec: &dyn Codec<Value>, value: fn(&mut Rng) -> Value, count: usize| {
        let java = Setup { codec: name, ..Setup::new(&url) };
        exchange(&server, &java, codec, value, times * count);
    };
    check("json-jackson", &JavaValues(JsonJackson), random::value, 1000);
    check("cbor-jackson", &JavaValues(CborJackson), random::value, 1000);
    check("msgpack-jackson", &JavaValues(MsgPackJackson), random::value, 1000);
    check("kryo5", &JavaValues(codec::Kryo5), random::value, 1000);
    check("lz4v2+string", &Texts(Lz4V2(codec::String)), repetitive, 300);
    check("snappyv2+string", &Texts(SnappyV2(codec::String)), repetitive, 300);
    check("zstd+string", &Texts(ZStd(codec::String)), repetitive, 300);
    check("lz4v2+kryo5", &Lz4V2(JavaValues(codec::Kryo5)), random::value, 100);
    check("snappyv2+kryo5", &SnappyV2(JavaValues(codec::Kryo5)), random::value, 300);
    check("zstd+kryo5", &ZStd(JavaValues(codec::Kryo5)), random::value, 300);
    check("lz4v2+json-jackson", &Lz4V2(JavaValues(JsonJackson)), random::value, 100);
    check("snappyv2+json", &SnappyV2(codec::Json), random::value, 300);
    check("zstd+json", &ZStd(codec::Json), random::value, 300);
}

/// The peer prints what Redisson wrote as the plain JSON that the value was made from.
#[test]
fn the_peer_prints_each_vector() {
    let codecs: [(&str, &dyn Codec<Value>); 4] = [
        ("kryo5", &JavaValues(codec::Kryo5)),
        ("json-jackson", &JavaValues(JsonJackson)),
        ("cbor-jackson", &JavaValues(CborJackson)),
        ("msgpack-jackson", &JavaValues(MsgPackJackson)),
    ];
    for (name, codec) in codecs {
        let mut count = 0;
        // The peer does not have the classes of `lab.Order`.
        for row in rows(name).iter().filter(|row| row.has_json() && !row.class.starts_with("lab.Order")) {
            let Row { name: case, class, json, payload } = row;
            let mut found = codec.decode(payload).unwrap_or_else(|error| panic!("{name} {case}: {error}"));
            if let Some(object) = found.as_object_mut() {
                object.remove("@class");
            }
            if name == "kryo5" {
                assert_eq!(found, *json, "{name} {case} {class}");
            } else {
                assert_eq!(without_nulls(found), without_nulls(json.clone()), "{name} {case} {class}");
            }
            count += 1;
        }
        report(&format!("{name}: {count} vectors"));
    }
}

/// Removes nulls from objects, as Redisson's Jackson does.
fn without_nulls(json: Value) -> Value {
    match json {
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(_, value)| !value.is_null());
            kept.map(|(name, value)| (name, without_nulls(value))).collect()
        }
        Value::Array(elements) => elements.into_iter().map(without_nulls).collect(),
        other => other,
    }
}

/// Texts of all sizes that compress well.
fn repetitive(random: &mut Rng) -> Value {
    let Value::String(text) = random::text(random) else { unreachable!("a text") };
    let part: String = text.chars().take(100).collect();
    let times = 1 << random.u8(0..10);
    // Redisson cannot compress the empty text with LZ4.
    let text = format!(".{text}{}", part.repeat(times));
    text.replace(['\r', '\n'], " ").into()
}

fn exchange(
    server: &Server,
    setup: &Setup<'_>,
    codec: &dyn Codec<Value>,
    value: fn(&mut Rng) -> Value,
    count: usize,
) {
    let name = setup.codec;
    let mut java = setup.java();
    let mut random = Rng::with_seed(count as u64);
    let mut bytes = 0;
    for _ in 0..count / BATCH {
        let values: Vec<Value> = (0..BATCH).map(|_| value(&mut random)).collect();
        // Java reads what Rust writes.
        for value in &values {
            let payload = codec.encode(value).unwrap_or_else(|error| panic!("{name}: {error}: {value}"));
            bytes += payload.len();
            server.cmd([&b"RPUSH"[..], b"q", &payload]);
        }
        let answer = java.ask(&["drain", "q", &BATCH.to_string()]);
        let read: Vec<Value> = serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{name}: {answer}"));
        for (read, value) in read.into_iter().zip(&values) {
            assert_eq!(comparable(read), comparable(value.clone()), "{name}: Java reads");
        }
        // Rust reads what Java writes.
        values.iter().for_each(|value| java.send(&["put", "q", &value.to_string()]));
        for value in &values {
            let answer = java.answer();
            assert_eq!(answer, "ok", "{name}: {value}");
        }
        let written = server.list("q");
        assert_eq!(written.len(), values.len());
        for (payload, value) in written.iter().zip(&values) {
            let read = codec.decode(payload).unwrap_or_else(|error| panic!("{name}: {error}: {value}"));
            assert_eq!(comparable(read), comparable(value.clone()), "{name}: Rust reads");
        }
        server.cmd(["DEL", "q"]);
    }
    java.quit();
    report(&format!("{name}: {count} values each way, {bytes} bytes written here"));
}

/// Removes nulls, which Jackson leaves out, and sorts sets.
fn comparable(json: Value) -> Value {
    match json {
        Value::Object(entries) => {
            let kept = entries.into_iter().filter(|(_, value)| !value.is_null());
            kept.map(|(key, value)| {
                let mut value = comparable(value);
                if let ("names", Some(names)) = (&key[..], value.as_array_mut()) {
                    names.sort_by_key(Value::to_string);
                }
                (key, value)
            })
            .collect()
        }
        Value::Array(values) => values.into_iter().map(comparable).collect(),
        // Java prints a whole BigDecimal without a fraction.
        Value::Number(number) => match number.as_f64() {
            Some(double) if number.is_f64() && double.fract() == 0.0 && double.abs() < 1e15 => {
                (double as i64).into()
            }
            _ => number.into(),
        },
        other => other,
    }
}

/// A codec of texts, which the lines contain as JSON strings.
struct Texts<C>(C);

impl<C: Codec<String>> Codec<Value> for Texts<C> {
    fn encode(&self, value: &Value) -> Result<Vec<u8>, CodecError> {
        self.0.encode(&value.as_str().unwrap_or_default().to_owned())
    }

    fn decode(&self, payload: &[u8]) -> Result<Value, CodecError> {
        self.0.decode(payload).map(Value::from)
    }
}
