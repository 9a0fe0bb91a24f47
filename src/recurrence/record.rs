//! Schedules as they are on the server: lines of text, an empty line, and the payload.
//!
//! ```text
//! cron 0 3 * * *
//! zone Europe/Berlin
//! missed all 5
//! no_overlap queue
//! last 1795249257000
//!
//! "payload"
//! ```

use bytes::Bytes;

use super::{Missed, Overlap, Recurrence, When};

/// A schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScheduleRecord {
    pub(crate) recurrence: Recurrence,
    pub(crate) payload: Bytes,
    /// The time of the last run that is over, or 0. If runs do not overlap: of the last one that was offered.
    pub(crate) last: u64,
    /// The time of the run that is held back until the last one is done, or 0.
    pub(crate) held: u64,
    pub(crate) is_paused: bool,
}

impl ScheduleRecord {
    /// Whether both run at the same times with the same payload.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.recurrence == other.recurrence && self.payload == other.payload
    }

    pub(crate) fn pack(&self) -> Bytes {
        let Recurrence { when, start, end, missed, no_overlap } = &self.recurrence;
        let mut lines = match when {
            When::Every(interval) => format!("every {interval}\n"),
            When::Cron { text, zone } => format!("cron {text}\nzone {zone}\n"),
        };
        let mut line = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                lines.push_str(&format!("{name} {value}\n"));
            }
        };
        line("start", start.map(|at| at.to_string()));
        line("end", end.map(|at| at.to_string()));
        line(
            "missed",
            match missed {
                Missed::Skip => None,
                Missed::Once => Some("once".into()),
                Missed::UpTo(count) => Some(format!("all {count}")),
            },
        );
        line(
            "no_overlap",
            no_overlap.map(|overlap| match overlap {
                Overlap::Skip => "skip".into(),
                Overlap::Queue => "queue".into(),
            }),
        );
        line("last", (self.last > 0).then(|| self.last.to_string()));
        line("held", (self.held > 0).then(|| self.held.to_string()));
        if self.is_paused {
            lines.push_str("paused\n");
        }
        [lines.as_bytes(), b"\n", &self.payload].concat().into()
    }

    /// `None` for what no version up to this one writes.
    pub(crate) fn unpack(bytes: &Bytes) -> Option<Self> {
        let head = bytes.windows(2).position(|pair| pair == b"\n\n")?;
        let (mut when, mut zone) = (None, None);
        let (mut start, mut end, mut missed, mut no_overlap) = (None, None, Missed::Skip, None);
        let (mut last, mut held, mut is_paused) = (0, 0, false);
        for line in std::str::from_utf8(&bytes[..head]).ok()?.split('\n') {
            let (name, value) = line.split_once(' ').unwrap_or((line, ""));
            match (name, value) {
                ("every", interval) => when = Some(When::Every(interval.parse().ok()?)),
                ("cron", text) => when = Some(When::Cron { text: text.into(), zone: String::new() }),
                ("zone", name) => zone = Some(name.to_owned()),
                ("start", at) => start = Some(at.parse().ok()?),
                ("end", at) => end = Some(at.parse().ok()?),
                ("missed", "once") => missed = Missed::Once,
                ("missed", value) => missed = Missed::UpTo(value.strip_prefix("all ")?.parse().ok()?),
                ("no_overlap", "skip") => no_overlap = Some(Overlap::Skip),
                ("no_overlap", "queue") => no_overlap = Some(Overlap::Queue),
                ("last", at) => last = at.parse().ok()?,
                ("held", at) => held = at.parse().ok()?,
                ("paused", "") => is_paused = true,
                _ => return None,
            }
        }
        let when = match (when?, zone) {
            (When::Cron { text, .. }, Some(zone)) => When::Cron { text, zone },
            (When::Every(interval), None) => When::Every(interval),
            _ => return None,
        };
        let recurrence = Recurrence { when, start, end, missed, no_overlap };
        Some(Self { recurrence, payload: bytes.slice(head + 2..), last, held, is_paused })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn records_are_text() {
        let record = ScheduleRecord {
            recurrence: Recurrence {
                when: When::Cron { text: "0 3 * * *".into(), zone: "Europe/Berlin".into() },
                start: Some(5),
                end: None,
                missed: Missed::UpTo(5),
                no_overlap: Some(Overlap::Skip),
            },
            payload: Bytes::from_static(b"\n\n\xff"),
            last: 7,
            held: 9,
            is_paused: true,
        };
        let packed =
            b"cron 0 3 * * *\nzone Europe/Berlin\nstart 5\nmissed all 5\nno_overlap skip\nlast 7\nheld 9\npaused\n\n\n\n\xff";
        assert_eq!(record.pack(), packed[..]);
        assert_eq!(ScheduleRecord::unpack(&record.pack()), Some(record));
    }

    #[test]
    fn what_is_no_record_is_refused() {
        for junk in [
            "",
            "\n\n",
            "every 5",
            "every 5\n",
            "every\n\n",
            "every 5\nzone UTC\n\n",
            "cron * * * * *\n\n",
            "last 5\n\n",
            "every 5\nlast x\n\n",
            "every 5\nmissed all\n\n",
            "every 5\nmissed some\n\n",
            "every 5\nno_overlap\n\n",
            "every 5\npaused now\n\n",
            "every 5\nlater 7\n\n",
            "every -5\n\n",
            "every 99999999999999999999\n\n",
        ] {
            assert_eq!(ScheduleRecord::unpack(&Bytes::from(junk)), None, "{junk:?}");
        }
        assert_eq!(ScheduleRecord::unpack(&Bytes::from_static(b"every 5\xff\n\n")), None);
    }

    proptest! {
        #[test]
        fn any_record_comes_back(
            interval: u64, start: Option<u64>, end: Option<u64>, count: Option<u32>, last: u64, is_paused: bool,
            text in "[*0-9 ,/@A-Za-z#-]{1,40}", zone in "[A-Za-z/_+0-9-]{1,30}", is_cron: bool,
            payload: Vec<u8>, overlap in 0..3usize, held: u64,
        ) {
            let when = if is_cron { When::Cron { text, zone } } else { When::Every(interval) };
            let missed = count.map_or(Missed::Once, Missed::UpTo);
            let no_overlap = [None, Some(Overlap::Skip), Some(Overlap::Queue)][overlap];
            let recurrence = Recurrence { when, start, end, missed, no_overlap };
            let record = ScheduleRecord { recurrence, payload: payload.into(), last, held, is_paused };
            prop_assert_eq!(ScheduleRecord::unpack(&record.pack()), Some(record));
        }

        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>) {
            let _ = ScheduleRecord::unpack(&bytes.into());
        }
    }
}
