//! [`BigInteger`] and [`BigDecimal`]: numbers of any length, as Java stores them. They do not calculate.

mod radix;

use std::fmt::{self, Write as _};
use std::str::FromStr;

use radix::{BINARY, DECIMAL};

use super::ParseError;
use super::exact;
use super::value_slot::{Plain, scalar};

/// A `java.math.BigInteger`: an integer of any length.
///
/// To print or parse it takes less than quadratic time, but not linear time: seconds for a megabyte.
///
/// It carries the number and does not calculate. The feature `num-bigint-0-5` converts it; for any other
/// crate, [`as_be_bytes`](Self::as_be_bytes) and [`from_be_bytes`](Self::from_be_bytes) use signed big-endian
/// bytes.
///
/// # Examples
/// ```
/// use redisson_codec::java::BigInteger;
///
/// let number: BigInteger = "123456789012345678901234567890".parse()?;
/// assert_eq!(number.to_string(), "123456789012345678901234567890");
/// assert_eq!(BigInteger::from(-1).as_be_bytes(), [0xff]);
/// # Ok::<(), redisson_codec::java::ParseError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct BigInteger {
    /// Two's complement in the fewest bytes that hold the number, at least one.
    bytes: Vec<u8>,
}

impl BigInteger {
    /// The number with these bytes in two's complement, the most significant first. No bytes are 0.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::java::BigInteger;
    ///
    /// assert_eq!(BigInteger::from_be_bytes(&[0x01, 0x00]), BigInteger::from(256));
    /// ```
    #[must_use]
    pub fn from_be_bytes(bytes: &[u8]) -> Self {
        let redundant = |pair: &&[u8]| {
            matches!(pair, [0, low] if *low < 0x80) || matches!(pair, [0xff, low] if *low >= 0x80)
        };
        let skip = bytes.windows(2).take_while(redundant).count();
        let bytes = if bytes.is_empty() { vec![0] } else { bytes[skip..].to_vec() };
        Self { bytes }
    }

    /// The number in two's complement, the most significant byte first, in the fewest bytes.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::java::BigInteger;
    ///
    /// assert_eq!(BigInteger::from(128).as_be_bytes(), [0x00, 0x80]);
    /// ```
    #[must_use]
    pub fn as_be_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The number as an `i128`, if it is in its range.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::java::BigInteger;
    ///
    /// assert_eq!(BigInteger::from(-5).to_i128(), Some(-5));
    /// ```
    #[must_use]
    pub fn to_i128(&self) -> Option<i128> {
        let mut wide = if self.is_negative() { [0xff; 16] } else { [0; 16] };
        let from = wide.len().checked_sub(self.bytes.len())?;
        wide[from..].copy_from_slice(&self.bytes);
        Some(i128::from_be_bytes(wide))
    }

    fn is_negative(&self) -> bool {
        self.bytes[0] >= 0x80
    }

    /// The digits without the sign.
    fn magnitude(&self) -> String {
        // Most are short, and the standard library is faster.
        if let Some(number) = self.to_i128() {
            let magnitude = number.unsigned_abs();
            return u64::try_from(magnitude)
                .map_or_else(|_| magnitude.to_string(), |short| short.to_string());
        }
        // Limbs of the magnitude, the most significant first.
        let sign = if self.is_negative() { 0xff } else { 0 };
        let padding = (4 - self.bytes.len() % 4) % 4;
        let bytes: Vec<u8> = std::iter::repeat_n(sign, padding).chain(self.bytes.iter().copied()).collect();
        let mut limbs: Vec<u32> =
            bytes.chunks(4).map(|four| u32::from_be_bytes([four[0], four[1], four[2], four[3]])).collect();
        if self.is_negative() {
            let mut carry = true;
            for limb in limbs.iter_mut().rev() {
                (*limb, carry) = (!*limb).overflowing_add(u32::from(carry));
            }
            // The most negative number of this length has no positive one beside it.
            if carry {
                limbs.insert(0, 1);
            }
        }
        limbs.reverse();
        limbs.truncate(limbs.len() - limbs.iter().rev().take_while(|limb| **limb == 0).count());
        let mut groups = radix::convert::<BINARY, DECIMAL>(&limbs).into_iter().rev();
        let Some(first) = groups.next() else { return "0".to_owned() };
        let mut text = first.to_string();
        for group in groups {
            // Writing into a text does not fail.
            let _ = write!(text, "{group:09}");
        }
        text
    }
}

impl fmt::Debug for BigInteger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BigInteger({self})")
    }
}

impl fmt::Display for BigInteger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad_integral(!self.is_negative(), "", &self.magnitude())
    }
}

impl FromStr for BigInteger {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (negative, digits) = match text.as_bytes() {
            [b'-', digits @ ..] => (true, digits),
            [b'+', digits @ ..] => (false, digits),
            digits => (false, digits),
        };
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return Err(ParseError::new("an integer"));
        }
        // Most are short, and the standard library is faster.
        if let Ok(short) = text.parse::<i64>() {
            return Ok(short.into());
        }
        // Nine digits each, the least significant first.
        let group =
            |group: &[u8]| group.iter().fold(0, |number, digit| number * 10 + u32::from(digit - b'0'));
        let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
        let groups: Vec<u32> = digits[zeros..].rchunks(9).map(group).collect();
        let mut limbs = radix::convert::<DECIMAL, BINARY>(&groups);
        // A limb for the sign.
        limbs.push(0);
        if negative {
            let mut carry = true;
            for limb in &mut limbs {
                (*limb, carry) = (!*limb).overflowing_add(u32::from(carry));
            }
        }
        let bytes: Vec<u8> = limbs.iter().rev().flat_map(|limb| limb.to_be_bytes()).collect();
        Ok(Self::from_be_bytes(&bytes))
    }
}

macro_rules! from {
    ($($kind:ty)*) => {$(
        impl From<$kind> for BigInteger {
            fn from(number: $kind) -> Self {
                Self::from_be_bytes(&number.to_be_bytes())
            }
        }
    )*};
}

from!(i32 i64 i128);

/// A `java.math.BigDecimal`: an integer of any length and the number of its digits behind the point. So
/// `1.50` and `1.5` are different values.
///
/// # Examples
/// ```
/// use redisson_codec::java::BigDecimal;
///
/// let amount: BigDecimal = "12345.60".parse()?;
/// assert_eq!((amount.unscaled().to_i128(), amount.scale()), (Some(1_234_560), 2));
/// assert_eq!(amount.to_string(), "12345.60");
/// # Ok::<(), redisson_codec::java::ParseError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct BigDecimal {
    unscaled: BigInteger,
    scale: i32,
}

impl BigDecimal {
    /// The number `unscaled` / 10^`scale`.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::java::BigDecimal;
    ///
    /// assert_eq!(BigDecimal::new(1250, 2).to_string(), "12.50");
    /// ```
    #[must_use]
    pub fn new(unscaled: impl Into<BigInteger>, scale: i32) -> Self {
        Self { unscaled: unscaled.into(), scale }
    }

    /// All digits, without the point.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::java::{BigDecimal, BigInteger};
    ///
    /// assert_eq!(BigDecimal::new(1250, 2).unscaled(), &BigInteger::from(1250));
    /// ```
    #[must_use]
    pub fn unscaled(&self) -> &BigInteger {
        &self.unscaled
    }

    /// The number of digits behind the point. Negative for zeros in front of the point.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::java::BigDecimal;
    ///
    /// assert_eq!("1E+3".parse::<BigDecimal>()?.scale(), -3);
    /// # Ok::<(), redisson_codec::java::ParseError>(())
    /// ```
    #[must_use]
    pub fn scale(&self) -> i32 {
        self.scale
    }
}

/// As `BigDecimal.toString` prints it: with an exponent where the scale is negative, or where there would be
/// more than five zeros behind the point.
impl fmt::Display for BigDecimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.unscaled.magnitude();
        if self.unscaled.is_negative() {
            f.write_str("-")?;
        }
        let (length, scale) = (digits.len() as i64, i64::from(self.scale));
        // Of the first digit.
        let exponent = length - 1 - scale;
        if scale == 0 {
            return f.write_str(&digits);
        }
        if scale > 0 && exponent >= -6 {
            return match length - scale {
                front @ 1.. => {
                    let (front, behind) = digits.split_at(front as usize);
                    write!(f, "{front}.{behind}")
                }
                zeros => write!(f, "0.{}{digits}", "0".repeat(-zeros as usize)),
            };
        }
        let (first, more) = digits.split_at(1);
        let point = if more.is_empty() { "" } else { "." };
        write!(f, "{first}{point}{more}E{exponent:+}")
    }
}

impl fmt::Debug for BigDecimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BigDecimal({self})")
    }
}

impl FromStr for BigDecimal {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let wrong = || ParseError::new("a decimal number");
        let (number, exponent) = match text.split_once(['e', 'E']) {
            Some((number, exponent)) => (number, exponent.parse::<i32>().map_err(|_| wrong())?),
            None => (text, 0),
        };
        let (front, behind) = number.split_once('.').unwrap_or((number, ""));
        if behind.starts_with(['+', '-']) {
            return Err(wrong());
        }
        let unscaled = format!("{front}{behind}").parse().map_err(|_| wrong())?;
        let scale = behind.len() as i64 - i64::from(exponent);
        Ok(Self { unscaled, scale: scale.try_into().map_err(|_| wrong())? })
    }
}

impl From<BigInteger> for BigDecimal {
    fn from(number: BigInteger) -> Self {
        Self::new(number, 0)
    }
}

impl Plain for BigInteger {}
impl Plain for BigDecimal {}

scalar! {
    BigInteger "redisson::java::java.math.BigInteger" |value, output| output.collect_str(value),
        |input, visitor| exact::read(input, visitor)
}
scalar! {
    BigDecimal "redisson::java::java.math.BigDecimal" |value, output| output.collect_str(value),
        |input, visitor| exact::read(input, visitor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn decimals_as_java_prints_them() {
        for (unscaled, scale, text) in [
            (0, 0, "0"),
            (0, 2, "0.00"),
            (0, -2, "0E+2"),
            (123, 0, "123"),
            (-123, 0, "-123"),
            (123, -1, "1.23E+3"),
            (123, -3, "1.23E+5"),
            (123, 1, "12.3"),
            (123, 5, "0.00123"),
            (123, 10, "1.23E-8"),
            (-123, 12, "-1.23E-10"),
            (1, -6, "1E+6"),
            (1, 7, "1E-7"),
            (1, 6, "0.000001"),
        ] {
            let number = BigDecimal::new(unscaled, scale);
            assert_eq!(number.to_string(), text);
            assert_eq!(text.parse(), Ok(number));
        }
    }

    #[test]
    fn what_is_no_number() {
        for text in ["", "-", "+", "1x", " 1", "--1", "1.5"] {
            assert!(text.parse::<BigInteger>().is_err(), "{text}");
        }
        for text in ["", ".", "-", "1.-5", "1e", "1e99999999999", "1.2.3", "0x1"] {
            assert!(text.parse::<BigDecimal>().is_err(), "{text}");
        }
        assert_eq!(".5".parse(), Ok(BigDecimal::new(5, 1)));
    }

    #[test]
    fn lengths_are_the_shortest() {
        for (number, bytes) in [
            (0, &[0][..]),
            (127, &[127]),
            (128, &[0, 128]),
            (-128, &[128]),
            (-129, &[255, 127]),
            (-1, &[255]),
        ] {
            assert_eq!(BigInteger::from(number).as_be_bytes(), bytes);
            assert_eq!(BigInteger::from(number).to_string(), number.to_string());
        }
        assert_eq!(BigInteger::from_be_bytes(&[]), BigInteger::from(0));
    }

    proptest! {
        #[test]
        fn as_an_i128_does(number: i128) {
            let big = BigInteger::from(number);
            prop_assert_eq!(big.to_string(), number.to_string());
            prop_assert_eq!(big.to_i128(), Some(number));
            prop_assert_eq!(number.to_string().parse(), Ok(big));
        }

        #[test]
        fn any_length(bytes: Vec<u8>) {
            let big = BigInteger::from_be_bytes(&bytes);
            prop_assert_eq!(big.to_string().parse(), Ok(big));
        }
    }
}
