//! The compatibility peer on redelay: `redelay-peer <redis-url> <codec>`. It reads one command per line on
//! stdin and writes one answer per line on stdout.
//!
//! The same program on Redisson is in `compat/java`. The tests run both. Values are JSON texts on one line.
//! Environment variables: `REDELAY_MAPPER` is a prefix for every name; with `REDELAY_FORMAT=legacy`, entries
//! are written as by Redisson up to 3.21.0.

mod messages;

use std::collections::HashMap;
use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures::future::try_join_all;
use messages::Messages;
use redelay::blocking_queue::RateLimit;
use redelay::codec::{self, Codec, CodecError};
use redelay::delayed_queue::{Cancelled, EntryFormat, JobState, Offered};
use redelay::{BlockingQueue, Client, DelayedQueue};
use redelay_compat_values::JavaValues;
use serde::de::Error as _;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};

/// For how long a command goes on whose test is gone.
const ORPHANED: Duration = Duration::from_secs(180);

#[tokio::main]
async fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [url, codec] = &args[..] else {
        eprintln!("usage: redelay-peer <redis-url> <codec>");
        return ExitCode::from(2);
    };
    let Some(codec) = codec_named(codec) else {
        eprintln!(
            "unknown codec `{codec}`: one of string bytes long int double json msgpack kryo5 json-jackson msgpack-jackson \
             cbor-jackson, or one of lz4v2 snappyv2 zstd, a + and one of these"
        );
        return ExitCode::from(2);
    };
    match serve(url, codec).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(url: &str, codec: Chosen) -> Result<(), Box<dyn Error>> {
    let mut peer = Peer::connect(url, codec).await?;
    answer("ready");
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut next = lines.next_line().await?;
    while let Some(line) = next.take() {
        let fields: Vec<&str> = line.split('\t').collect();
        if fields == ["quit"] {
            break;
        }
        let following = async {
            next = lines.next_line().await?;
            if next.is_none() {
                // The test is gone, and a command may block indefinitely.
                tokio::time::sleep(ORPHANED).await;
                return Err("the test is gone".into());
            }
            std::future::pending::<Result<Infallible, Box<dyn Error>>>().await
        };
        let ran = tokio::select! {
            ran = peer.run(&fields) => ran,
            Err(error) = following => return Err(error),
        };
        match ran {
            Ok(text) => answer(&text),
            Err(error) => answer(&format!("!{}: {error}", kind(&*error)).replace(['\r', '\n'], " ")),
        }
        if next.is_none() {
            next = lines.next_line().await?;
        }
    }
    peer.shutdown().await;
    Ok(())
}

fn answer(line: &str) {
    let mut out = std::io::stdout().lock();
    // This fails only when the test is over and does not read any more.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

fn kind(error: &(dyn Error + 'static)) -> String {
    if let Some(Refusal { kind, .. }) = error.downcast_ref() {
        return (*kind).into();
    }
    match error.downcast_ref::<redelay::Error>() {
        Some(error) => format!("{:?}", error.kind()).to_lowercase(),
        None => "argument".into(),
    }
}

/// The line that answers a command, or why there is none.
type Answer = Result<String, Box<dyn Error>>;

/// A failure of the peer itself, with the kind that its answer begins with.
#[derive(Debug)]
struct Refusal {
    kind: &'static str,
    why: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl Error for Refusal {}

/// This peer transfers a queue only after `open`. All other queues belong to a client that does not transfer.
struct Peer {
    still: Client,
    moving: Client,
    open: HashMap<String, DelayedQueue<Value>>,
    messages: Messages,
    codec: Chosen,
    format: EntryFormat,
}

impl Peer {
    async fn connect(url: &str, codec: Chosen) -> Result<Self, Box<dyn Error>> {
        let prefix = std::env::var("REDELAY_MAPPER").unwrap_or_default();
        let builder = Client::builder().url(url).name_prefix(prefix);
        let format = match std::env::var("REDELAY_FORMAT").as_deref() {
            Ok("legacy") => EntryFormat::Legacy,
            _ => EntryFormat::Current,
        };
        let still = builder.clone().transfer(false).connect().await?;
        Ok(Self {
            messages: Messages::new(still.clone(), codec.clone()),
            still,
            moving: builder.connect().await?,
            open: HashMap::new(),
            codec,
            format,
        })
    }

    async fn shutdown(mut self) {
        self.messages.release().await;
        self.still.shutdown().await;
        self.moving.shutdown().await;
    }

    fn blocking(&self, name: &str) -> BlockingQueue<Value> {
        self.still.blocking_queue(name, self.codec.clone())
    }

    fn delayed(&self, name: &str) -> DelayedQueue<Value> {
        self.still.delayed_queue(&self.blocking(name)).with_entry_format(self.format)
    }

    async fn run(&mut self, fields: &[&str]) -> Answer {
        let done = Ok("ok".to_owned());
        match *fields {
            ["open", queue] => {
                let target = self.moving.blocking_queue(queue, self.codec.clone());
                self.open.entry(queue.to_owned()).or_insert_with(|| self.moving.delayed_queue(&target));
                done
            }
            ["destroy", queue] => {
                if let Some(delayed) = self.open.remove(queue) {
                    delayed.destroy().await;
                }
                done
            }
            ["offer", queue, value, delay] => {
                self.delayed(queue).offer(&json(value)?, millis(delay)?).await?;
                done
            }
            ["offerall", queue, count, delay, prefix] => {
                let (delayed, delay) = (self.delayed(queue), millis(delay)?);
                let values: Vec<Value> =
                    (0..count.parse()?).map(|n: usize| format!("{prefix}{n}").into()).collect();
                try_join_all(values.iter().map(|value| delayed.offer(value, delay))).await?;
                done
            }
            ["size", queue] => Ok(self.delayed(queue).len().await?.to_string()),
            ["readall", queue] => Ok(Value::Array(self.delayed(queue).read_all().await?).to_string()),
            ["peek", queue] => text(self.delayed(queue).peek().await?),
            ["dpoll", queue] => text(self.delayed(queue).poll().await?),
            ["clear", queue] => {
                self.delayed(queue).clear().await?;
                done
            }
            ["contains", queue, value] => Ok(self.delayed(queue).contains(&json(value)?).await?.to_string()),
            ["remove", queue, value] => Ok(self.delayed(queue).remove(&json(value)?).await?.to_string()),
            ["put", queue, value] => {
                self.blocking(queue).put(&json(value)?).await?;
                done
            }
            ["poll", queue, timeout] => text(self.blocking(queue).poll_timeout(millis(timeout)?).await?),
            ["take", queue] => text(Some(self.blocking(queue).take().await?)),
            ["len", queue] => Ok(self.blocking(queue).len().await?.to_string()),
            ["drain", queue, count] => {
                let (blocking, mut taken) = (self.blocking(queue), Vec::new());
                for _ in 0..count.parse::<usize>()? {
                    taken.push(blocking.take().await?);
                }
                Ok(Value::Array(taken).to_string())
            }
            [held @ ("job" | "jobheld"), queue, id, value, delay, policy] => {
                let value = json(value)?;
                let job = self.delayed(queue).offer(&value, millis(delay)?).id(id);
                let job = if held == "jobheld" { job.until_done() } else { job };
                let job = match policy.split_once(':') {
                    None if policy == "keep" => job.keep(),
                    None if policy == "replace" => job.replace(),
                    None if policy == "earliest" => job.keep_earliest(),
                    Some(("debounce", most)) => job.debounce(millis(most)?),
                    Some(("throttle", window)) => job.throttle(millis(window)?),
                    _ => return Err(format!("no policy `{policy}`").into()),
                };
                let offered = match job.await? {
                    Offered::Stored(_) => "stored",
                    Offered::Kept(_) => "kept",
                    Offered::Replaced(_) => "replaced",
                    Offered::Running => "running",
                    Offered::Throttled(_) => "throttled",
                    other => return Err(format!("{other:?}").into()),
                };
                Ok(offered.to_owned())
            }
            ["jobget", queue, id] => {
                let job = self.delayed(queue).job(id).get().await?;
                Ok(job
                    .map_or(Value::Null, |job| {
                        // The server is on this machine, or near enough.
                        let left = job.due.duration_since(SystemTime::now()).unwrap_or_default();
                        serde_json::json!({"value": job.value, "in": left.as_millis() as u64})
                    })
                    .to_string())
            }
            ["jobcancel", queue, id] => {
                let cancelled = match self.delayed(queue).job(id).cancel().await? {
                    Cancelled::Removed => "true",
                    Cancelled::Requested => "\"requested\"",
                    _ => "false",
                };
                Ok(cancelled.to_owned())
            }
            ["jobstate", queue, id] => {
                let state = match self.delayed(queue).job(id).state().await? {
                    None => "none",
                    Some(JobState::Pending { .. }) => "pending",
                    Some(JobState::Ready) => "ready",
                    Some(JobState::InFlight { .. }) => "inflight",
                    Some(JobState::Waiting { .. }) => "waiting",
                    Some(JobState::Dead { .. }) => "dead",
                    Some(other) => return Err(format!("{other:?}").into()),
                };
                Ok(format!("\"{state}\""))
            }
            ["jobmove", queue, id, delay] => {
                Ok(self.delayed(queue).job(id).reschedule(millis(delay)?).await?.to_string())
            }
            ["pause", queue] => {
                self.blocking(queue).pause().await?;
                done
            }
            ["resume", queue] => {
                self.blocking(queue).resume().await?;
                done
            }
            ["limit", queue, messages, burst] => {
                let limit = RateLimit::new(messages.parse()?, Duration::from_secs(1)).burst(burst.parse()?);
                self.blocking(queue).set_rate_limit(Some(limit)).await?;
                done
            }
            ["maxinflight", queue, most] => {
                self.blocking(queue).set_max_in_flight(Some(most.parse()?)).await?;
                done
            }
            ["schedule", queue, name, spec, value] => {
                let schedule = self.delayed(queue).schedule(name);
                let schedule = match spec.strip_prefix("every:") {
                    Some(interval) => schedule.every(millis(interval)?),
                    None => schedule.cron(spec),
                };
                schedule.upsert(&json(value)?).await?;
                done
            }
            ["unschedule", queue, name] => {
                self.delayed(queue).schedule(name).remove().await?;
                done
            }
            _ => self.messages.run(fields).await,
        }
    }
}

fn json(text: &str) -> Result<Value, Box<dyn Error>> {
    // Only this class has numbers that a double cannot hold.
    if text.contains("com.acme.Zoo$Ledger") {
        return Ok(serde_json::from_str(&redelay_compat_values::zoo::long_numbers_as_texts(text))?);
    }
    Ok(serde_json::from_str(text)?)
}

fn text(value: Option<Value>) -> Answer {
    Ok(value.unwrap_or(Value::Null).to_string())
}

fn millis(text: &str) -> Result<Duration, Box<dyn Error>> {
    let millis: i64 = text.parse()?;
    let millis = u64::try_from(millis).map_err(|_| format!("{millis} ms is negative"))?;
    Ok(Duration::from_millis(millis))
}

/// A codec that is chosen at run time. Its values are JSON on the lines of the protocol.
type Chosen = Arc<dyn Codec<Value>>;

fn codec_named(name: &str) -> Option<Chosen> {
    if let Some((around, inside)) = name.split_once('+') {
        return compressed(around, codec_named(inside)?);
    }
    let codec: Chosen = match name {
        "string" => {
            Arc::new(Through { codec: codec::String, read: serde_json::from_value, write: Value::from })
        }
        "bytes" => Arc::new(Through { codec: codec::Bytes, read: from_hex, write: to_hex }),
        "long" => Arc::new(Through { codec: codec::Long, read: serde_json::from_value, write: Value::from }),
        "int" => Arc::new(Through { codec: codec::Int, read: serde_json::from_value, write: Value::from }),
        "double" => {
            Arc::new(Through { codec: codec::Double, read: serde_json::from_value, write: Value::from })
        }
        "json" => Arc::new(codec::Json),
        "msgpack" => Arc::new(codec::MsgPack),
        "kryo5" => Arc::new(JavaValues(codec::Kryo5)),
        "json-jackson" => Arc::new(JavaValues(codec::JsonJackson)),
        "cbor-jackson" => Arc::new(JavaValues(codec::CborJackson)),
        "msgpack-jackson" => Arc::new(JavaValues(codec::MsgPackJackson)),
        _ => return None,
    };
    Some(codec)
}

fn compressed(around: &str, inside: Chosen) -> Option<Chosen> {
    let codec: Chosen = match around {
        "lz4v2" => Arc::new(codec::Lz4V2(inside)),
        "snappyv2" => Arc::new(codec::SnappyV2(inside)),
        "zstd" => Arc::new(codec::ZStd(inside)),
        _ => return None,
    };
    Some(codec)
}

/// A codec of one type, with the conversion of that type from and to JSON.
struct Through<C, T> {
    codec: C,
    read: fn(Value) -> serde_json::Result<T>,
    write: fn(T) -> Value,
}

impl<C: Codec<T>, T: 'static> Codec<Value> for Through<C, T> {
    fn encode(&self, value: &Value) -> Result<Vec<u8>, CodecError> {
        self.codec.encode(&(self.read)(value.clone()).map_err(CodecError::new)?)
    }

    fn decode(&self, payload: &[u8]) -> Result<Value, CodecError> {
        self.codec.decode(payload).map(self.write)
    }
}

fn from_hex(value: Value) -> serde_json::Result<Vec<u8>> {
    let text: String = serde_json::from_value(value)?;
    let digits = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> =
        text.as_bytes().chunks(2).map(|pair| digits(pair).filter(|_| pair.len() == 2)).collect();
    bytes.ok_or_else(|| serde_json::Error::custom("expected a string of hex digits"))
}

fn to_hex(bytes: Vec<u8>) -> Value {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
}
