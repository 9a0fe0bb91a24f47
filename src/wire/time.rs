//! Times as they are on the server: whole milliseconds, below the limit of Redisson's decoder.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Due times in epoch ms are below this: from 10^15, Redisson's decoder and Lua's doubles lose digits.
const LIMIT: u64 = 1_000_000_000_000_000;

/// A duration in whole milliseconds, rounded up, so that nothing ends early.
pub(crate) fn millis(span: Duration) -> Result<u64, String> {
    let millis = span.as_nanos().div_ceil(1_000_000);
    u64::try_from(millis)
        .ok()
        .filter(|millis| *millis < LIMIT)
        .ok_or_else(|| "the time is 10^15 ms or more (31,000 years), the limit of scores on the wire".into())
}

/// A point in time in epoch ms, rounded up. A time before 1970 becomes 0.
pub(crate) fn epoch_millis(at: SystemTime) -> Result<u64, String> {
    millis(at.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO))
}

/// The point in time that epoch ms stand for.
pub(crate) fn from_epoch_millis(millis: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_up_and_ends() {
        assert_eq!(millis(Duration::ZERO), Ok(0));
        assert_eq!(millis(Duration::from_nanos(1)), Ok(1));
        assert_eq!(millis(Duration::from_micros(1500)), Ok(2));
        assert_eq!(millis(Duration::from_millis(LIMIT - 1)), Ok(LIMIT - 1));
        assert!(millis(Duration::from_millis(LIMIT)).is_err());
        assert!(millis(Duration::MAX).is_err());
        assert_eq!(epoch_millis(UNIX_EPOCH - Duration::from_secs(9)), Ok(0));
    }
}
