//! [`BigDecimal`] and `bigdecimal::BigDecimal`.

use ::bigdecimal::num_bigint::BigInt;

use super::ConversionError;
use crate::java::{BigDecimal, BigInteger};

/// Keeps the digits and the scale, so `1.50` stays `1.50`.
///
/// The conversion itself is cheap. A payload can contain a scale of ±2³¹, though: check
/// [`scale`](BigDecimal::scale) before you calculate with a number from an untrusted source, or print all its
/// digits.
///
/// # Examples
/// ```
/// use redisson_codec::java;
///
/// let total: java::BigDecimal = "12.50".parse()?;
/// let number = bigdecimal::BigDecimal::from(&total);
/// assert_eq!(number.to_string(), "12.50");
/// assert_eq!(java::BigDecimal::try_from(&number)?, total);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl From<&BigDecimal> for bigdecimal::BigDecimal {
    fn from(number: &BigDecimal) -> Self {
        let digits = BigInt::from_signed_bytes_be(number.unscaled().as_be_bytes());
        Self::new(digits, number.scale().into())
    }
}

impl From<BigDecimal> for bigdecimal::BigDecimal {
    fn from(number: BigDecimal) -> Self {
        Self::from(&number)
    }
}

/// # Errors
/// When the scale is not in the range of an `i32`, which is Java's.
impl TryFrom<&bigdecimal::BigDecimal> for BigDecimal {
    type Error = ConversionError;

    fn try_from(number: &bigdecimal::BigDecimal) -> Result<Self, ConversionError> {
        let (digits, scale) = number.as_bigint_and_exponent();
        let why = "the scale of the decimal is out of the range of Java's `int`";
        let scale = scale.try_into().map_err(|_| ConversionError { why })?;
        Ok(Self::new(BigInteger::from_be_bytes(&digits.to_signed_bytes_be()), scale))
    }
}

/// # Errors
/// When the scale is not in the range of an `i32`, which is Java's.
impl TryFrom<bigdecimal::BigDecimal> for BigDecimal {
    type Error = ConversionError;

    fn try_from(number: bigdecimal::BigDecimal) -> Result<Self, ConversionError> {
        Self::try_from(&number)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn both_ways(bytes: Vec<u8>, scale: i32) {
            let java = BigDecimal::new(BigInteger::from_be_bytes(&bytes), scale);
            prop_assert_eq!(BigDecimal::try_from(bigdecimal::BigDecimal::from(&java)), Ok(java));
        }

        #[test]
        fn the_same_number(digits: i64, scale in -20..20) {
            let java = BigDecimal::new(digits, scale);
            let parsed: bigdecimal::BigDecimal = java.to_string().parse().unwrap();
            prop_assert_eq!(bigdecimal::BigDecimal::from(java), parsed);
        }
    }

    #[test]
    fn scales_at_the_limits() {
        for scale in [i32::MIN, i32::MAX] {
            let java = BigDecimal::new(1, scale);
            assert_eq!(BigDecimal::try_from(bigdecimal::BigDecimal::from(&java)), Ok(java));
        }
        for scale in [i64::from(i32::MIN) - 1, i64::from(i32::MAX) + 1, i64::MAX] {
            let error = BigDecimal::try_from(bigdecimal::BigDecimal::new(1.into(), scale)).unwrap_err();
            assert_eq!(error.to_string(), "the scale of the decimal is out of the range of Java's `int`");
        }
    }
}
