//! Binary numerics as clients send them.

const POSITIVE: i16 = 0;
const NEGATIVE: i16 = 0x4000;
/// The most groups read: PostgreSQL's numerics have at most 131,072 digits before the point.
const GROUPS_MAX: i16 = 0x4000;

/// The number as text; none for what is no number of this form.
pub(super) fn text(bytes: &[u8]) -> Option<String> {
    let mut words = bytes.chunks(2).map(|pair| pair.try_into().ok().map(i16::from_be_bytes));
    let mut word = || words.next().flatten();
    let (count, weight, sign, scale) = (word()?, word()?, word()?, word()?);
    if ![POSITIVE, NEGATIVE].contains(&sign) || scale < 0 || weight.abs() > GROUPS_MAX {
        return None;
    }
    let groups: Vec<i16> = words.collect::<Option<_>>()?;
    let good = usize::try_from(count) == Ok(groups.len()) && groups.iter().all(|group| (0..10_000).contains(group));
    if !good {
        return None;
    }
    let group = |place: i16| {
        let index = weight.checked_sub(place).and_then(|index| usize::try_from(index).ok());
        index.and_then(|index| groups.get(index)).copied().unwrap_or(0)
    };
    let whole: String = (0..=weight.max(0)).rev().map(|place| format!("{:04}", group(place))).collect();
    let places = (scale + 3) / 4;
    let fraction: String = (1..=places).map(|place| format!("{:04}", group(-place))).collect();
    let shown = fraction.get(..usize::try_from(scale).ok()?)?;
    let sign = if sign == NEGATIVE { "-" } else { "" };
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    Some(if shown.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{shown}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_four_digits_are_read() {
        for (words, expected) in [
            (&[0, 0, 0, 0][..], Some("0")),
            (&[3, 1, 0, 3, 1, 2345, 6780], Some("12345.678")),
            (&[1, -1, 0x4000, 4, 1], Some("-0.0001")),
            (&[1, 1, 0, 0, 1], Some("10000")),
            (&[1, 0, 0, 2, 5], Some("5.00")),
            (&[0, 0, -0x4000, 0], None),
            (&[2, 0, 0, 0, 1], None),
            (&[1, 0, 0, 0, 10_000], None),
            (&[1, 0], None),
        ] {
            let bytes: Vec<u8> = words.iter().flat_map(|word: &i16| word.to_be_bytes()).collect();
            assert_eq!(text(&bytes).as_deref(), expected, "{words:?}");
        }
    }
}
