//! Queues that are damaged in one way each.

use std::iter;

use redelay_fixture::Server;

use super::{HOUR, add, add_sound, entry, key, legacy, list, now, set, text};

/// A damage: the name of its queue, the finding, and how it is done.
pub(super) type Damage = (&'static str, &'static str, fn(&Server, &str));

/// A time that nobody has forgotten: it is not in seconds.
fn late() -> i64 {
    now() - 60_000
}

/// 32 hexadecimal digits that were drawn then.
fn id_of(millis: i64, number: u32) -> String {
    format!("{millis:012x}7000800000{number:010x}")
}

/// The record of a message, of its second delivery.
fn record() -> Vec<u8> {
    [
        &[1, 0, 0, 0, 1][..],
        &[0; 4],
        &[0, 10, 0, 5],
        &30_000_u32.to_be_bytes(),
        b"k",
        &[1; 6],
        &text("message"),
    ]
    .concat()
}

const ID: &[u8] = b"\x01\x99\x3f\x0c\x5d\x00\x70\x00\x80\x00\x00\x00\x00\x00\x00\x00";
const LEASE: &[u8] = b"\x01\x99\x3f\x0c\x5d\x00\x70\x00\x80\x00\x00\x00\x00\x00\x00\x00\0\0\0\x01";

fn hset(server: &Server, key: &str, field: &[u8], value: &[u8]) {
    server.cmd([b"HSET", key.as_bytes(), field, value]);
}

fn zadd(server: &Server, key: &str, score: i64, member: &[u8]) {
    server.cmd([b"ZADD", key.as_bytes(), score.to_string().as_bytes(), member]);
}

/// A letter, as it is stored.
fn letter() -> Vec<u8> {
    // An array of 8: reason, error, failures, losses, two times, the delivery number and the payload.
    let mut letter = vec![0x98, 0xa8];
    letter.extend(b"rejected");
    letter.extend([0xa2, b'n', b'o', 1, 0]);
    for time in [now() - HOUR, now() - HOUR] {
        letter.push(0xcf);
        letter.extend(time.to_be_bytes());
    }
    letter.push(1);
    letter.push(0xa7);
    letter.extend(b"payload");
    letter
}

fn ready(server: &Server, queue: &str, payloads: impl IntoIterator<Item = Vec<u8>>) {
    let words: Vec<Vec<u8>> = payloads.into_iter().collect();
    server.cmd([b"RPUSH".to_vec(), queue.into()].into_iter().chain(words));
}

pub(super) const DAMAGES: &[Damage] = &[
    ("overdue", "Q01", |server, q| add(server, q, late(), &entry("a", &text("hello")))),
    ("overdue, and more later", "Q01", |server, q| {
        add(server, q, late(), &entry("a", &text("hello")));
        add_sound(server, q);
    }),
    ("in-the-set-only", "Q04", |server, q| {
        add_sound(server, q);
        zadd(server, &set(q), now() + HOUR, &entry("a", &text("hello")));
    }),
    ("without-a-list", "Q04", |server, q| {
        (0..70).for_each(|n| add(server, q, now() + HOUR + n, &entry(&n.to_string(), &text("hello"))));
        server.cmd(["DEL", &list(q)]);
    }),
    ("in-the-list-only", "Q05", |server, q| {
        add_sound(server, q);
        server.cmd([b"RPUSH", list(q).as_bytes(), &entry("a", &text("hello"))]);
    }),
    ("without-a-set", "Q05", |server, q| {
        (0..70).for_each(|n| add(server, q, now() + HOUR + n, &entry(&n.to_string(), &text("hello"))));
        server.cmd(["DEL", &set(q)]);
    }),
    ("twice-in-the-list", "Q06", |server, q| {
        add_sound(server, q);
        server.cmd([b"RPUSH", list(q).as_bytes(), &entry("sound", &text("hello"))]);
    }),
    ("both-formats", "Q07", |server, q| {
        add_sound(server, q);
        add(server, q, now() + HOUR, &legacy(b"\x81\xed\x4b\xdc\x43\x9a\xc0\xc3", &text("hello")));
    }),
    ("the-old-format", "Q08", |server, q| {
        add(server, q, now() + HOUR, &legacy(b"\x81\xed\x4b\xdc\x43\x9a\xc0\xc3", &text("hello")));
    }),
    ("junk", "Q09", |server, q| add(server, q, now() + HOUR, b"junk")),
    ("empty", "Q09", |server, q| add(server, q, now() + HOUR, b"")),
    ("cut", "Q09", |server, q| {
        add_sound(server, q);
        add(server, q, now() + HOUR, &entry("a", &text("hello"))[..12]);
    }),
    ("trailing", "Q10", |server, q| {
        add(server, q, now() + HOUR, &[entry("a", &text("hello")), b"more".to_vec()].concat());
    }),
    ("negative", "Q11", |server, q| add(server, q, -5, &entry("a", &text("hello")))),
    ("before-all-times", "Q11", |server, q| add(server, q, "-inf", &entry("a", &text("hello")))),
    ("nanoseconds", "Q12", |server, q| {
        add(server, q, 1_795_615_390_307_000_000_i64, &entry("a", &text("hello")))
    }),
    ("never", "Q12", |server, q| {
        add_sound(server, q);
        add(server, q, "+inf", &entry("a", &text("hello")));
    }),
    ("a-fraction", "Q13", |server, q| {
        add(server, q, format!("{}.25", now() + HOUR), &entry("a", &text("hello")));
    }),
    ("seconds", "Q14", |server, q| add(server, q, (now() + HOUR) / 1_000, &entry("a", &text("hello")))),
    ("in-a-hundred-years", "Q15", |server, q| {
        add(server, q, now() + 876_000 * HOUR, &entry("a", &text("hello")));
    }),
    ("the-set-is-a-text", "Q16", |server, q| {
        server.cmd(["SET", &set(q), "1"]);
    }),
    ("the-list-is-a-set", "Q16", |server, q| {
        add_sound(server, q);
        server.cmd(["DEL", &list(q)]);
        server.cmd(["SADD", &list(q), "1"]);
    }),
    ("the-target-is-a-hash", "Q16", |server, q| {
        add_sound(server, q);
        hset(server, q, b"1", b"2");
    }),
    ("the-control-is-a-text", "Q17", |server, q| {
        add_sound(server, q);
        server.cmd(["SET", &key("control", q), "1"]);
    }),
    ("the-messages-are-a-list", "Q17", |server, q| {
        add_sound(server, q);
        server.cmd(["RPUSH", &key("messages", q), "1"]);
    }),
    ("the-quarantine-is-a-text", "Q17", |server, q| {
        add_sound(server, q);
        server.cmd(["SET", &key("quarantine", q), "1"]);
    }),
    ("shared", "Q19", |server, q| {
        add_sound(server, q);
        ready(server, q, [text("hello")]);
        ready(server, &format!("{{{q}}}"), [text("hello")]);
    }),
    ("the-set-expires", "Q20", |server, q| {
        add_sound(server, q);
        server.cmd(["EXPIRE", &set(q), "3600"]);
    }),
    ("the-list-expires", "Q20", |server, q| {
        add_sound(server, q);
        server.cmd(["EXPIRE", &list(q), "3600"]);
    }),
    ("long", "Q21", |server, q| add(server, q, now() + HOUR, &entry("a", &text(&"x".repeat(1 << 20))))),
    ("two-codecs", "Q22", |server, q| {
        for (n, payload) in [&b"\x09\x10"[..], b"\x03ope\xee", br#"["java.lang.Long",8]"#].iter().enumerate()
        {
            add(server, q, now() + HOUR, &entry(&n.to_string(), payload));
        }
    }),
    ("java", "Q23", |server, q| {
        add(server, q, now() + HOUR, &entry("a", b"\xac\xed\x00\x05t\x00\x05hello"));
    }),
    ("nobody-takes", "Q24", |server, q| {
        add_sound(server, q);
        ready(server, q, (0..150).map(|n| text(&format!("payload {n}"))));
    }),
    ("quarantined", "Q26", |server, q| {
        add_sound(server, q);
        server.cmd(["RPUSH", &key("quarantine", q), "4102444800000", "junk"]);
    }),
    ("paused", "Q27", |server, q| {
        ready(server, q, (0..150).map(|n| text(&format!("payload {n}"))));
        server.cmd(["HSET", &key("control", q), "paused", "1"]);
    }),
    ("at-most-none", "Q28", |server, q| {
        ready(server, q, (0..150).map(|n| text(&format!("payload {n}"))));
        server.cmd(["HSET", &key("control", q), "most", "0"]);
    }),
    ("at-most-one", "Q28", |server, q| {
        ready(server, q, [text("hello")]);
        server.cmd(["HSET", &key("control", q), "most", "1", "seen", &(now() + HOUR).to_string()]);
        hset(server, &key("messages", q), ID, &record());
        zadd(server, &key("leases", q), now() + HOUR, LEASE);
    }),
    ("full", "Q44", |server, q| {
        add_sound(server, q);
        server.cmd(["HSET", &key("control", q), "max_pending", "1"]);
    }),
    ("the-clock-went-back", "Q29", |server, q| {
        add_sound(server, q);
        server.cmd(["HSET", &key("control", q), "back", &now().to_string()]);
    }),
    ("leases-have-ended", "Q30", |server, q| {
        hset(server, &key("messages", q), ID, &record());
        zadd(server, &key("leases", q), late(), LEASE);
    }),
    ("a-lease-of-nothing", "Q31", |server, q| {
        add_sound(server, q);
        zadd(server, &key("leases", q), now() + HOUR, LEASE);
    }),
    ("a-late-lease-of-nothing", "Q31", |server, q| {
        add_sound(server, q);
        zadd(server, &key("leases", q), late(), LEASE);
    }),
    ("a-retry-of-nothing", "Q31", |server, q| {
        add_sound(server, q);
        zadd(server, &key("retries", q), now() + HOUR, ID);
    }),
    ("a-forgotten-message", "Q31", |server, q| {
        add_sound(server, q);
        hset(server, &key("messages", q), ID, &record());
    }),
    ("retries-are-due", "Q32", |server, q| {
        hset(server, &key("messages", q), ID, &record());
        zadd(server, &key("retries", q), late(), ID);
    }),
    ("unclaimed", "Q33", |server, q| {
        add_sound(server, q);
        server.cmd([b"RPUSH", key("inbox", q).as_bytes(), &text("hello")]);
    }),
    ("dead", "Q34", |server, q| {
        add_sound(server, q);
        zadd(server, &key("dead", q), now() - HOUR, ID);
        hset(server, &key("dead-messages", q), ID, &letter());
    }),
    ("unsent", "Q35", |server, q| {
        add_sound(server, q);
        zadd(server, &key("dead", q), -(now() - HOUR), ID);
        hset(server, &key("dead-messages", q), ID, &letter());
    }),
    ("dead-without-content", "Q36", |server, q| {
        add_sound(server, q);
        zadd(server, &key("dead", q), now() - HOUR, ID);
    }),
    ("dead-and-not-listed", "Q36", |server, q| {
        add_sound(server, q);
        hset(server, &key("dead-messages", q), ID, &letter());
    }),
    ("popped-and-left", "Q37", |server, q| {
        add_sound(server, q);
        let value = [
            b"\x93\xa4LPOP\xcf".to_vec(),
            (now() - HOUR).to_be_bytes().to_vec(),
            vec![0x91, 0xa6],
            text("hello"),
        ];
        hset(server, &key("popped", q), id_of(now() - HOUR, 1).as_bytes(), &value.concat());
        server.cmd(["EXPIRE", &key("popped", q), "600000"]);
    }),
    ("copies-do-not-expire", "Q38", |server, q| {
        add_sound(server, q);
        hset(server, &key("popped", q), id_of(now() + HOUR, 1).as_bytes(), b"\x90");
    }),
    ("a-late-schedule", "Q39", |server, q| {
        add_sound(server, q);
        zadd(server, &key("schedules", q), now() - 2 * 60_000, b"nightly");
        hset(server, &key("schedule-records", q), b"nightly", b"every 3600000\n\n\x03hell\xef");
    }),
    ("a-schedule-without-a-record", "Q40", |server, q| {
        add_sound(server, q);
        zadd(server, &key("schedules", q), now() + HOUR, b"nightly");
    }),
    ("a-record-without-a-schedule", "Q40", |server, q| {
        add_sound(server, q);
        hset(server, &key("schedule-records", q), b"message", b"every 3600000\n\n\x03hell\xef");
        for name in ["a", "b"] {
            zadd(server, &key("schedules", q), now() + HOUR, name.as_bytes());
            hset(server, &key("schedule-records", q), name.as_bytes(), b"every 3600000\n\n\x03hell\xef");
        }
    }),
    ("stale-jobs", "Q41", |server, q| {
        add_sound(server, q);
        let times = (now() - 2 * HOUR).to_be_bytes();
        let field = [b"p", &times[2..], &times[2..], &entry("order-7", &text("hello"))].concat();
        hset(server, &key("jobs", q), b"order-7", &field);
    }),
    ("partitioned#7", "Q42", |server, q| {
        add_sound(server, q);
        server.cmd(["SET", "redelay:partitions:{partitioned}", "4"]);
    }),
    ("lost-replies", "K01", |server, q| {
        let of = |what: &'static str| {
            move |n| format!("redelay:{what}:{}:{}", super::tag(q), id_of(now() - HOUR, n))
        };
        let keys = (0..60).map(of("offered")).chain((0..60).map(of("returned")));
        let words = iter::once("MSET".to_owned()).chain(keys.flat_map(|key| [key, "1".to_owned()]));
        server.cmd(words);
    }),
    ("throttled", "K02", |server, q| {
        server.cmd(["SET", &format!("{}:id:order-7", key("throttle", q)), ""]);
    }),
    ("throttled by {a payload}", "K02", |server, q| {
        let payload = b"\xff\x00\x1b binary 'and' quoted \\ \"\n";
        server.cmd([
            b"SET".to_vec(),
            [format!("redelay:throttle::{q}:payload:").as_bytes(), payload].concat(),
            Vec::new(),
        ]);
    }),
    ("scratched", "K03", |server, q| {
        server.cmd(["SET", &key("scratch", q), ""]);
    }),
    ("gone", "K04", |server, q| {
        server.cmd(["HSET", &key("control", q), "seen", &(now() - 8 * 24 * HOUR).to_string()]);
        hset(server, &key("receipts", q), b"one", b"two");
    }),
];
