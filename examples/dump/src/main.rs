//! Prints a payload that Redisson wrote, from a queue or from any other key. It needs `redisson-codec` and
//! nothing else.
//!
//! ```text
//! dump [<codec>] <payload as hex>
//! dump [<codec>]                   the payload, as it is, on standard input
//! ```
//!
//! The codec is `kryo5`, `json-jackson`, `lz4+kryo5` and so on: `detect::Kind` lists the names. Without it,
//! the program says which codec may have written the payload.
//!
//! ```text
//! cargo run -p redisson-dump 01006a6176612e7574696c2e41727261794c6973f4840300826162e28263
//! redis-cli -D "" lindex orders 0 | cargo run -p redisson-dump kryo5
//! ```

use std::error::Error;
use std::io::Read;
use std::process::ExitCode;

use redisson_codec::CodecError;
use redisson_codec::detect::{Detector, Format};

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
    let (format, payload) = match &arguments[..] {
        [] => (None, input()?),
        [codec] if codec.parse::<Format>().is_ok() => (Some(codec.parse()?), input()?),
        [hex] => (None, bytes(hex)?),
        [codec, hex] => (Some(codec.parse()?), bytes(hex)?),
        _ => return Err("usage: dump [<codec>] [<payload as hex>]".into()),
    };
    let mut detector = Detector::new();
    detector.add(&payload);
    match (format, &detector.verdicts()[..]) {
        (Some(format), _) => Ok(printed(format, &payload)?),
        (None, [verdict, ..]) => Ok(format!("{verdict}: {}", printed(verdict.format, &payload)?)),
        (None, []) => Err("no codec reads it".into()),
    }
}

fn input() -> Result<Vec<u8>, Box<dyn Error>> {
    let mut payload = Vec::new();
    std::io::stdin().read_to_end(&mut payload)?;
    Ok(payload)
}

fn printed(format: Format, payload: &[u8]) -> Result<String, CodecError> {
    match format.describe(payload) {
        Some(described) => Ok(described.to_string()),
        None => format.to_json(payload),
    }
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
        let printed = |arguments: &[&str]| {
            run(arguments.iter().map(ToString::to_string).collect()).map_err(|error| error.to_string())
        };
        let list = "01006a6176612e7574696c2e41727261794c6973f4840300826162e28263";
        assert_eq!(printed(&["kryo5", list]).unwrap(), r#"["a","bb","c"]"#);
        assert_eq!(printed(&[list]).unwrap(), r#"kryo5: ["a","bb","c"]"#);
        assert_eq!(printed(&["json", "7b2261223a317d"]).unwrap(), r#"{"a":1}"#);
        assert_eq!(printed(&["7b2261223a317d"]).unwrap(), r#"json (or json-jackson): {"a":1}"#);
        assert_eq!(printed(&["snappy+string", "051068656c6c6f"]).unwrap(), "\"hello\"");
        let own = "0100636f6d2e61636d652e436f75706fee57494e54455232b6";
        assert_eq!(printed(&[own]).unwrap(), r#"kryo5: com.acme.Coupon, 25 bytes: "WINTER26""#);
        assert!(printed(&["gzip+json", "00"]).unwrap_err().starts_with("expected kryo5, "));
        assert!(printed(&["json", "00"]).is_err());
        assert!(printed(&["012"]).unwrap_err().contains("odd number"));
    }
}
