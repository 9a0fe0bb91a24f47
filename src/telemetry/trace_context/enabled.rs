//! With the feature `tracing-opentelemetry-0-34`.

use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState};
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// The present span. `None` if no layer of `tracing-opentelemetry` gives it a trace.
pub(crate) fn current() -> Option<String> {
    let context = tracing::Span::current().context();
    let span = context.span().span_context().clone();
    let flags = span.trace_flags() & TraceFlags::SAMPLED;
    span.is_valid().then(|| format!("00-{}-{}-{flags:02x}", span.trace_id(), span.span_id()))
}

/// Links a span to the one that this text names. Another text changes nothing.
pub(crate) fn link(span: &tracing::Span, traceparent: &str) {
    if let Some(context) = parsed(traceparent) {
        span.add_link(context);
    }
}

fn parsed(traceparent: &str) -> Option<SpanContext> {
    let mut parts = traceparent.split('-');
    let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    // Later versions may append parts.
    let is_known = match version {
        "00" => parts.next().is_none(),
        _ => version.len() == 2 && version != "ff",
    };
    if !is_known || [trace.len(), span.len(), flags.len()] != [32, 16, 2] {
        return None;
    }
    let context = SpanContext::new(
        TraceId::from_hex(trace).ok()?,
        SpanId::from_hex(span).ok()?,
        TraceFlags::new(u8::from_str_radix(flags, 16).ok()?),
        true,
        TraceState::default(),
    );
    context.is_valid().then_some(context)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_no_trace_is_ignored() {
        let known = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert!(parsed(known).is_some_and(|context| context.is_sampled() && context.is_remote()));
        assert!(parsed(&known.replacen("00", "cc", 1)).is_some());
        assert!(parsed(&format!("{}-more", known.replacen("00", "cc", 1))).is_some());
        for text in [
            "",
            "-",
            "00",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
            "00-0af7651916cd43dd8448eb211c80319x-b7ad6b7169203331-01",
            "00-é-b7ad6b7169203331-01",
        ] {
            assert_eq!(parsed(text), None, "{text}");
        }
    }
}
