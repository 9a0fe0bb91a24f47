//! The traces of OpenTelemetry: the span of an offer, as the text that travels with a job, and a link to it
//! from the span of its handler. The text is `traceparent` of the W3C's Trace Context, version 00.

#[cfg(not(feature = "tracing-opentelemetry-0-34"))]
mod disabled;
#[cfg(feature = "tracing-opentelemetry-0-34")]
mod enabled;

#[cfg(not(feature = "tracing-opentelemetry-0-34"))]
pub(crate) use disabled::current;
#[cfg(feature = "tracing-opentelemetry-0-34")]
pub(crate) use enabled::{current, link};
