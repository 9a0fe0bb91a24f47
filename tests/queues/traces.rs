//! The traces of OpenTelemetry that travel with jobs.

use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use redelay::delayed_queue::Offered;
use redelay_fixture::Server;
use redelay_support::{HOUR, NOTES, ms, soon, text_queues};
use tracing::Instrument;
use tracing::instrument::WithSubscriber;
use tracing_subscriber::layer::SubscriberExt;

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
                ("traced", Some(text)) => assert!(text.starts_with("00-") && text.ends_with("-01"), "{text}"),
                ("own", Some("mine")) | ("no id" | "outside", None) => {}
                (value, header) => panic!("{value}: {header:?}"),
            }
            delivery.ack().await.unwrap();
        }
        // What has neither a trace nor other data stays as it was: only the job that is pending has a note.
        assert_eq!(server.get::<usize, _>(["HLEN", NOTES]), 1);
        client.shutdown().await;
    }
    .with_subscriber(subscriber)
    .await;
    let spans = exporter.get_finished_spans().unwrap();
    let request = find(&spans, "request").span_context.clone();
    let handled: Vec<_> = spans.iter().filter(|span| span.name == "redelay.process").collect();
    let linked: Vec<_> = handled.iter().flat_map(|span| span.links.iter()).collect();
    assert_eq!((handled.len(), linked.len()), (4, 1));
    let link = &linked[0].span_context;
    assert_eq!((link.trace_id(), link.span_id()), (request.trace_id(), request.span_id()));
    assert!(link.is_remote());
    let with_field = |text: &str| {
        let has = |span: &&&SpanData| span.attributes.iter().any(|pair| pair.value.as_str() == text);
        handled.iter().filter(has).count()
    };
    assert_eq!(with_field("mine"), 1);
}
