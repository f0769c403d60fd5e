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

#[cfg(test)]
mod tests {
    use super::is_size;

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
