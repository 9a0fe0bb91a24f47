//! Random objects of the classes of `compat/values/src/zoo.rs`. With each codec for arbitrary Java objects,
//! they decode to what was encoded.

use codec::java::{
    self, BigDecimal, BigInteger, Date, Duration, Instant, LocalDate, LocalDateTime, LocalTime, Uuid,
};
use codec::{CborJackson, JsonJackson, Kryo5, MsgPackJackson};
use prop::collection::{btree_map, vec};
use prop::option::of;
use proptest::test_runner::TestCaseResult;

use super::jackson_values::values;
use super::kinds::{DayOfWeek, Moments};
use super::*;
use redelay_compat_values::zoo::*;

#[track_caller]
pub(super) fn same<T: Debug + PartialEq>(codec: &(impl Codec<T> + Debug), value: &T) -> TestCaseResult {
    let payload = codec.encode(value).map_err(|error| TestCaseError::fail(format!("{codec:?}: {error}")))?;
    let read = codec.decode(&payload).map_err(|error| TestCaseError::fail(format!("{codec:?}: {error}")))?;
    prop_assert_eq!(&read, value, "{:?}: {:02x?}", codec, payload);
    Ok(())
}

fn same_in_jackson<T: Debug + PartialEq>(value: &T) -> TestCaseResult
where
    JsonJackson: Codec<T>,
    CborJackson: Codec<T>,
    MsgPackJackson: Codec<T>,
{
    same(&JsonJackson, value)?;
    same(&CborJackson, value)?;
    same(&MsgPackJackson, value)
}

/// A text. Most are short, and some are as long as the texts with other encodings.
///
/// Boxed, because random objects contain many of them and are made on the stack.
fn texts() -> BoxedStrategy<String> {
    prop_oneof![
        8 => any::<String>(),
        4 => "[ -~]{0,70}",
        1 => ("[a-zé🚀]{1,3}", 900..2100usize).prop_map(|(piece, times)| piece.repeat(times)),
    ]
    .boxed()
}

fn chars() -> impl Strategy<Value = char> {
    any::<u16>().prop_filter_map("half of a surrogate pair", |unit| char::from_u32(unit.into()))
}

fn doubles() -> impl Strategy<Value = f64> {
    prop_oneof![8 => any::<f64>(), 1 => Just(f64::INFINITY), 1 => Just(f64::NEG_INFINITY)]
}

fn floats() -> impl Strategy<Value = f32> {
    prop_oneof![8 => any::<f32>(), 1 => Just(f32::INFINITY), 1 => Just(f32::NEG_INFINITY)]
}

/// A map without duplicate keys.
fn entries<V: Debug>(value: impl Strategy<Value = V>) -> impl Strategy<Value = Entries<String, V>> {
    btree_map(texts(), value, 0..4).prop_map(|entries| Entries(entries.into_iter().collect()))
}

fn list<T: Debug>(element: impl Strategy<Value = T>) -> impl Strategy<Value = Option<Vec<T>>> {
    of(vec(element, 0..4))
}

fn addresses() -> impl Strategy<Value = Address> {
    (of(texts()), any::<i32>(), of(texts())).prop_map(|(street, zip, city)| Address { street, zip, city })
}

fn lines() -> impl Strategy<Value = Line> {
    (of(texts()), any::<i32>(), doubles()).prop_map(|(sku, quantity, price)| Line { sku, quantity, price })
}

fn statuses() -> impl Strategy<Value = Status> {
    prop_oneof![Just(Status::New), Just(Status::Paid), Just(Status::Shipped), Just(Status::Closed)]
}

/// An order with or without nulls in `counts`, because Jackson leaves them out of maps.
fn orders(nulls: bool) -> impl Strategy<Value = Order> {
    let counts =
        of(entries(if nulls { of(any::<i32>()).boxed() } else { any::<i32>().prop_map(Some).boxed() }));
    let numbers =
        (any::<i64>(), any::<i32>(), doubles(), any::<bool>(), any::<Option<i64>>(), any::<Option<i32>>());
    let objects = (of(statuses()), of(addresses()), list(of(lines())));
    let others = (of(texts()), list(of(texts())), counts, any::<Option<Vec<u8>>>());
    (numbers, objects, others).prop_map(
        |(
            (id, items, total, paid, coupon_id, rank),
            (status, address, lines),
            (customer, tags, counts, blob),
        )| {
            Order {
                id,
                customer,
                items,
                total,
                paid,
                coupon_id,
                rank,
                status,
                address,
                lines,
                tags,
                counts,
                blob,
            }
        },
    )
}

fn refunds() -> impl Strategy<Value = RefundEvent> {
    let numbers = (any::<i64>(), any::<i64>(), any::<i16>(), floats(), any::<i8>(), chars());
    (of(texts()), of(texts()), numbers).prop_map(
        |(kind, reason, (at, order_id, attempt, ratio, flag, mark))| RefundEvent {
            kind,
            at,
            order_id,
            reason,
            attempt,
            ratio,
            flag,
            mark,
        },
    )
}

fn envelopes() -> impl Strategy<Value = Envelope> {
    let present = values().prop_filter("a null is left out of a map", |value| *value != java::Value::Null);
    (of(texts()), of(entries(present)), list(values()), values())
        .prop_map(|(kind, data, extra, payload)| Envelope { kind, data, extra, payload })
}

/// A ledger whose amounts have at most this number of decimals.
fn ledgers(scale: i32) -> impl Strategy<Value = Ledger> {
    let amounts = (any::<i64>(), 0..=scale).prop_map(|(unscaled, scale)| BigDecimal::new(unscaled, scale));
    let ids = any::<[u8; 16]>().prop_map(Uuid::from_bytes);
    let dates = any::<i64>().prop_map(Date::from_millis);
    let bigs = any::<i64>().prop_map(BigInteger::from);
    (of(amounts), of(ids), of(dates), of(bigs)).prop_map(|(amount, id, when, big)| Ledger {
        amount,
        id,
        when,
        big,
        note: None,
    })
}

fn days() -> impl Strategy<Value = LocalDate> {
    (-999_999_999..=999_999_999, 1..=12u8, 1..=31u8)
        .prop_filter_map("no such day", |(year, month, day)| LocalDate::new(year, month, day))
}

fn clocks() -> impl Strategy<Value = LocalTime> {
    // Trailing parts that are 0 are not written.
    let part = |end: u32| prop_oneof![Just(0), 0..end];
    (part(24), part(60), part(60), part(1_000_000_000)).prop_map(|(hour, minute, second, nano)| {
        LocalTime::new(hour as u8, minute as u8, second as u8, nano).unwrap()
    })
}

fn locals() -> impl Strategy<Value = LocalDateTime> {
    (days(), clocks()).prop_map(|(date, time)| LocalDateTime::new(date, time))
}

fn times() -> impl Strategy<Value = Times> {
    let instants = (-31_557_014_167_219_200..=31_556_889_864_403_199i64, 0..1_000_000_000u32)
        .prop_map(|(seconds, nanos)| Instant::new(seconds, nanos).unwrap());
    let gaps = (any::<i64>(), 0..1_000_000_000u32)
        .prop_map(|(seconds, nanos)| Duration::new(seconds, nanos).unwrap());
    (of(instants), of(locals()), of(days()), of(gaps)).prop_map(|(instant, local, day, gap)| Times {
        instant,
        local,
        day,
        gap,
    })
}

fn offsets() -> impl Strategy<Value = String> {
    let seconds = prop_oneof![Just(0), (-72..=72).prop_map(|quarters| quarters * 900), -64_800..=64_800];
    seconds.prop_map(|seconds: i32| {
        let (sign, all) = (if seconds < 0 { '-' } else { '+' }, seconds.abs());
        match (all, all % 60) {
            (0, _) => "Z".to_owned(),
            (_, 0) => format!("{sign}{:02}:{:02}", all / 3600, all / 60 % 60),
            (_, second) => format!("{sign}{:02}:{:02}:{second:02}", all / 3600, all / 60 % 60),
        }
    })
}

fn moments() -> impl Strategy<Value = Moments> {
    let zones = prop_oneof![Just("Europe/Berlin"), Just("UTC"), Just("GMT+02:00")];
    let at = || (locals(), offsets()).prop_map(|(at, offset)| format!("{at}{offset}"));
    let zoned = (locals(), zones.clone()).prop_map(|(at, zone)| format!("{at}[{zone}]"));
    let times = (clocks(), offsets()).prop_map(|(time, offset)| format!("{time}{offset}"));
    let years = || (1000..=9999).prop_map(|year: i32| year.to_string());
    let months = || (years(), 1..=12).prop_map(|(year, month)| format!("{year}-{month:02}"));
    let monthdays = (1..=12, 1..=28).prop_map(|(month, day)| format!("--{month:02}-{day:02}"));
    let count = || any::<i32>().prop_filter("0 is left out", |count| *count != 0);
    let periods = || (count(), count(), count()).prop_map(|(y, m, d)| format!("P{y}Y{m}M{d}D"));
    let zoned = prop_oneof![zoned, at()];
    let kinds = prop_oneof!["int|long|java.lang.(String|Integer)", r"[a-z]{1,9}(\.[A-Z][a-z$1]{1,9}){1,3}"];
    let locales = "[a-z]{2,3}|[a-z]{2}_[A-Z]{2}|[a-z]{2}_([A-Z]{2})?_[A-Z_]{0,5}[A-Z]";
    let gaps = btree_map(months(), periods(), 0..3)
        .prop_map(|gaps| Entries(gaps.into_iter().map(|(month, gap)| (month.into(), gap.into())).collect()));
    let lists = (list(of(at().prop_map_into())), list(of(years().prop_map_into())), of(gaps));
    let days = (of(years()), of(months()), of(monthdays), of(periods()));
    let others = (of(locales), of(kinds.prop_map_into()), of(Just(DayOfWeek::Friday)));
    let zoned = (of(zoned), of(at()), of(times), of(offsets()), of(zones.prop_map_into()));
    (zoned, days, others, lists).prop_map(
        |((zoned, at, time, offset, zone), (year, month, day, period), (locale, kind, weekday), lists)| {
            let (all, years, gaps) = lists;
            Moments {
                zoned,
                at,
                time,
                offset,
                zone,
                year,
                month,
                day,
                period,
                locale,
                kind,
                weekday,
                all,
                years,
                gaps,
            }
        },
    )
}

/// Jackson leaves the nulls out of `groups` and `tree`.
fn nested(nulls: bool) -> impl Strategy<Value = Nested> {
    let numbers = list(of(any::<i32>()));
    let (groups, tree) = match nulls {
        true => (numbers.boxed(), of(texts()).boxed()),
        false => (vec(of(any::<i32>()), 0..4).prop_map(Some).boxed(), texts().prop_map(Some).boxed()),
    };
    let lists = (list(of(vec(of(texts()), 0..4))), list(of(texts())));
    let arrays = (any::<Option<Vec<i32>>>(), list(of(texts())), any::<Option<Vec<i64>>>(), list(of(lines())));
    (lists, of(entries(groups)), arrays, list(of(any::<i32>())), of(entries(tree))).prop_map(
        |((grid, names), groups, (ints, words, longs, lines), linked, tree)| Nested {
            grid,
            groups,
            names,
            ints,
            words,
            longs,
            lines,
            linked,
            tree,
        },
    )
}

fn boxes() -> impl Strategy<Value = Boxes> {
    let integers = (any::<Option<i32>>(), any::<Option<i64>>(), any::<Option<i16>>(), any::<Option<i8>>());
    (integers, of(doubles()), of(floats()), any::<Option<bool>>(), of(chars()))
        .prop_map(|((i, l, s, y), d, f, b, c)| Boxes { i, l, d, f, b, s, y, c })
}

fn points() -> impl Strategy<Value = Point> {
    (any::<i32>(), any::<i32>(), of(texts())).prop_map(|(x, y, label)| Point { x, y, label })
}

proptest! {
    #[test]
    fn orders_come_back(order in orders(true), without_nulls in orders(false)) {
        same(&Kryo5, &order)?;
        same(&Kryo5, &vec![Some(order), None])?;
        same_in_jackson(&without_nulls)?;
        same_in_jackson(&vec![Some(without_nulls), None])?;
    }

    #[test]
    fn events_come_back(refund in refunds(), envelope in envelopes()) {
        same(&Kryo5, &refund)?;
        same_in_jackson(&refund)?;
        same(&Kryo5, &envelope)?;
        same_in_jackson(&envelope)?;
    }

    #[test]
    fn ledgers_come_back(ledger in ledgers(1000), short in ledgers(30), whole in ledgers(0), note in of(of(texts()))) {
        same(&Kryo5, &Ledger { note: note.map(java::optional::Of), ..ledger })?;
        same(&JsonJackson, &short)?;
        same(&CborJackson, &short)?;
        // It has no decimals.
        same(&MsgPackJackson, &whole)?;
    }

    #[test]
    fn times_come_back(times in times(), moments in moments()) {
        same(&Kryo5, &times)?;
        same(&Kryo5, &moments)?;
    }

    #[test]
    fn nested_ones_come_back(nested in nested(true), without_nulls in nested(false)) {
        same(&Kryo5, &nested)?;
        same_in_jackson(&without_nulls)?;
    }

    #[test]
    fn numbers_come_back(boxes in boxes(), point in points()) {
        same(&Kryo5, &boxes)?;
        same_in_jackson(&boxes)?;
        same(&Kryo5, &point)?;
        same_in_jackson(&point)?;
    }
}
