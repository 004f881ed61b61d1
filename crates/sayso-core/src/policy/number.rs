//! Numbers compared by value, exactly, from their JSON text.

use std::cmp::Ordering;

/// A JSON number taken apart: `0.<digits> × 10^magnitude`, no zeros at either end of the digits; none for zero.
struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    magnitude: i64,
}

impl Decimal {
    fn read(literal: &str) -> Self {
        let (negative, rest) = literal.strip_prefix('-').map_or((false, literal), |rest| (true, rest));
        let (mantissa, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        // An exponent beyond 64 bits is beyond every digit that a text can have.
        let exponent = exponent.trim_start_matches('+').parse::<i64>().unwrap_or(match exponent.as_bytes() {
            [b'-', ..] => i64::MIN,
            _ => i64::MAX,
        });
        let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
        let leading = digits.iter().take_while(|digit| **digit == b'0').count();
        let length = digits.iter().rposition(|digit| *digit != b'0').map_or(leading, |last| last + 1);
        let significant = digits.get(leading..length).unwrap_or_default().to_vec();
        let places = i64::try_from(whole.len()).unwrap_or(i64::MAX);
        let zeros = i64::try_from(leading).unwrap_or(i64::MAX);
        let magnitude = exponent.saturating_add(places).saturating_sub(zeros);
        Self { negative, digits: significant, magnitude }
    }
}

/// Compares two JSON number literals by their value, whatever their size and spelling: `1`, `1.0` and `10e-1` are equal.
pub(super) fn compare(left: &str, right: &str) -> Ordering {
    let (left, right) = (Decimal::read(left), Decimal::read(right));
    match (left.digits.is_empty(), right.digits.is_empty()) {
        (true, true) => return Ordering::Equal,
        (true, false) => return if right.negative { Ordering::Greater } else { Ordering::Less },
        (false, true) => return if left.negative { Ordering::Less } else { Ordering::Greater },
        (false, false) => {}
    }
    match (left.negative, right.negative) {
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (negative, _) => {
            let order = left.magnitude.cmp(&right.magnitude).then_with(|| left.digits.cmp(&right.digits));
            if negative { order.reverse() } else { order }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_compared_exactly_and_not_as_doubles() {
        for (left, right, order) in [
            ("1", "1.0", Ordering::Equal),
            ("10e-1", "0.1E+1", Ordering::Equal),
            ("-0", "0.000e9", Ordering::Equal),
            ("9007199254740992", "9007199254740993", Ordering::Less),
            ("0.3", "0.30000000000000004", Ordering::Less),
            ("-2", "-1", Ordering::Less),
            ("-1", "0", Ordering::Less),
            ("100", "99.99", Ordering::Greater),
            ("1e-99999999999999999999", "1e-400", Ordering::Less),
            ("0.05", "0.5", Ordering::Less),
        ] {
            assert_eq!(compare(left, right), order, "{left} {right}");
            assert_eq!(compare(right, left), order.reverse(), "{right} {left}");
        }
    }

    proptest! {
        #[test]
        fn whole_numbers_compare_as_they_do_elsewhere(left: i64, right: i64) {
            prop_assert_eq!(compare(&left.to_string(), &right.to_string()), left.cmp(&right));
        }
    }
}
