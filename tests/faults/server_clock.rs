//! What the clock of a server showed, which may have been set.

use std::time::{Duration, SystemTime};

/// By how much the server's clock was ahead of the clock of this machine, and when.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerClock {
    /// In the order of time. Two of them overlap while the clock is being set. Before the first, the clocks
    /// agree.
    settings: Vec<Setting>,
}

#[derive(Clone, Copy, Debug)]
struct Setting {
    /// In seconds; negative if the server is behind.
    ahead: i64,
    from: SystemTime,
    until: Option<SystemTime>,
}

impl ServerClock {
    /// From now on the clock may be this many seconds ahead.
    pub(crate) fn begin(&mut self, now: SystemTime, ahead: i64) {
        if self.settings.is_empty() {
            self.settings.push(Setting { ahead: 0, from: SystemTime::UNIX_EPOCH, until: None });
        }
        self.settings.push(Setting { ahead, from: now, until: None });
    }

    /// The setting before the last one has ended.
    pub(crate) fn end_previous(&mut self, now: SystemTime) {
        if let [.., previous, _] = &mut self.settings[..] {
            previous.until = Some(now);
        }
    }

    /// By how many seconds it is ahead now.
    pub(crate) fn ahead(&self) -> i64 {
        self.settings.last().map_or(0, |setting| setting.ahead)
    }

    /// The most seconds by which it was ahead.
    pub(crate) fn most_ahead(&self) -> i64 {
        self.settings.iter().map(|setting| setting.ahead).max().unwrap_or(0)
    }

    /// The latest time that it showed between these times of this machine.
    pub(crate) fn highest(&self, from: SystemTime, to: SystemTime) -> SystemTime {
        let shown = |setting: &Setting| by(setting.until.unwrap_or(to).min(to), setting.ahead);
        self.during(from, to).map(shown).max().unwrap_or(to)
    }

    /// What it would show at `from` with the setting between these times that is the farthest behind.
    pub(crate) fn lowest_of(&self, from: SystemTime, to: SystemTime) -> SystemTime {
        self.during(from, to).map(|setting| by(from, setting.ahead)).min().unwrap_or(from)
    }

    fn during(&self, from: SystemTime, to: SystemTime) -> impl Iterator<Item = &Setting> {
        let is_during =
            move |setting: &&Setting| setting.from <= to && setting.until.is_none_or(|until| until >= from);
        self.settings.iter().filter(is_during)
    }
}

fn by(time: SystemTime, ahead: i64) -> SystemTime {
    let difference = Duration::from_secs(ahead.unsigned_abs());
    if ahead < 0 { time - difference } else { time + difference }
}
