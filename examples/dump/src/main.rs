//! Prints a payload that Redisson wrote, from a queue or from any other key. It needs `redisson-codec` and nothing else.
//!
//! ```text
//! dump <codec> <payload as hex>
//! dump <codec>                   the payload, as it is, on standard input
//! ```
//!
//! The codec is `kryo5`, `json-jackson`, `cbor-jackson`, `msgpack-jackson`, `json` or `msgpack`. In front of it can be a
//! compression: `lz4:kryo5`, `snappy:json-jackson`, `zstd:kryo5`.
//!
//! ```text
//! cargo run -p redisson-dump kryo5 01006a6176612e7574696c2e41727261794c6973f4840300826162e28263
//! redis-cli -D "" lindex orders 0 | cargo run -p redisson-dump kryo5
//! ```

use std::error::Error;
use std::io::Read;
use std::process::ExitCode;

use redisson_codec::java::Value;
use redisson_codec::{
    Bytes, CborJackson, Codec, Json, JsonJackson, Kryo5, Lz4V2, MsgPack, MsgPackJackson, SnappyV2, ZStd,
};

fn main() -> ExitCode {
    match run(std::env::args().skip(1).collect()) {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Vec<String>) -> Result<String, Box<dyn Error>> {
    let (codec, payload) = match &arguments[..] {
        [codec] => {
            let mut payload = Vec::new();
            std::io::stdin().read_to_end(&mut payload)?;
            (codec, payload)
        }
        [codec, hex] => (codec, bytes(hex)?),
        _ => return Err("usage: dump <codec> [<payload as hex>]".into()),
    };
    Ok(decode(codec, &payload)?.to_string())
}

fn decode(codec: &str, payload: &[u8]) -> Result<Value, Box<dyn Error>> {
    // A compression around `Bytes` gives the payload of the codec inside.
    let (codec, payload): (&str, Vec<u8>) = match codec.split_once(':') {
        None => (codec, payload.to_vec()),
        Some(("lz4", inside)) => (inside, Lz4V2(Bytes).decode(payload)?),
        Some(("snappy", inside)) => (inside, SnappyV2(Bytes).decode(payload)?),
        Some(("zstd", inside)) => (inside, ZStd(Bytes).decode(payload)?),
        Some((other, _)) => return Err(format!("`{other}` is not lz4, snappy or zstd").into()),
    };
    Ok(match codec {
        "kryo5" => Kryo5.decode(&payload)?,
        "json-jackson" => JsonJackson.decode(&payload)?,
        "cbor-jackson" => CborJackson.decode(&payload)?,
        "msgpack-jackson" => MsgPackJackson.decode(&payload)?,
        "json" => Json.decode(&payload)?,
        "msgpack" => MsgPack.decode(&payload)?,
        other => return Err(format!("there is no codec `{other}`").into()),
    })
}

fn bytes(hex: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let digits = hex.as_bytes();
    if digits.len() % 2 == 1 {
        return Err("the payload has an odd number of hexadecimal digits".into());
    }
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    digits.chunks(2).map(|pair| byte(pair).ok_or_else(|| "the payload is not hexadecimal".into())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_printed() {
        let printed =
            |codec: &str, hex: &str| run(vec![codec.into(), hex.into()]).map_err(|error| error.to_string());
        let list = "01006a6176612e7574696c2e41727261794c6973f4840300826162e28263";
        assert_eq!(printed("kryo5", list).unwrap(), r#"["a", "bb", "c"]"#);
        assert_eq!(printed("json", "7b2261223a317d").unwrap(), r#"{"a": 1}"#);
        assert!(printed("gzip:json", "00").unwrap_err().contains("`gzip`"));
        assert!(printed("kryo", list).unwrap_err().contains("there is no codec `kryo`"));
        assert!(printed("kryo5", "012").unwrap_err().contains("odd number"));
    }
}
