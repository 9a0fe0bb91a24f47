//! The metrics of OpenTelemetry, with the names of its conventions for messaging, which are still in
//! development. What these have no name for has one of redelay.

use opentelemetry::metrics::{Counter, Gauge, Histogram};
use opentelemetry::{KeyValue, global};
use redelay::stats::{Histogram as Measured, QueueStats};

use crate::differences::{outcomes, seconds, times};

pub(crate) struct Meter {
    consumed: Counter<u64>,
    process: Histogram<f64>,
    lateness: Histogram<f64>,
    pending: Gauge<u64>,
    ready: Gauge<u64>,
    in_flight: Gauge<u64>,
    retries: Gauge<u64>,
    dead_letters: Gauge<u64>,
    overdue_for: Gauge<f64>,
}

impl Meter {
    /// Of the provider that is the global one now.
    pub(crate) fn new() -> Self {
        let meter = global::meter("redelay");
        let bounds = || Measured::BOUNDS.iter().map(std::time::Duration::as_secs_f64).collect();
        let gauge = |name: &'static str| meter.u64_gauge(name).with_unit("{message}").build();
        Self {
            consumed: meter.u64_counter("messaging.client.consumed.messages").with_unit("{message}").build(),
            process: meter
                .f64_histogram("messaging.process.duration")
                .with_unit("s")
                .with_boundaries(bounds())
                .build(),
            lateness: meter
                .f64_histogram("redelay.queue.lateness")
                .with_unit("s")
                .with_boundaries(bounds())
                .build(),
            pending: gauge("redelay.queue.pending"),
            ready: gauge("redelay.queue.ready"),
            in_flight: gauge("redelay.queue.in_flight"),
            retries: gauge("redelay.queue.retries"),
            dead_letters: gauge("redelay.queue.dead_letters"),
            overdue_for: meter.f64_gauge("redelay.queue.overdue_for").with_unit("s").build(),
        }
    }

    pub(crate) fn queue(&self, name: &str, last: &QueueStats, stats: &QueueStats) {
        let receiving = &stats.receiving;
        let queue = [
            KeyValue::new("messaging.system", "redis"),
            KeyValue::new("messaging.destination.name", name.to_owned()),
        ];
        let with = |more: &[(&'static str, &'static str)]| -> Vec<KeyValue> {
            let more = more.iter().map(|(key, value)| KeyValue::new(*key, *value));
            queue.iter().cloned().chain(more).collect()
        };
        let received = receiving.received.saturating_sub(last.receiving.received);
        self.consumed.add(received, &with(&[("messaging.operation.name", "receive")]));
        let (before, after) = (outcomes(&last.receiving.handling), outcomes(&receiving.handling));
        for ((outcome, after), (_, before)) in after.into_iter().zip(before) {
            let mut more =
                vec![("messaging.operation.name", "process"), ("messaging.operation.type", "process")];
            if matches!(outcome, "failed" | "rejected") {
                more.push(("error.type", outcome));
            }
            more.push(("redelay.outcome", outcome));
            record(&self.process, &times(before, after), &with(&more));
        }
        record(&self.lateness, &times(&last.lateness, &stats.lateness), &queue);
        for (gauge, value) in [
            (&self.pending, stats.pending),
            (&self.ready, stats.ready),
            (&self.in_flight, receiving.in_flight),
            (&self.retries, receiving.waiting),
            (&self.dead_letters, receiving.dead_letters),
        ] {
            gauge.record(value, &queue);
        }
        self.overdue_for.record(seconds(stats.overdue_for), &queue);
    }
}

fn record(histogram: &Histogram<f64>, times: &[(f64, u64)], attributes: &[KeyValue]) {
    for (time, count) in times {
        (0..*count).for_each(|_| histogram.record(*time, attributes));
    }
}
