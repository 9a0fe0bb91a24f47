//! Numbers of any length in another base: from bytes to digits, and back.
//!
//! Limb by limb that takes time that grows with the square of the length: minutes for a megabyte, which
//! anybody may put into a payload. So only short pieces are converted like this. The rest is multiplication,
//! by Karatsuba's algorithm.

/// The base of limbs of 32 bits.
pub(super) const BINARY: u64 = 1 << 32;

/// The base of limbs of nine digits.
pub(super) const DECIMAL: u64 = 1_000_000_000;

/// The number of limbs up to which they are converted, or multiplied, in the plain way.
const SHORT: usize = 32;

/// The limbs of a number in another base. They are in order of significance, the least first, with no zero at
/// the end.
pub(super) fn convert<const FROM: u64, const TO: u64>(limbs: &[u32]) -> Vec<u32> {
    let mut parts: Vec<Vec<u32>> = limbs.chunks(SHORT).map(short::<FROM, TO>).collect();
    if parts.len() <= 1 {
        return parts.pop().unwrap_or_default();
    }
    // What a part is worth more than the one before it.
    let mut weight = short::<FROM, TO>(&[&[0; SHORT][..], &[1]].concat());
    while parts.len() > 1 {
        let pairs = parts.chunks_mut(2).map(|pair| match pair {
            [low, high] => {
                let mut sum = product::<TO>(high, &weight);
                add::<TO>(&mut sum, low, 0);
                sum
            }
            rest => rest.concat(),
        });
        parts = pairs.collect();
        if parts.len() > 1 {
            weight = product::<TO>(&weight, &weight);
        }
    }
    parts.pop().unwrap_or_default()
}

/// The same, of a few limbs.
fn short<const FROM: u64, const TO: u64>(limbs: &[u32]) -> Vec<u32> {
    let mut converted = Vec::with_capacity(limbs.len() + limbs.len() / 8 + 1);
    for &limb in limbs.iter().rev() {
        let mut carry = u64::from(limb);
        for digit in &mut converted {
            let sum = u64::from(*digit) * FROM + carry;
            *digit = (sum % TO) as u32;
            carry = sum / TO;
        }
        while carry > 0 {
            converted.push((carry % TO) as u32);
            carry /= TO;
        }
    }
    converted
}

fn product<const BASE: u64>(a: &[u32], b: &[u32]) -> Vec<u32> {
    let (long, less) = if a.len() < b.len() { (b, a) } else { (a, b) };
    if less.is_empty() {
        return Vec::new();
    }
    let mut product = if less.len() <= SHORT {
        columns::<BASE>(long, less)
    } else {
        let middle = long.len().div_ceil(2);
        let (low, high) = long.split_at(middle);
        let Some((other_low, other_high)) = less.split_at_checked(middle) else {
            let mut product = product::<BASE>(low, less);
            add::<BASE>(&mut product, &self::product::<BASE>(high, less), middle);
            return product;
        };
        let (below, above) = (self::product::<BASE>(low, other_low), self::product::<BASE>(high, other_high));
        let mut between = self::product::<BASE>(&sum::<BASE>(low, high), &sum::<BASE>(other_low, other_high));
        subtract::<BASE>(&mut between, &below);
        subtract::<BASE>(&mut between, &above);
        let mut product = below;
        add::<BASE>(&mut product, &between, middle);
        add::<BASE>(&mut product, &above, 2 * middle);
        product
    };
    trim(&mut product);
    product
}

/// One limb of the product after the other: each is a sum of products of two limbs.
fn columns<const BASE: u64>(long: &[u32], less: &[u32]) -> Vec<u32> {
    let mut product = Vec::with_capacity(long.len() + less.len());
    let mut carry = 0;
    for column in 0..(long.len() + less.len()).saturating_sub(1) {
        let first = column.saturating_sub(long.len() - 1);
        let last = column.min(less.len() - 1);
        let pairs = less[first..=last].iter().zip(long[column - last..=column - first].iter().rev());
        let sum: u128 = pairs.map(|(a, b)| u128::from(u64::from(*a) * u64::from(*b))).sum();
        let (limb, next) = split::<BASE>(sum + carry);
        product.push(limb);
        carry = next;
    }
    while carry > 0 {
        let (limb, next) = split::<BASE>(carry);
        product.push(limb);
        carry = next;
    }
    product
}

/// The lowest limb and what is above it, of less than 2^96. Divides 64 bits, since 128 would take a function
/// call.
fn split<const BASE: u64>(sum: u128) -> (u32, u128) {
    let (above, within) = ((1u128 << 64) / u128::from(BASE), (1u128 << 64) % u128::from(BASE));
    let (high, low) = ((sum >> 64) as u64, sum as u64);
    let rest = high * within as u64 + low % BASE;
    ((rest % BASE) as u32, u128::from(high) * above + u128::from(low / BASE) + u128::from(rest / BASE))
}

fn sum<const BASE: u64>(a: &[u32], b: &[u32]) -> Vec<u32> {
    let mut sum = a.to_vec();
    add::<BASE>(&mut sum, b, 0);
    sum
}

/// Adds a number, moved by a number of limbs.
fn add<const BASE: u64>(sum: &mut Vec<u32>, number: &[u32], moved: usize) {
    if sum.len() < moved + number.len() {
        sum.resize(moved + number.len(), 0);
    }
    let mut carry = 0;
    for (at, limb) in sum[moved..].iter_mut().enumerate() {
        if carry == 0 && at >= number.len() {
            return;
        }
        let total = u64::from(*limb) + u64::from(number.get(at).copied().unwrap_or(0)) + carry;
        (*limb, carry) = match total.checked_sub(BASE) {
            Some(rest) => (rest as u32, 1),
            None => (total as u32, 0),
        };
    }
    if carry > 0 {
        sum.push(1);
    }
}

/// Subtracts a number that is not greater.
fn subtract<const BASE: u64>(from: &mut [u32], number: &[u32]) {
    let mut borrow = 0;
    for (at, limb) in from.iter_mut().enumerate() {
        if borrow == 0 && at >= number.len() {
            return;
        }
        let less = u64::from(number.get(at).copied().unwrap_or(0)) + borrow;
        (*limb, borrow) = match u64::from(*limb).checked_sub(less) {
            Some(rest) => (rest as u32, 0),
            None => ((u64::from(*limb) + BASE - less) as u32, 1),
        };
    }
}

fn trim(limbs: &mut Vec<u32>) {
    let zeros = limbs.iter().rev().take_while(|limb| **limb == 0).count();
    limbs.truncate(limbs.len() - zeros);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn numbers(base: u64) -> impl Strategy<Value = Vec<u32>> {
        let limb = prop_oneof![
            4 => 0..base,
            1 => Just(0),
            1 => Just(base - 1),
        ];
        prop::collection::vec(limb, 0..400).prop_map(|limbs| {
            let mut limbs = limbs.into_iter().map(|limb| limb as u32).collect();
            trim(&mut limbs);
            limbs
        })
    }

    proptest! {
        #[test]
        fn as_limb_by_limb(binary in numbers(BINARY), decimal in numbers(DECIMAL)) {
            prop_assert_eq!(convert::<BINARY, DECIMAL>(&binary), short::<BINARY, DECIMAL>(&binary));
            prop_assert_eq!(convert::<DECIMAL, BINARY>(&decimal), short::<DECIMAL, BINARY>(&decimal));
        }

        #[test]
        fn there_and_back(binary in numbers(BINARY)) {
            let decimal = convert::<BINARY, DECIMAL>(&binary);
            prop_assert_eq!(convert::<DECIMAL, BINARY>(&decimal), binary);
        }
    }

    #[test]
    fn of_limbs_that_carry_most() {
        for length in [1, 31, 32, 33, 63, 64, 65, 127, 1000, 4097] {
            let binary = vec![u32::MAX; length];
            assert_eq!(convert::<BINARY, DECIMAL>(&binary), short::<BINARY, DECIMAL>(&binary));
            let decimal = vec![(DECIMAL - 1) as u32; length];
            assert_eq!(convert::<DECIMAL, BINARY>(&decimal), short::<DECIMAL, BINARY>(&decimal));
        }
    }
}
