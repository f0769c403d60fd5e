//! Sizes of memory and disk as users write them: `10%`, `500K`, `64M`, `2G`, `1T`.

/// Whether a text is a size: a percentage up to 100, or a number of kilobytes, megabytes, gigabytes or terabytes.
pub fn is_size(text: &str) -> bool {
    let text = text.trim();
    let Some(unit) = text.chars().last() else { return false };
    let number = text.strip_suffix(unit).unwrap_or_default();
    if number.is_empty() || number.len() > 12 || !number.bytes().all(|b| b.is_ascii_digit()) {
        return false;
    }
    match unit.to_ascii_uppercase() {
        '%' => number.parse::<u64>().is_ok_and(|percent| (1..=100).contains(&percent)),
        'K' | 'M' | 'G' | 'T' => number.parse::<u64>().is_ok_and(|count| count > 0),
        _ => false,
    }
}

/// A size in kilobytes, as Vertica's USERS shows it; a percentage stays one.
pub fn show_kilobytes(text: &str) -> String {
    let text = text.trim();
    let kilobytes = || {
        let unit = text.chars().last()?;
        let factor: u64 = match unit.to_ascii_uppercase() {
            'K' => 1,
            'M' => 1 << 10,
            'G' => 1 << 20,
            'T' => 1 << 30,
            _ => return None,
        };
        text.strip_suffix(unit)?.parse::<u64>().ok()?.checked_mul(factor)
    };
    kilobytes().map_or_else(|| text.to_owned(), |count| count.to_string())
}

#[cfg(test)]
mod tests {
    use super::{is_size, show_kilobytes};

    #[test]
    fn shows_kilobytes() {
        for (text, shown) in
            [("500K", "500"), ("64m", "65536"), ("2G", "2097152"), ("1T", "1073741824"), ("10%", "10%")]
        {
            assert_eq!(show_kilobytes(text), shown);
        }
    }

    #[test]
    fn takes_sizes_and_nothing_else() {
        for good in ["10%", "500K", "64m", "2G", "1T", "100%"] {
            assert!(is_size(good), "{good}");
        }
        for bad in ["", "10", "0%", "101%", "-1G", "1.5G", "G", "1P", "1 0G"] {
            assert!(!is_size(bad), "{bad}");
        }
    }
}
