//! The gauges of queues in Prometheus' text format. Pure.
//!
//! What is not known has no value: zero would be an answer.

use std::fmt;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, prometheus_text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use redelay::inspector::Overview;

use crate::state::is_unanswered;

/// What a look at the queues has found.
#[derive(Clone, Debug)]
pub(super) struct Look {
    pub(super) is_up: bool,
    pub(super) took: Duration,
    pub(super) left_out: usize,
    pub(super) queues: Vec<OfQueue>,
}

#[derive(Clone, Debug)]
pub(super) struct OfQueue {
    /// The name, escaped if it is not UTF-8. Then its bytes tell it apart.
    pub(super) label: String,
    pub(super) hex: Option<String>,
    pub(super) overview: Overview,
    /// Entries that are due within a minute, and not yet.
    pub(super) soon: Option<u64>,
}

type Read = fn(&OfQueue) -> Option<f64>;

/// Name, help, another label, and the value.
type Gauge = (&'static str, &'static str, Option<(&'static str, &'static str)>, Read);

const OF_QUEUES: [Gauge; 17] = [
    ("redelay_queue_pending", "Entries with a due time, including overdue ones", None, |queue| {
        count(queue.overview.pending)
    }),
    ("redelay_queue_max_pending", "How many entries may be pending, if there is a limit", None, |queue| {
        count(queue.overview.max_pending)
    }),
    ("redelay_queue_list_len", "Entries in the ordered list: as many as are pending", None, |queue| {
        count(queue.overview.list_len)
    }),
    ("redelay_queue_overdue", "Entries that are due, and not transferred yet", None, |queue| {
        count(queue.overview.overdue)
    }),
    ("redelay_queue_overdue_for_seconds", "How long the first of them has been due, or 0", None, |queue| {
        let is_known = !is_unanswered(&queue.overview) && !is_unknown(&queue.overview, "next_due_in");
        is_known.then(|| queue.overview.overdue_for.unwrap_or_default().as_secs_f64())
    }),
    (
        "redelay_queue_next_due_seconds",
        "Time until the next entry is due, if one is pending",
        None,
        |queue| Some(queue.overview.next_due_in?.as_secs_f64()),
    ),
    (
        "redelay_queue_due_within",
        "Entries that are due within this time, without overdue ones",
        Some(("seconds", "60")),
        |queue| count(queue.soon),
    ),
    ("redelay_queue_ready", "Payloads that takers can take", None, |queue| count(queue.overview.ready)),
    ("redelay_queue_in_flight", "Messages that receivers have", None, |queue| {
        count(queue.overview.in_flight)
    }),
    ("redelay_queue_retries", "Messages that wait for a retry", None, |queue| count(queue.overview.waiting)),
    ("redelay_queue_dead_letters", "Dead letters", None, |queue| count(queue.overview.dead_letters)),
    ("redelay_queue_quarantined", "Entries that cannot be read", None, |queue| {
        count(queue.overview.quarantined)
    }),
    ("redelay_queue_unconfirmed_pops", "Pops of which the server keeps a copy", None, |queue| {
        count(queue.overview.unconfirmed_pops)
    }),
    ("redelay_queue_schedules", "Schedules", None, |queue| count(queue.overview.schedules)),
    ("redelay_queue_paused", "1 if receivers are held back", None, |queue| {
        queue.overview.is_paused.map(|paused| f64::from(u8::from(paused)))
    }),
    (
        "redelay_queue_transferring_processes",
        "Processes that transfer, also those of Redisson",
        None,
        |queue| count(queue.overview.transferring_processes),
    ),
    ("redelay_queue_receivers", "Receivers of the last days", None, |queue| count(queue.overview.receivers)),
];

fn count(count: Option<u64>) -> Option<f64> {
    count.map(|count| count as f64)
}

fn is_unknown(queue: &Overview, what: &str) -> bool {
    queue.unknown.iter().any(|unknown| unknown.what == what)
}

impl Look {
    pub(super) fn text(self) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self));
        let mut text = String::new();
        // A `String` takes everything.
        let _ = prometheus_text::encode(&mut text, &registry);
        text
    }
}

impl Collector for Look {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let of_itself = [
            (
                "redelay_up",
                "1 if the server has answered, and has shown its queues; in a cluster, if all have answered",
                f64::from(u8::from(self.is_up)),
            ),
            (
                "redelay_exporter_scrape_duration_seconds",
                "How long the last look at the queues has taken",
                self.took.as_secs_f64(),
            ),
            ("redelay_exporter_queues_left_out", "Queues beyond the most", self.left_out as f64),
        ];
        for (name, help, value) in of_itself {
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(value).encode(metric)?;
        }
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        let mut build =
            encoder.encode_descriptor("redelay_build_info", "The exporter", None, MetricType::Gauge)?;
        ConstGauge::new(1.0).encode(build.encode_family(&version)?)?;
        for (name, help, label, read) in OF_QUEUES {
            let values: Vec<_> = self.queues.iter().filter_map(|queue| Some((queue, read(queue)?))).collect();
            if values.is_empty() {
                continue;
            }
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (queue, value) in values {
                let mut labels = vec![("queue", &*queue.label)];
                labels.extend(queue.hex.as_deref().map(|hex| ("queue_hex", hex)));
                labels.extend(label);
                ConstGauge::new(value).encode(metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(label: &str, hex: Option<&str>, change: impl FnOnce(&mut Overview)) -> String {
        let mut overview = Overview::default();
        change(&mut overview);
        let queue = OfQueue { label: label.to_owned(), hex: hex.map(str::to_owned), overview, soon: Some(2) };
        let took = Duration::from_millis(20);
        Look { is_up: true, took, left_out: 3, queues: vec![queue] }.text()
    }

    #[test]
    fn what_is_not_known_has_no_value() {
        let text = look("q", None, |queue| {
            queue.pending = Some(7);
            queue.is_paused = Some(true);
        });
        for line in [
            "redelay_up 1.0",
            "redelay_exporter_queues_left_out 3.0",
            "redelay_exporter_scrape_duration_seconds 0.02",
            "# TYPE redelay_queue_pending gauge",
            "redelay_queue_pending{queue=\"q\"} 7.0",
            "redelay_queue_paused{queue=\"q\"} 1.0",
            "redelay_queue_overdue_for_seconds{queue=\"q\"} 0.0",
            "redelay_queue_due_within{queue=\"q\",seconds=\"60\"} 2.0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        for name in ["ready", "dead_letters", "next_due_seconds", "transferring_processes"] {
            assert!(!text.contains(&format!("redelay_queue_{name}")), "{text}");
        }
        assert!(!text.contains("counter") && !text.contains("_total"), "{text}");
    }

    #[test]
    fn labels_are_escaped() {
        let text = look("a\"b\\c\nd", None, |queue| queue.ready = Some(1));
        assert!(text.contains(r#"redelay_queue_ready{queue="a\"b\\c\nd"} 1.0"#), "{text}");
        let text = look("\\xff", Some("ff"), |queue| queue.ready = Some(1));
        assert!(text.contains(r#"redelay_queue_ready{queue="\\xff",queue_hex="ff"} 1.0"#), "{text}");
    }

    #[test]
    fn a_server_that_is_away_has_no_queues() {
        let text = Look { is_up: false, took: Duration::ZERO, left_out: 0, queues: Vec::new() }.text();
        assert!(text.contains("redelay_up 0.0") && !text.contains("redelay_queue_"), "{text}");
    }
}
