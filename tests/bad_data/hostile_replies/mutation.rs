//! What becomes of a reply.

use fastrand::Rng;

use redelay_support::resp::{length, string};

/// Numbers at the ends of their ranges, and others that no reply has.
const NUMBERS: [&str; 22] = [
    "0",
    "1",
    "-1",
    "2",
    "7",
    "16",
    "17",
    "255",
    "256",
    "65536",
    "4294967296",
    "9007199254740992",
    "9007199254740993",
    "1000000000000000",
    "999999999999999999",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "99999999999999999999",
    "-2",
    "00",
    "1e3",
];
/// Scores, times and other words that are read.
const WORDS: [&str; 26] = [
    "inf",
    "-inf",
    "+inf",
    "nan",
    "-nan",
    "1e308",
    "-1e308",
    "1e400",
    "0",
    "-0",
    "-1",
    "1795249257299",
    "9007199254740993",
    "9223372036854775807",
    "-9223372036854775808",
    "",
    " ",
    "x 1 2",
    "1 2 3 4",
    "a 9223372036854775807 inf",
    "a 1795249257299000 nan",
    "message",
    "OK",
    "PONG",
    "list",
    "q",
];
const ERRORS: [&str; 20] = [
    "ERR",
    "",
    "-",
    "ERR unknown command",
    "NOSCRIPT No matching script",
    "LOADING",
    "READONLY You can't write",
    "MASTERDOWN",
    "BUSY x",
    "NOAUTH Authentication required.",
    "WRONGPASS",
    "NOPERM no",
    "MOVED 1 127.0.0.1:1",
    "MOVED 99999 x",
    "ASK 1 127.0.0.1:1",
    "CLUSTERDOWN",
    "UNBLOCKED",
    "REDELAY no",
    "WRONGTYPE",
    "EXECABORT",
];
/// What RESP2 has not, and what looks like it.
const FOREIGN: [&str; 42] = [
    "_\r\n",
    "#t\r\n",
    "#f\r\n",
    "#x\r\n",
    ",1.5\r\n",
    ",inf\r\n",
    ",-inf\r\n",
    ",nan\r\n",
    "(3492890328409238509324850943850943825024385\r\n",
    "!5\r\nERR x\r\n",
    "=7\r\ntxt:abc\r\n",
    "=3\r\nabc\r\n",
    "=4\r\nabcd\r\n",
    "%1\r\n+a\r\n:1\r\n",
    "%1\r\n*0\r\n:1\r\n",
    "~2\r\n:1\r\n:1\r\n",
    "~1\r\n*0\r\n",
    "|1\r\n+a\r\n:1\r\n:2\r\n",
    ">2\r\n+message\r\n+a\r\n",
    ">3\r\n+message\r\n+a\r\n+b\r\n",
    ">3\r\n+pubsub\r\n+message\r\n+a\r\n",
    "*3\r\n+message\r\n+a\r\n:1\r\n",
    "*3\r\n+message\r\n*0\r\n*0\r\n",
    "*4\r\n+pmessage\r\n+a\r\n+b\r\n+c\r\n",
    "*3\r\n+subscribe\r\n+a\r\n:-1\r\n",
    "*3\r\n+unsubscribe\r\n$-1\r\n:0\r\n",
    "*3\r\n+smessage\r\n+a\r\n+b\r\n",
    "*3\r\n+message\r\n+__keyspace@0__:q\r\n+set\r\n",
    "*3\r\n+message\r\n+__keyevent@999__:q\r\n+q\r\n",
    "*2\r\n+invalidate\r\n*1\r\n+a\r\n",
    "*?\r\n:1\r\n.\r\n",
    "$?\r\n;1\r\na\r\n;0\r\n",
    "%?\r\n+a\r\n:1\r\n.\r\n",
    "~?\r\n.\r\n",
    ".\r\n",
    "HELLO 3\r\n",
    "HELLO 3 AUTH a b\r\n",
    "HELLO 2 AUTH a b SETNAME c\r\n",
    "HTTP/1.1 400 Bad Request\r\n\r\n",
    "*-2\r\n",
    "$-2\r\n",
    "*1\r\n*-1\r\n",
];

/// A mutation of a reply: one or more frames, or none. `others` were replies to other commands.
pub(crate) fn mutate(random: &mut Rng, frame: &[u8], others: &[Vec<u8>]) -> Vec<u8> {
    let mut choose = |from: &[&'static str]| from[random.usize(..from.len())];
    let (number, word, error, foreign) =
        (choose(&NUMBERS), choose(&WORDS), choose(&ERRORS), choose(&FOREIGN));
    match random.u32(0..100) {
        0..25 => replace(random, frame, |kind| match kind {
            b':' => Some(format!(":{number}\r\n").into()),
            b'$' | b'+' => Some(string(word)),
            _ => None,
        }),
        25..37 => replace(random, frame, |kind| match kind {
            b':' => Some(string(number)),
            b'$' => Some(format!(":{number}\r\n").into()),
            _ => Some(b"$-1\r\n".into()),
        }),
        37..47 => random.choice(others).cloned().unwrap_or_default(),
        47..53 => format!("-{error}\r\n").into(),
        53..55 => {
            [b"-ERR ".to_vec(), vec![random.u8(..); random.usize(..100_000)], b"\r\n".to_vec()].concat()
        }
        55..65 => foreign.into(),
        65..68 => replace(random, frame, |_| Some(foreign.into())),
        68..72 => [b"*1\r\n".repeat(random.usize(1..=64)), frame.to_vec()].concat(),
        72..75 => [frame, frame].concat(),
        75..77 => Vec::new(),
        77..80 => grow(random, frame),
        80..90 => flip(random, frame),
        90..93 => frame[..random.usize(..=frame.len())].to_vec(),
        // Lengths and numbers wherever they are.
        93..97 => {
            let heads: Vec<_> = (0..frame.len()).filter(|at| b"$*:".contains(&frame[*at])).collect();
            let Some(&at) = random.choice(&heads) else { return flip(random, frame) };
            let end = frame[at..].iter().position(|byte| *byte == b'\r').unwrap_or(frame.len() - at);
            [&frame[..=at], number.as_bytes(), &frame[at + end..]].concat()
        }
        _ => (0..random.usize(..200)).map(|_| random.u8(..)).collect(),
    }
}

/// Whether the client may have to wait for more, or lose its place.
pub(crate) fn is_ragged(frames: &[u8]) -> bool {
    let mut at = 0;
    while let Some(length) = length(&frames[at..]) {
        at += length;
    }
    at < frames.len()
}

fn flip(random: &mut Rng, frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    for _ in 0..random.usize(1..4) {
        let at = random.usize(..frame.len().max(1));
        if let Some(byte) = frame.get_mut(at) {
            *byte ^= 1 << random.u32(..8);
        }
    }
    frame
}

/// One more element in the outer array, or one less, which is the next reply then.
fn grow(random: &mut Rng, frame: &[u8]) -> Vec<u8> {
    let end = frame.iter().position(|byte| *byte == b'\r').unwrap_or(0);
    let count = std::str::from_utf8(&frame[1..end.max(1)]).ok().and_then(|count| count.parse::<i64>().ok());
    let Some(count) = count.filter(|_| frame[0] == b'*') else { return flip(random, frame) };
    let by = if random.bool() { 1 } else { -1 };
    let more = if by > 0 { string("more") } else { Vec::new() };
    [format!("*{}", (count + by).max(0)).into_bytes(), frame[end..].to_vec(), more].concat()
}

/// Replaces some of the values that are no arrays.
fn replace(random: &mut Rng, frame: &[u8], by: impl Fn(u8) -> Option<Vec<u8>>) -> Vec<u8> {
    let (mut out, mut at) = (Vec::new(), 0);
    let all = random.bool();
    while at < frame.len() {
        let rest = &frame[at..];
        if rest[0] == b'*' {
            let end = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |end| end + 1);
            out.extend(&rest[..end]);
            at += end;
            continue;
        }
        let Some(length) = length(rest) else { break };
        match by(rest[0]).filter(|_| all || random.u8(..3) == 0) {
            Some(other) => out.extend(other),
            None => out.extend(&rest[..length]),
        }
        at += length;
    }
    out
}
