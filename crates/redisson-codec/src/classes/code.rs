//! Which constants of an enum have bodies. Only the code that makes them says it.

use std::collections::HashMap;

use super::model::JavaClass;
use super::pool::{Input, Outcome, Pool};

/// Reads `new C; dup; …; putstatic NAME` of each constant: its class is the first one that is made since the
/// constant before it. Others are made for its arguments.
pub(super) fn bodies(code: &[u8], pool: &mut Pool<'_>, class: &mut JavaClass) -> Outcome<()> {
    let mut input = Input::new(code, 0);
    let constants = class.constants.iter().enumerate();
    let places: HashMap<_, _> = constants.map(|(at, found)| (found.name.clone().into_bytes(), at)).collect();
    let mut made = None;
    while input.left() > 0 {
        let at = input.at;
        match input.u1()? {
            // new
            0xbb => {
                let index = input.u2()?;
                made.get_or_insert(index);
            }
            // putstatic
            0xb3 => {
                let name = pool.field_of(input.u2()?);
                let place = name.and_then(|name| places.get(name));
                if let (Some(place), Some(index)) = (place, made.take()) {
                    let body = pool.class_of(index)?;
                    class.constants[*place].body = (body != class.name).then_some(body);
                }
            }
            // wide
            0xc4 => {
                let count = if input.u1()? == 0x84 { 4 } else { 2 };
                input.take(count)?;
            }
            // tableswitch, lookupswitch
            kind @ (0xaa | 0xab) => {
                let padding = 3 - at % 4;
                input.take(padding + 4)?;
                let first = input.u4()?;
                let size = match kind {
                    0xab => u64::from(first) * 8,
                    _ => (u64::from(input.u4()?.wrapping_sub(first)) + 1) * 4,
                };
                input.take(usize::try_from(size).unwrap_or(usize::MAX))?;
            }
            kind => {
                input.take(operands(kind))?;
            }
        }
    }
    Ok(())
}

/// How many bytes follow an instruction.
fn operands(kind: u8) -> usize {
    match kind {
        0x10 | 0x12 | 0x15..=0x19 | 0x36..=0x3a | 0xa9 | 0xbc => 1,
        0x11 | 0x13 | 0x14 | 0x84 | 0x99..=0xa8 | 0xb2..=0xb8 | 0xbb | 0xbd | 0xc0 | 0xc1 | 0xc6 | 0xc7 => 2,
        0xc5 => 3,
        0xb9 | 0xba | 0xc8 | 0xc9 => 4,
        _ => 0,
    }
}
