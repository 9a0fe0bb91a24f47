//! A custom codec, and how to handle a payload that does not decode.
//!
//!     cargo run --example custom_codec
//!
//! It needs a Redis or Valkey at REDIS_URL, or at redis://localhost.

use std::time::Duration;

use redelay::codec::{self, Codec, CodecError};
use redelay::{Client, ErrorKind};

#[derive(Debug, PartialEq)]
struct Reading {
    sensor: u16,
    celsius: f32,
}

/// Six bytes, big-endian, as `java.io.DataOutputStream` writes a short and a float.
struct ReadingCodec;

impl Codec<Reading> for ReadingCodec {
    fn encode(&self, reading: &Reading) -> Result<Vec<u8>, CodecError> {
        Ok([&reading.sensor.to_be_bytes()[..], &reading.celsius.to_be_bytes()].concat())
    }

    // Other programs may write any bytes: return an error with a reason, never panic.
    fn decode(&self, payload: &[u8]) -> Result<Reading, CodecError> {
        let [a, b, c, d, e, f] = payload.try_into().map_err(|_| CodecError::new("a reading has 6 bytes"))?;
        Ok(Reading { sensor: u16::from_be_bytes([a, b]), celsius: f32::from_be_bytes([c, d, e, f]) })
    }
}

#[tokio::main]
async fn main() -> redelay::Result<()> {
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "redis://localhost".into());
    let client = Client::connect(&url).await?;
    let readings = client.blocking_queue::<Reading>("example:readings", ReadingCodec);
    client
        .delayed_queue(&readings)
        .offer(&Reading { sensor: 7, celsius: 21.5 }, Duration::from_secs(1))
        .await?;

    // Another handle on the same list, with another codec. It writes a payload that is not a reading.
    let raw = client.blocking_queue::<Vec<u8>>("example:readings", codec::Bytes);
    raw.put(&b"21.5 degrees".to_vec()).await?;

    for _ in 0..2 {
        match readings.take().await {
            Ok(reading) => println!("{reading:?}"),
            // The payload is no longer in the list. The error has its bytes, and its text ends with the
            // codec's reason.
            Err(error) if error.kind() == ErrorKind::Decode => {
                println!("does not decode: {:?}: {error}", error.payload())
            }
            Err(error) => return Err(error),
        }
    }
    client.shutdown().await;
    Ok(())
}
