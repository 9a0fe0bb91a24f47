//! `redis-benchmark` with the script of offers: the upper limit of the server.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

use crate::bench::Bench;
use crate::job::NOT_SOON;
use crate::scripts;

/// Offers per second with this number in flight: the better of one connection for each, and one connection
/// with a pipeline.
pub(crate) fn offers(bench: &mut Bench, size: usize, concurrency: usize) -> f64 {
    bench.progress.set_message(format!("offer: redis-benchmark, {concurrency} in flight, {size} B"));
    let pipelined = run(bench, size, 1, concurrency);
    if concurrency == 1 { pipelined } else { pipelined.max(run(bench, size, concurrency, 1)) }
}

fn run(bench: &mut Bench, size: usize, connections: usize, pipeline: usize) -> f64 {
    bench.server.clear();
    let digest = bench.server.load(&scripts::text("OFFER"));
    // As long as an entry of redelay, with `__rand_int__` for a fresh id. No zero byte may come before that,
    // not even in an earlier command of the pipeline. So the length consists of letters, which the script
    // does not read.
    let entry = format!("\u{10}__rand_int__{}{}", "i".repeat(4 + 8), "x".repeat(size));
    let requests = bench.effort.millis * if connections * pipeline == 1 { 15 } else { 60 };
    // With a part of a pipeline at the end, it makes more requests, and may take that for an abort.
    let requests = requests.next_multiple_of(pipeline as u64);
    let output = Command::new("redis-benchmark")
        .args(["-p", &bench.server.port().to_string(), "--csv", "-r", &i32::MAX.to_string()])
        .args(["-c", &connections.to_string(), "-P", &pipeline.to_string(), "-n", &requests.to_string()])
        // Its receipt is not deleted: the random number could not be named again.
        .args(
            scripts::offer(&digest, "offer", "__rand_int__", NOT_SOON, entry.as_bytes())
                .iter()
                .map(|word| OsStr::from_bytes(word)),
        )
        .output()
        .expect("redis-benchmark, which is installed with redis-server");
    let text = String::from_utf8_lossy(&output.stdout);
    let stored = bench.server.pending("offer");
    // Two random numbers may be equal.
    assert!(stored + 10 >= requests, "redis-benchmark stored {stored} of {requests} entries: {text}");
    rate(&text).unwrap_or_else(|| {
        panic!("redis-benchmark says {text}, and {}", String::from_utf8_lossy(&output.stderr))
    })
}

/// The second field of the last line: `"EVALSHA …","12345.67","0.5",…`.
fn rate(csv: &str) -> Option<f64> {
    csv.trim().lines().last()?.split("\",\"").nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_rate_is_the_second_field() {
        let csv = "\"test\",\"rps\",\"avg_latency_ms\"\n\"EVALSHA x after\",\"12345.67\",\"0.049\"\n";
        assert_eq!(super::rate(csv), Some(12_345.67));
        assert_eq!(super::rate(""), None);
    }
}
