//! The protocol, as far as it is needed to tell where a reply or a command ends.

/// How long the frame is with which these bytes begin; `None` if its end is missing, or if it is no frame of
/// a real server.
#[must_use]
pub fn length(bytes: &[u8]) -> Option<usize> {
    let (mut at, mut missing) = (0, 1_usize);
    while missing > 0 {
        let rest = bytes.get(at..)?;
        let end = rest.windows(2).position(|pair| pair == b"\r\n")?;
        let number = || std::str::from_utf8(&rest[1..end]).ok()?.parse::<i64>().ok();
        at += end + 2;
        missing -= 1;
        match rest[0] {
            b'$' => at += usize::try_from(number()?).map_or(0, |length| length + 2),
            b'*' => missing += usize::try_from(number()?).unwrap_or(0),
            b'+' | b'-' | b':' => {}
            _ => return None,
        }
    }
    (at <= bytes.len()).then_some(at)
}

/// Takes the complete frames off the front.
pub fn split(buffer: &mut Vec<u8>) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let mut at = 0;
    while let Some(length) = length(&buffer[at..]) {
        frames.push(buffer[at..at + length].to_vec());
        at += length;
    }
    buffer.drain(..at);
    frames
}

/// The name of a command: its first string.
#[must_use]
pub fn name(command: &[u8]) -> &[u8] {
    command.split(|byte| *byte == b'\n').nth(2).and_then(|line| line.strip_suffix(b"\r")).unwrap_or_default()
}

/// A bulk string.
#[must_use]
pub fn string(text: impl AsRef<[u8]>) -> Vec<u8> {
    let text = text.as_ref();
    [format!("${}\r\n", text.len()).as_bytes(), text, b"\r\n"].concat()
}

#[test]
fn frames_end_where_they_end() {
    let frames: [&[u8]; 6] =
        [b"+OK\r\n", b":-1\r\n", b"$-1\r\n", b"$2\r\n\r\n\r\n", b"*2\r\n*0\r\n$1\r\na\r\n", b"*-1\r\n"];
    let mut all = frames.concat();
    assert_eq!(split(&mut all), frames);
    assert!(all.is_empty());
    for part in [&b"*2\r\n:1\r\n"[..], b"$3\r\nab", b"+OK\r", b"%1\r\n:1\r\n:2\r\n", b"$x\r\n"] {
        assert_eq!(length(part), None);
    }
    assert_eq!(name(b"*2\r\n$4\r\nLLEN\r\n$1\r\nq\r\n"), b"LLEN");
}
