//! What the documentation promises.

mod architecture;
mod from_redisson;
#[cfg(feature = "tracing")]
mod observability;
mod troubleshooting;
