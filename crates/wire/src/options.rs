//! The startup parameter `options`: settings as a command line would give them.

use thiserror::Error;

/// An argument that is no setting.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("invalid command-line argument for server process: {0}")]
pub struct OptionsError(pub String);

/// Reads `-c name=value`, `-cname=value` and `--name=value`, as often as they come. White space parts arguments, a
/// backslash takes the next character as it is, and `-` in a name after `--` stands for `_`.
///
/// # Errors
/// When an argument is none of these.
pub fn settings(options: &str) -> Result<Vec<(String, String)>, OptionsError> {
    let mut arguments = arguments(options).into_iter();
    let mut settings = Vec::new();
    while let Some(argument) = arguments.next() {
        let long = argument.strip_prefix("--");
        let setting = match (long, argument.strip_prefix("-c")) {
            (Some(long), _) => long.split_once('=').map(|(name, value)| (name.replace('-', "_"), value.to_owned())),
            (None, Some("")) => arguments.next().as_deref().and_then(named),
            (None, Some(short)) => named(short),
            (None, None) => None,
        };
        settings.push(setting.filter(|(name, _)| !name.is_empty()).ok_or(OptionsError(argument))?);
    }
    Ok(settings)
}

fn named(text: &str) -> Option<(String, String)> {
    text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()))
}

fn arguments(options: &str) -> Vec<String> {
    let mut arguments = Vec::new();
    let mut argument: Option<String> = None;
    let mut characters = options.chars();
    while let Some(character) = characters.next() {
        match character {
            character if character.is_ascii_whitespace() => arguments.extend(argument.take()),
            '\\' => argument.get_or_insert_default().extend(characters.next()),
            character => argument.get_or_insert_default().push(character),
        }
    }
    arguments.extend(argument);
    arguments
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(options: &str) -> Vec<(String, String)> {
        settings(options).unwrap_or_else(|error| vec![("refused".to_owned(), error.0)])
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn settings_come_in_three_forms() {
        assert_eq!(read(""), pairs(&[]));
        assert_eq!(
            read(" -c workload=w  -cx=y --search-path=a=b "),
            pairs(&[("workload", "w"), ("x", "y"), ("search_path", "a=b")])
        );
        assert_eq!(read(r"-c a=b\ c\\d\"), pairs(&[("a", r"b c\d")]));
        assert_eq!(read("-c a="), pairs(&[("a", "")]));
    }

    #[test]
    fn anything_else_is_refused() {
        for (options, argument) in [
            ("x", "x"),
            ("-c", "-c"),
            ("-c a", "-c"),
            ("-ca", "-ca"),
            ("--a", "--a"),
            ("-c =b", "-c"),
            ("-p 1", "-p"),
            ("--", "--"),
        ] {
            assert_eq!(settings(options), Err(OptionsError(argument.to_owned())), "{options}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(options in "[-c a=\\\\é]{0,30}") {
            let _ = settings(&options);
        }

        #[test]
        fn what_is_escaped_is_read(value: String) {
            let escaped: String = value.chars().flat_map(|character| ['\\', character]).collect();
            prop_assert_eq!(read(&format!("-c name={escaped}")), vec![("name".to_owned(), value)]);
        }
    }
}
