//! The metrics of the crate `metrics`.

use metrics::{counter, gauge, histogram};
use redelay::stats::{ClientStats, QueueStats};

use crate::differences::{outcomes, seconds, times};

type Count = (&'static str, u64);

fn flag(flag: bool) -> f64 {
    f64::from(u8::from(flag))
}

/// What a client has counted.
pub(crate) fn client(stats: &ClientStats) {
    let counters: [Count; 9] = [
        ("redelay_client_reconnects_total", stats.reconnects),
        ("redelay_client_failovers_total", stats.failovers),
        ("redelay_client_redirects_total", stats.redirects),
        ("redelay_client_transfers_total", stats.transfers),
        ("redelay_client_failed_transfers_total", stats.failed_transfers),
        ("redelay_client_stalled_transfers_total", stats.stalled_transfers),
        ("redelay_client_transferred_total", stats.transferred),
        ("redelay_client_empty_transfers_total", stats.empty_transfers),
        ("redelay_client_quarantined_total", stats.quarantined),
    ];
    for (name, value) in counters {
        counter!(name).absolute(value);
    }
    gauge!("redelay_client_connected").set(flag(stats.connected));
    gauge!("redelay_client_transferring_queues").set(stats.transferring_queues as f64);
    gauge!("redelay_client_takers").set(stats.takers as f64);
}

/// What is in a queue, and what this client has done with it since the last report.
pub(crate) fn queue(name: &str, last: &QueueStats, stats: &QueueStats) {
    let receiving = &stats.receiving;
    for (metric, value) in counters(stats) {
        counter!(metric, "queue" => name.to_owned()).absolute(value);
    }
    let gauges = [
        ("redelay_queue_pending", stats.pending as f64),
        ("redelay_queue_list_len", stats.list_len as f64),
        ("redelay_queue_ready", stats.ready as f64),
        ("redelay_queue_overdue", stats.overdue as f64),
        ("redelay_queue_overdue_for_seconds", seconds(stats.overdue_for)),
        ("redelay_queue_quarantined", stats.quarantined as f64),
        ("redelay_queue_unconfirmed_pops", stats.unconfirmed_pops as f64),
        ("redelay_queue_paused", flag(stats.is_paused)),
        ("redelay_queue_in_flight", receiving.in_flight as f64),
        ("redelay_queue_retries", receiving.waiting as f64),
        ("redelay_queue_retries_overdue_for_seconds", seconds(receiving.overdue_for)),
        ("redelay_queue_dead_letters", receiving.dead_letters as f64),
        ("redelay_queue_transferring", flag(stats.transferring)),
        ("redelay_queue_takers", stats.takers as f64),
    ];
    for (metric, value) in gauges {
        gauge!(metric, "queue" => name.to_owned()).set(value);
    }
    for (time, count) in times(&last.lateness, &stats.lateness) {
        histogram!("redelay_queue_lateness_seconds", "queue" => name.to_owned())
            .record_many(time, many(count));
    }
    let (before, after) = (outcomes(&last.receiving.handling), outcomes(&receiving.handling));
    for ((outcome, after), (_, before)) in after.into_iter().zip(before) {
        for (time, count) in times(before, after) {
            histogram!("redelay_queue_handling_seconds", "queue" => name.to_owned(), "outcome" => outcome)
                .record_many(time, many(count));
        }
    }
}

/// What this client has counted of a queue.
fn counters(stats: &QueueStats) -> [Count; 16] {
    let receiving = &stats.receiving;
    [
        ("redelay_queue_received_total", receiving.received),
        ("redelay_queue_acknowledged_total", receiving.acknowledged),
        ("redelay_queue_failed_total", receiving.failed),
        ("redelay_queue_snoozed_total", receiving.snoozed),
        ("redelay_queue_released_total", receiving.released),
        ("redelay_queue_rejected_total", receiving.rejected),
        ("redelay_queue_lost_total", receiving.lost),
        ("redelay_queue_recovered_total", receiving.recovered),
        ("redelay_queue_died_total", receiving.died),
        ("redelay_queue_expired_total", receiving.expired),
        ("redelay_queue_vanished_total", receiving.vanished),
        ("redelay_queue_transfers_total", stats.transfers),
        ("redelay_queue_transferred_total", stats.transferred),
        ("redelay_queue_empty_transfers_total", stats.empty_transfers),
        ("redelay_queue_failed_transfers_total", stats.failed_transfers),
        ("redelay_queue_stalled_transfers_total", stats.stalled_transfers),
    ]
}

fn many(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
