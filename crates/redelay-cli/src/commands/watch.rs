//! `redelay watch`.

use std::time::{Duration, Instant, SystemTime};

use futures::TryStreamExt;
use redelay::inspector::Happening;
use serde::Serialize;

use crate::connect::Session;
use crate::escape;
use crate::failure::Failure;
use crate::human;
use crate::out::Out;
use crate::queue::Name;

/// Something that has happened, as a document.
#[derive(Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
enum Event {
    /// From now on, everything that happens is printed; what happened before is not known.
    Listening { at: Option<String> },
    /// A client has offered the entry that is due next.
    Announced {
        at: Option<String>,
        #[serde(flatten)]
        name: Name,
        due: Option<String>,
    },
    /// A client has moved what was due.
    Transferred {
        at: Option<String>,
        #[serde(flatten)]
        name: Name,
        next_due: Option<String>,
    },
}

/// The server's clock, as it goes on.
struct Clock {
    shown: SystemTime,
    read: Instant,
}

impl Clock {
    fn now(&self) -> SystemTime {
        self.shown + self.read.elapsed()
    }
}

pub(crate) async fn run(session: &Session, pattern: &[u8], out: &Out) -> Result<(), Failure> {
    let servers = session.servers(out).await?;
    if let Some(refusal) = servers.clock_refusal() {
        out.note(&format!("{refusal}; times are by the clock of this machine"));
    }
    let clock = Clock { shown: servers.clock(""), read: Instant::now() };
    let mut happenings = session.inspector.watch(session.pattern(pattern));
    while let Some(happening) = happenings.try_next().await? {
        if out.is_json {
            if let Some(event) = event(session, &happening, clock.now()) {
                out.json(&event)?;
            }
        } else if let Some((at, text)) = text(session, &happening, clock.now()) {
            out.line(&format!("{}  {text}", out.time(at)))?;
        }
    }
    Err(Failure::NoConnection("the server sends no more announcements".into()))
}

fn event(session: &Session, happening: &Happening, now: SystemTime) -> Option<Event> {
    let time = |at: Option<SystemTime>| at.and_then(human::rfc_3339);
    let name = |queue: &[u8]| Name::new(session.own_name(queue));
    Some(match happening {
        Happening::Listening => Event::Listening { at: time(Some(now)) },
        Happening::Announced { queue, due, .. } => {
            Event::Announced { at: time(Some(now)), name: name(queue), due: time(*due) }
        }
        Happening::Transferred { queue, at, next, .. } => {
            Event::Transferred { at: time(at.or(Some(now))), name: name(queue), next_due: time(*next) }
        }
        _ => return None,
    })
}

/// When, and what.
fn text(session: &Session, happening: &Happening, now: SystemTime) -> Option<(SystemTime, String)> {
    let name = |queue: &[u8]| escape::bytes(session.own_name(queue));
    Some(match happening {
        Happening::Listening => (now, "listening; what happened before is not known".into()),
        Happening::Announced { queue, due, .. } => {
            let due = due.map_or_else(|| "at no time".into(), |due| relative(due, now));
            (now, format!("{}: the next one is due {due}", name(queue)))
        }
        Happening::Transferred { queue, at, next, .. } => {
            let next = next.map_or_else(
                || "nothing else is pending".into(),
                |next| format!("the next one is due {}", relative(next, now)),
            );
            (at.unwrap_or(now), format!("{}: moved what was due; {next}", name(queue)))
        }
        _ => return None,
    })
}

fn relative(due: SystemTime, now: SystemTime) -> String {
    human::until(due.duration_since(now).unwrap_or(Duration::ZERO))
}
