//! Truncated, changed and random payloads, which Redisson did not write.

use codec::Kryo5;
use codec::java::{BigInteger, Value};

use super::hostile::{made_up, survives};
use super::kinds::Moments;
use super::*;
use redelay_compat_values::tasks::{Batch, Job, Payments, Task};
use redelay_compat_values::zoo::*;

/// As one of these types.
const TYPES: &[fn(&[u8])] = &[
    |payload| survives::<Value>(&Kryo5, payload),
    |payload| survives::<Order>(&Kryo5, payload),
    |payload| survives::<RefundEvent>(&Kryo5, payload),
    |payload| survives::<Envelope>(&Kryo5, payload),
    |payload| survives::<Ledger>(&Kryo5, payload),
    |payload| survives::<Times>(&Kryo5, payload),
    |payload| survives::<Moments>(&Kryo5, payload),
    |payload| survives::<Nested>(&Kryo5, payload),
    |payload| survives::<Boxes>(&Kryo5, payload),
    |payload| survives::<Point>(&Kryo5, payload),
    |payload| survives::<Status>(&Kryo5, payload),
    |payload| survives::<Vec<Value>>(&Kryo5, payload),
    |payload| survives::<String>(&Kryo5, payload),
    |payload| survives::<Job>(&Kryo5, payload),
    |payload| survives::<Task>(&Kryo5, payload),
    |payload| survives::<Batch>(&Kryo5, payload),
    |payload| survives::<Payments>(&Kryo5, payload),
];

fn survive(payload: &[u8]) {
    TYPES.iter().for_each(|survive| survive(payload));
}

fn payloads() -> Vec<Vec<u8>> {
    let files = ["kryo5", "kryo5-kinds", "kryo5-classes"];
    files.into_iter().flat_map(rows).map(|row| row.payload).collect()
}

#[test]
fn cut_off_anywhere() {
    for payload in payloads() {
        for end in 0..payload.len() {
            survive(&payload[..end]);
        }
    }
}

#[test]
fn one_bit_changed_anywhere() {
    for (seed, mut payload) in payloads().into_iter().enumerate() {
        for at in 0..payload.len() {
            let bit = 1 << ((at + seed) % 8);
            payload[at] ^= bit;
            survive(&payload);
            payload[at] ^= bit;
        }
    }
}

#[test]
fn made_up_kryo() {
    made_up(&payloads(), &[0, 1, 2, 3, 4, 0x7f, 0x80, 0x81, 0xff], TYPES);
}

#[test]
fn claims_are_checked() {
    let list = b"\x01\x00java.util.ArrayLis\xf4";
    let value = |payload: &[u8]| error(Codec::<Value>::decode(&Kryo5, payload));
    let ints = |payload: &[u8]| error(Codec::<Vec<Option<i32>>>::decode(&Kryo5, payload));
    // As many nulls as a length can announce, in five bytes.
    let nulls = [&list[..], b"\xff\xff\xff\xff\x7f\x00"].concat();
    for error in [value(&nulls), ints(&nulls)] {
        assert!(error.contains("elements are announced before offset 26, with 1 bytes behind it"), "{error}");
    }
    // Lists of nulls: each is short enough, but not all of them together.
    let list_of_nulls = [&b"\x01\x00"[..], b"\xff\xff\x07\x00"].concat();
    let many = [&list[..], b"\x06", &list_of_nulls.repeat(5)].concat();
    let error = value(&many);
    assert!(error.contains("elements without bytes") || error.contains("announced"), "{error}");
    // A thousand nulls are an ordinary list.
    let thousand: Vec<Option<i32>> = vec![None; 1000];
    let again: Vec<Option<i32>> = Kryo5.decode(&Kryo5.encode(&thousand).unwrap()).unwrap();
    assert_eq!(again, thousand);
    for payload in [
        &b"\x01\x005[B\xff\xff\xff\xff\x0f"[..],
        b"\x03\xff\xff\xff\xff\x7f",
        b"\x01\x00[\xc9\xff\xff\xff\xff\x0f",
        b"\x01\x00java.util.BitSe\xf4\xff\xff\xff\xff\x0f",
        b"\x01\x00java.util.BitSe\xf4\x02\x00\x00\x00\x00\x00\x00\x00\x00",
    ] {
        value(payload);
    }
}

#[test]
fn deep_nesting() {
    // What is too deep is kept, if it is the whole payload.
    let kept = |payload: Vec<u8>| {
        let value: Value = Kryo5.decode(&payload).unwrap();
        assert!(matches!(value, Value::Opaque(_)), "{value}");
        assert_eq!(Kryo5.encode(&value).unwrap(), payload);
    };
    let nested = |levels: usize| {
        // A list of one list. Its class is named at its first occurrence.
        let mut payload = b"\x01\x00java.util.ArrayLis\xf4".to_vec();
        (1..levels).for_each(|_| payload.extend(b"\x82\x01\x00\x00"));
        payload.push(1);
        payload
    };
    assert!(Codec::<Value>::decode(&Kryo5, &nested(127)).is_ok());
    for levels in [128, 100_000] {
        kept(nested(levels));
    }
    let typed = error(Codec::<Vec<Value>>::decode(&Kryo5, &nested(128)));
    assert!(typed.contains("more than 127 levels at offset"), "{typed}");
    // An `AtomicReference` of an `AtomicReference`, two bytes a level.
    let references = |levels: usize| {
        let name = &b"\x01\x00java.util.concurrent.atomic.AtomicReferenc\xe5"[..];
        [name, &b"\x01\x00".repeat(levels - 1), b"\x00"].concat()
    };
    let deep: Value = Kryo5.decode(&references(127)).unwrap();
    assert_eq!(Kryo5.encode(&deep).unwrap(), references(127));
    for levels in [128, 100_000] {
        kept(references(levels));
    }
    let mut value = Value::Null;
    (0..128).for_each(|_| value = Value::list([std::mem::replace(&mut value, Value::Null)]));
    let error = error(Kryo5.encode(&value));
    assert!(error.contains("more than 127 levels"), "{error}");
}

#[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename = "com.acme.Tree")]
struct Tree {
    next: Option<Box<Tree>>,
    number: Option<i32>,
    texts: Vec<String>,
}

#[test]
fn types_that_hold_themselves() {
    let grow = |levels| {
        (1..levels).fold(Tree { next: None, number: None, texts: vec![] }, |next, number| Tree {
            next: Some(Box::new(next)),
            number: Some(number),
            texts: vec![number.to_string()],
        })
    };
    let tree = grow(126);
    assert_eq!(Codec::<Tree>::decode(&Kryo5, &Kryo5.encode(&tree).unwrap()).unwrap(), tree);
    assert!(error(Kryo5.encode(&grow(128))).contains("more than 127 levels"));
    // One level is 5 bytes.
    let payload = [&b"\x01\x00com.acme.Tre\xe5"[..], &b"\x01\x00".repeat(50_000)].concat();
    assert!(error(Codec::<Tree>::decode(&Kryo5, &payload)).contains("more than 127 levels"));
}

#[test]
fn errors_say_where_and_quote_nothing() {
    let says = |error: String, words: &str| {
        assert!(error.contains(words) && !error.contains("SECRET"), "{error}");
    };
    says(
        error(Codec::<i32>::decode(&Kryo5, b"\x03SECRE\xd4")),
        "expected the class `java.lang.Integer`, found `java.lang.String`, before offset 1",
    );
    says(error(Codec::<i32>::decode(&Kryo5, b"\x02\x02SECRET")), "6 bytes follow it at offset 2");
    says(error(Codec::<i32>::decode(&Kryo5, b"")), "it ends at offset 0");
    says(
        error(Codec::<i32>::decode(&Kryo5, b"\x00")),
        "expected `java.lang.Integer`, found a null before offset 1",
    );
    says(
        error(Codec::<i32>::decode(&Kryo5, b"\x0b")),
        "class id 11 at offset 0, but no class is registered under it",
    );
    says(
        error(Codec::<Status>::decode(&Kryo5, b"\x01\x00com.acme.Zoo$Statu\xf3\x05")),
        "expected one of the 4 constants of `com.acme.Zoo$Status` at offset 21, found the number 5",
    );
    says(
        error(Codec::<Point>::decode(&Kryo5, b"\x01\x00com.acme.Othe\xf2")),
        "expected the class `com.acme.Zoo$Point`, found `com.acme.Other`, before offset 16",
    );
    says(error(Kryo5.encode(&'🚀')), "a character beyond U+FFFF");
    says(error(Kryo5.encode(&7u32)), "`u32` has no Java type: use `i32` or `i64`");
}

proptest! {
    #[test]
    fn any_bytes(payload: Vec<u8>) {
        survive(&payload);
    }
}

/// Digit by digit, a number of 1 MB took minutes to print, and anybody may send one. In a release build, 200
/// kB take half a second, where they took five.
#[test]
#[ignore = "measures"]
fn long_numbers() {
    for bytes in [2_000, 20_000, 200_000, 1_000_000] {
        let number = BigInteger::from_be_bytes(&vec![0x5a; bytes]);
        let begun = std::time::Instant::now();
        let text = number.to_string();
        let printed = begun.elapsed();
        assert_eq!(text.parse(), Ok(number));
        println!("{bytes} bytes: printed in {printed:?}, parsed in {:?}", begun.elapsed() - printed);
    }
}

#[test]
fn longer_numbers_are_refused() {
    let number = |bytes: usize| BigInteger::from_be_bytes(&vec![0x5a; bytes]);
    let most = Kryo5.encode(&number(65_536)).unwrap();
    assert_eq!(Codec::<BigInteger>::decode(&Kryo5, &most).unwrap(), number(65_536));
    assert!(error(Kryo5.encode(&number(65_537))).contains("65537 bytes, where 65536 are read again"));
    let refused = error(Codec::<Value>::decode(&Kryo5, &longer(&most)));
    assert!(
        refused.contains("expected a number of at most 65536 bytes at offset 22, found 65537"),
        "{refused}"
    );
}

/// The same number with a byte more, which is announced in three, after the class.
fn longer(payload: &[u8]) -> Vec<u8> {
    let head = payload.len() - 65_536 - 3;
    let length = 65_537 + 1;
    let announced = [length as u8 | 0x80, (length >> 7) as u8 | 0x80, (length >> 14) as u8];
    [&payload[..head], &announced, &payload[head + 3..], &[0]].concat()
}

/// Its error asks whether this is the name of a class.
#[test]
fn a_name_of_an_array_of_an_array() {
    for levels in [10, 20_000] {
        let name = ["[L".repeat(levels), "a.B".into(), ";".repeat(levels - 1)].concat();
        let payload = [&b"\x01\x00"[..], name.as_bytes(), b"\xbb"].concat();
        assert!(
            error(Codec::<i32>::decode(&Kryo5, &payload)).contains("expected the class `java.lang.Integer`")
        );
        assert!(Codec::<i32>::decode(&codec::Json, &payload).is_err());
    }
}

/// A class is named once, and its name is in memory wherever an object has it.
#[test]
fn long_names_of_classes() {
    let refused = |payload: &[u8], words: &str| {
        let error = error(Codec::<Value>::decode(&Kryo5, payload));
        assert!(error.contains(words) && error.contains("offset"), "{error}");
    };
    let list = |class: &[u8], first: &[u8], element: &[u8], count: usize| {
        let length = count + 1;
        let length = [length as u8 & 0x3f | 0x40, (length >> 6) as u8 | 0x80, (length >> 13) as u8];
        let list = &b"\x01\x00java.util.ArrayLis\xf4"[..];
        [list, &length, b"\x01\x01", class, first, &element.repeat(count - 1)].concat()
    };
    let long = "x".repeat(60_000);
    let too_much = "the names of their classes";
    // Empty arrays, sets of no constant, and classes.
    let array = format!("[Lcom.acme.{long}\u{bb}");
    let array: Vec<u8> = array.chars().map(|c| c as u8).collect();
    refused(&list(&array, b"\x01", b"\x01\x01\x01", 2000), too_much);
    let set = |count: usize| {
        let length = count + 1;
        let length = [length as u8 & 0x3f | 0x40, (length >> 6) as u8 | 0x80, (length >> 13) as u8];
        let first =
            [&b"\x01\x01java.util.RegularEnumSe\xf4\x01\x02com.acme."[..], long.as_bytes(), b"\xf8\x00"]
                .concat();
        let list = &b"\x01\x00java.util.ArrayLis\xf4"[..];
        [list, &length, &first, &b"\x01\x01\x01\x02\x00".repeat(count - 1)].concat()
    };
    let few: Value = Kryo5.decode(&set(100)).unwrap();
    assert_eq!(few.elements().unwrap().len(), 100);
    refused(&set(2000), too_much);
    // The arrays in an array are of the rest of its class.
    let arrays = |levels: usize, count: usize| {
        let length = count + 1;
        let length = [length as u8 | 0x80, (length >> 7) as u8 | 0x80, (length >> 14) as u8];
        let name = [&b"[".repeat(levels)[..], b"\xc9"].concat();
        [&b"\x01\x00"[..], &name, &length, &b"\x01".repeat(count)].concat()
    };
    assert!(Codec::<Value>::decode(&Kryo5, &arrays(255, 100)).is_ok());
    refused(&arrays(256, 1), "an array of more than 255 dimensions");
    refused(&arrays(60_000, 2000), "an array of more than 255 dimensions");
    // No class of Java has such a name.
    let name = [&b"\x01\x00"[..], &b"x".repeat(65_535), b"\xf8"].concat();
    refused(&name, "a class with a name of more than 65535 bytes");
}
