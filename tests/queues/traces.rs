//! The traces of OpenTelemetry that travel with jobs.

use std::sync::{Arc, Mutex};

use opentelemetry::trace::{SpanKind, TracerProvider};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use redelay::delayed_queue::Offered;
use redelay_fixture::Server;
use redelay_support::{HOUR, NOTES, ms, soon, text_queues};
use tracing::Instrument;
use tracing::instrument::WithSubscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

/// The span of this name.
fn find<'a>(spans: &'a [SpanData], name: &str) -> &'a SpanData {
    spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("{name} in {spans:?}"))
}

#[tokio::test]
async fn the_span_of_a_handler_is_linked_to_that_of_the_offer() {
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
    let subscriber = tracing_subscriber::registry().with(layer);
    async {
        let server = Server::start();
        let (client, ready, delayed) = text_queues(&server).await;
        let request = tracing::info_span!("request");
        let offers = async {
            delayed.offer("traced", ms(1)).id("a").await.unwrap();
            delayed.offer("own", ms(1)).id("b").header("traceparent", "mine").await.unwrap();
            delayed.offer("full", HOUR).id("c").header("big", "x".repeat(1_000)).await.unwrap();
            delayed.offer("no id", ms(1)).await.unwrap();
        };
        offers.instrument(request).await;
        let outside = delayed.offer("outside", ms(1)).id("d").await.unwrap();
        assert!(matches!(outside, Offered::Stored(_)));
        let receiver = ready.receiver();
        for _ in 0..4 {
            let delivery = soon(receiver.receive()).await.unwrap();
            match (&**delivery.value(), delivery.header("traceparent")) {
                ("traced" | "outside", Some(text)) => {
                    assert!(text.starts_with("00-") && text.ends_with("-01"), "{text}")
                }
                ("own", Some("mine")) | ("no id", None) => {}
                (value, header) => panic!("{value}: {header:?}"),
            }
            delivery.ack().await.unwrap();
        }
        // Only the job that is pending has a note.
        assert_eq!(server.get::<usize, _>(["HLEN", NOTES]), 1);
        client.shutdown().await;
    }
    .with_subscriber(subscriber)
    .await;
    let spans = exporter.get_finished_spans().unwrap();
    let request = find(&spans, "request").span_context.clone();
    let is_offer = |span: &&SpanData| span.name == "redelay.offer" && span.span_kind == SpanKind::Producer;
    let offers: Vec<_> = spans.iter().filter(is_offer).collect();
    let within = offers.iter().filter(|span| span.parent_span_id == request.span_id()).count();
    assert_eq!((offers.len(), within), (5, 4), "one is not within the request");
    let handled: Vec<_> = spans.iter().filter(|span| span.name == "redelay.process").collect();
    let linked: Vec<_> = handled.iter().flat_map(|span| span.links.iter()).collect();
    assert_eq!((handled.len(), linked.len()), (4, 2));
    for link in linked.iter().map(|link| &link.span_context) {
        let to = |span: &&&SpanData| span.span_context.span_id() == link.span_id();
        let offer = offers.iter().find(to).expect("the span of an offer");
        assert_eq!(offer.span_context.trace_id(), link.trace_id());
        assert!(link.is_remote());
    }
    let with_field = |text: &str| {
        let has = |span: &&&SpanData| span.attributes.iter().any(|pair| pair.value.as_str() == text);
        handled.iter().filter(has).count()
    };
    assert_eq!(with_field("mine"), 1);
}

/// A call of a client may be for several callers, and one of them carries it out. What it reports belongs to
/// none of their spans.
#[tokio::test]
async fn events_of_a_client_are_in_no_span_of_a_caller() {
    let events = Events::default();
    // Of this thread, so of the client's tasks, too: on a busy machine, one of them carries the call out.
    let _subscribed = tracing::subscriber::set_default(tracing_subscriber::registry().with(events.clone()));
    let server = Server::start();
    let (client, ready, _delayed) = text_queues(&server).await;
    let receiver = ready.receiver();
    let request = async {
        ready.put("wrong").await.unwrap();
        let delivery = soon(receiver.receive()).await.unwrap();
        delivery.reject("no").await.unwrap();
    };
    request.instrument(tracing::info_span!("request")).await;
    client.shutdown().await;
    let reported = events.0.lock().unwrap().clone();
    assert!(reported.iter().any(|(name, _)| *name == "redelay.dead_letters"), "{reported:?}");
    assert!(reported.iter().all(|(_, span)| span.is_none()), "{reported:?}");
}

/// The name of an event, and of the span that it is in.
type Reported = (&'static str, Option<&'static str>);

#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<Reported>>>);

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Events {
    fn on_event(&self, event: &tracing::Event<'_>, context: Context<'_, S>) {
        let span = context.event_span(event).map(|span| span.name());
        self.0.lock().unwrap().push((event.metadata().name(), span));
    }
}
