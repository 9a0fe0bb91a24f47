//! What a recorder and a meter get, against a real server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};
use redelay::{BlockingQueue, Client, ErrorKind, codec};
use redelay_fixture::{Server, until_async};
use redelay_metrics::Reporter;

const HOUR: Duration = Duration::from_secs(3600);

/// The values by their names and labels; those of a histogram are counts of times.
type Values = BTreeMap<String, Vec<(f64, usize)>>;

#[derive(Clone, Default)]
struct Recorded(Arc<Mutex<Values>>);

impl Recorded {
    fn handle(&self, key: &Key) -> Arc<Handle> {
        let labels = key.labels().map(|label| format!(" {}={}", label.key(), label.value()));
        let name = key.name().to_owned() + &labels.collect::<String>();
        Arc::new(Handle { name, values: self.clone() })
    }

    fn values(&self) -> Values {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn value(&self, name: &str) -> f64 {
        let values = self.values();
        values.get(name).unwrap_or_else(|| panic!("{name} is not in {:?}", values.keys()))[0].0
    }
}

struct Handle {
    name: String,
    values: Recorded,
}

impl Handle {
    fn set(&self, value: f64) {
        self.values
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(self.name.clone(), vec![(value, 1)]);
    }
}

impl CounterFn for Handle {
    fn increment(&self, _: u64) {
        unreachable!("counters are absolute");
    }

    fn absolute(&self, value: u64) {
        self.set(value as f64);
    }
}

impl GaugeFn for Handle {
    fn increment(&self, _: f64) {
        unreachable!("gauges are set");
    }

    fn decrement(&self, _: f64) {
        unreachable!("gauges are set");
    }

    fn set(&self, value: f64) {
        Self::set(self, value);
    }
}

impl HistogramFn for Handle {
    fn record(&self, value: f64) {
        self.record_many(value, 1);
    }

    fn record_many(&self, value: f64, count: usize) {
        let mut values = self.values.0.lock().unwrap_or_else(PoisonError::into_inner);
        values.entry(self.name.clone()).or_default().push((value, count));
    }
}

impl Recorder for Recorded {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.handle(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.handle(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.handle(key))
    }
}

/// Of three messages, one is acknowledged, one fails, and one is pending.
async fn work(client: &Client, queue: &str) -> BlockingQueue<i64> {
    let ready = client.blocking_queue(queue, codec::Long);
    let delayed = client.delayed_queue(&ready);
    for (value, delay) in [(1, Duration::from_millis(20)), (2, Duration::from_millis(40)), (3, HOUR)] {
        delayed.offer(&value, delay).await.expect("an offer");
    }
    let receiver = ready.receiver();
    let first = receiver.receive().await.expect("a message");
    tokio::time::sleep(Duration::from_millis(60)).await;
    first.ack().await.expect("an acknowledgement");
    receiver.receive().await.expect("a message").retry_after(HOUR).await.expect("a retry");
    until_async("transfers are counted", async || {
        delayed.stats().await.is_ok_and(|stats| stats.transferred == 2)
    })
    .await;
    // It transfers as long as it exists.
    drop(delayed);
    ready
}

#[tokio::test]
async fn the_facade_gets_what_was_counted_and_measured() {
    let server = Server::start();
    let client = Client::connect(&server.url()).await.expect("a client");
    let recorded = Recorded::default();
    let _guard = metrics::set_default_local_recorder(&recorded);
    let ready = work(&client, "orders").await;
    let mut reporter = Reporter::new(&client).queue(&ready);
    reporter.report().await.expect("a report");
    for (name, value) in [
        ("redelay_client_connected", 1.0),
        ("redelay_client_transferred_total", 2.0),
        ("redelay_queue_pending queue=orders", 1.0),
        ("redelay_queue_retries queue=orders", 1.0),
        ("redelay_queue_received_total queue=orders", 2.0),
        ("redelay_queue_acknowledged_total queue=orders", 1.0),
        ("redelay_queue_failed_total queue=orders", 1.0),
        ("redelay_queue_transferred_total queue=orders", 2.0),
    ] {
        assert_eq!(recorded.value(name), value, "{name}");
    }
    let values = recorded.values();
    let handled = &values["redelay_queue_handling_seconds queue=orders outcome=acknowledged"];
    assert_eq!(handled.len(), 1);
    assert!(handled[0].1 == 1 && handled[0].0 >= 0.06, "{handled:?}");
    assert_eq!(values["redelay_queue_handling_seconds queue=orders outcome=failed"].len(), 1);
    let late: usize =
        values["redelay_queue_lateness_seconds queue=orders"].iter().map(|(_, count)| count).sum();
    assert!((1..=2).contains(&late), "{values:?}");
    // What was published is not published again.
    reporter.report().await.expect("a report");
    let again = recorded.values();
    assert_eq!(again["redelay_queue_handling_seconds queue=orders outcome=acknowledged"].len(), 1);
    // A server that is away leaves its queues as they were.
    server.kill_9();
    until_async("it is away", || std::future::ready(!client.stats().connected)).await;
    assert!(reporter.report().await.unwrap_err().is_unavailable());
    assert_eq!(recorded.value("redelay_client_connected"), 0.0);
    assert_eq!(recorded.value("redelay_queue_pending queue=orders"), 1.0);
}

#[tokio::test]
async fn a_queue_has_its_name_on_the_server() {
    let server = Server::start();
    let client = Client::builder().url(server.url()).name_prefix("shop:").connect().await.expect("a client");
    let recorded = Recorded::default();
    let _guard = metrics::set_default_local_recorder(&recorded);
    let ready = client.blocking_queue("orders", codec::Long);
    ready.put(&1).await.expect("a payload");
    Reporter::new(&client).queue(&ready).report().await.expect("a report");
    assert_eq!(recorded.value("redelay_queue_ready queue=shop:orders"), 1.0);
    let values = recorded.values();
    let others = values.keys().filter(|name| name.contains("queue=") && !name.contains("queue=shop:orders"));
    assert_eq!(others.count(), 0, "{values:?}");
}

#[tokio::test]
async fn queues_beside_one_that_cannot_be_read_are_reported() {
    let server = Server::start();
    let client = Client::connect(&server.url()).await.expect("a client");
    let recorded = Recorded::default();
    let _guard = metrics::set_default_local_recorder(&recorded);
    let names = ["orders", "broken", "worse", "mails"];
    let [orders, broken, worse, mails] = names.map(|name| client.blocking_queue(name, codec::Long));
    orders.put(&1).await.expect("a payload");
    mails.offer_all(&[1, 2]).await.expect("payloads");
    server.cmd(["SET", "broken", "a text"]);
    server.cmd(["SET", "worse", "a text"]);
    let reporter = Reporter::new(&client).queue(&orders).queue(&broken).queue(&worse);
    let mut reporter = reporter.queue(&mails);
    let error = reporter.report().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.to_string().contains("`broken`"), "{error}");
    assert_eq!(recorded.value("redelay_client_connected"), 1.0);
    assert_eq!(recorded.value("redelay_queue_ready queue=orders"), 1.0);
    assert_eq!(recorded.value("redelay_queue_ready queue=mails"), 2.0);
    assert!(!recorded.values().contains_key("redelay_queue_ready queue=broken"));
    server.cmd(["DEL", "broken"]);
    server.cmd(["DEL", "worse"]);
    reporter.report().await.expect("a report");
    assert_eq!(recorded.value("redelay_queue_ready queue=broken"), 0.0);
}

#[cfg(feature = "opentelemetry-0-33")]
#[tokio::test]
async fn opentelemetry_gets_it_under_the_names_of_its_conventions() {
    use opentelemetry::{KeyValue, global};
    use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData};
    use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};

    const QUEUE: &str = "messaging.destination.name";
    let exporter = InMemoryMetricExporter::default();
    let reader = PeriodicReader::builder(exporter.clone()).build();
    let provider = SdkMeterProvider::builder().with_reader(reader).build();
    global::set_meter_provider(provider.clone());
    let server = Server::start();
    let client = Client::builder().url(server.url()).name_prefix("shop:").connect().await.expect("a client");
    let ready = work(&client, "mails").await;
    Reporter::new(&client).queue(&ready).report().await.expect("a report");
    provider.force_flush().expect("it exports");
    let exported = exporter.get_finished_metrics().expect("metrics");
    let mut found = Vec::new();
    for metric in exported.iter().flat_map(|all| all.scope_metrics()).flat_map(|scope| scope.metrics()) {
        let has = |attributes: &[&KeyValue], key: &str, value: &str| {
            attributes.iter().any(|one| one.key.as_str() == key && one.value.as_str() == value)
        };
        match metric.data() {
            AggregatedMetrics::U64(MetricData::Sum(sum)) => {
                for point in sum.data_points() {
                    let attributes: Vec<_> = point.attributes().collect();
                    assert!(has(&attributes, "messaging.system", "redis"));
                    // The other tests have other queues, and the same global meter.
                    if has(&attributes, QUEUE, "shop:mails") {
                        found.push((metric.name().to_owned(), point.value()));
                    }
                }
            }
            AggregatedMetrics::U64(MetricData::Gauge(gauge)) => {
                let points = gauge.data_points();
                let points =
                    points.filter(|point| has(&point.attributes().collect::<Vec<_>>(), QUEUE, "shop:mails"));
                found.extend(points.map(|point| (metric.name().to_owned(), point.value())));
            }
            AggregatedMetrics::F64(MetricData::Histogram(histogram)) => {
                for point in histogram.data_points() {
                    let attributes: Vec<_> = point.attributes().collect();
                    let failed = if has(&attributes, "error.type", "failed") { " failed" } else { "" };
                    if has(&attributes, QUEUE, "shop:mails") {
                        found.push((format!("{}{failed}", metric.name()), point.count()));
                    }
                    assert_eq!(point.bucket_counts().count(), 15);
                }
            }
            _ => {}
        }
    }
    for expected in [
        ("messaging.client.consumed.messages", 2),
        ("messaging.process.duration", 1),
        ("messaging.process.duration failed", 1),
        ("redelay.queue.pending", 1),
        ("redelay.queue.retries", 1),
    ] {
        assert!(found.contains(&(expected.0.to_owned(), expected.1)), "{expected:?} is not in {found:?}");
    }
    assert!(found.iter().any(|(name, _)| name == "redelay.queue.lateness"), "{found:?}");
}
