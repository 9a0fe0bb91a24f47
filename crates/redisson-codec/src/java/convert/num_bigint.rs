//! [`BigInteger`] and `num_bigint::BigInt`.

use num_bigint::BigInt;

use crate::java::BigInteger;

/// # Examples
/// ```
/// use num_bigint::BigInt;
/// use redisson_codec::java::BigInteger;
///
/// let number = BigInt::from(2).pow(100);
/// assert_eq!(BigInteger::from(&number).to_string(), "1267650600228229401496703205376");
/// assert_eq!(BigInt::from(&BigInteger::from(-256)), BigInt::from(-256));
/// ```
impl From<&BigInt> for BigInteger {
    fn from(number: &BigInt) -> Self {
        Self::from_be_bytes(&number.to_signed_bytes_be())
    }
}

impl From<BigInt> for BigInteger {
    fn from(number: BigInt) -> Self {
        Self::from(&number)
    }
}

impl From<&BigInteger> for BigInt {
    fn from(number: &BigInteger) -> Self {
        Self::from_signed_bytes_be(number.as_be_bytes())
    }
}

impl From<BigInteger> for BigInt {
    fn from(number: BigInteger) -> Self {
        Self::from(&number)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn both_ways(bytes: Vec<u8>) {
            let java = BigInteger::from_be_bytes(&bytes);
            let other = BigInt::from(&java);
            prop_assert_eq!(other.to_string(), java.to_string());
            prop_assert_eq!(BigInteger::from(other), java);
        }
    }

    #[test]
    fn at_the_limits_of_machine_words() {
        for number in [0, -1, 127, 128, -128, -129, i128::from(i64::MIN), i128::MAX, i128::MIN] {
            assert_eq!(BigInt::from(BigInteger::from(number)), BigInt::from(number));
            assert_eq!(BigInteger::from(BigInt::from(number)), BigInteger::from(number));
        }
    }
}
