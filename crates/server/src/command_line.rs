//! The command line, made from the settings' declarations.

use std::ffi::OsString;

use clap::{Arg, ArgAction, ArgMatches};

use crate::settings::{Command, DECLARATIONS, Declaration, Flags, Shape, Source};

/// What the command line asks for.
#[derive(Debug)]
pub(crate) struct Invocation {
    pub(crate) command: Command,
    pub(crate) flags: Flags,
}

/// Reads the command line.
///
/// # Errors
/// Misuse, and the texts asked for by `--help` and `--version`.
pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Invocation, clap::Error> {
    let mut cli = cli();
    let matches = cli.try_get_matches_from_mut(arguments)?;
    let chosen = matches.subcommand().and_then(|(chosen, matches)| {
        let command = Command::ALL.into_iter().find(|command| command.as_str() == chosen)?;
        Some((command, matches))
    });
    match chosen {
        Some((command, matches)) => Ok(Invocation { command, flags: flags(command, matches) }),
        None => Err(cli.error(clap::error::ErrorKind::MissingSubcommand, "a command is needed")),
    }
}

fn cli() -> clap::Command {
    let commands = Command::ALL.map(|command| {
        let declared = DECLARATIONS.iter().filter(|declaration| has_flag(command, declaration));
        clap::Command::new(command.as_str())
            .about(command.about())
            .next_line_help(true)
            .args(declared.map(|declaration| argument(command, declaration)))
    });
    clap::Command::new("switchyard")
        .version(env!("CARGO_PKG_VERSION"))
        .about("An SQL-administered front door for a fleet of PostgreSQL servers")
        .subcommand_required(true)
        .arg_required_else_help(false)
        .disable_help_subcommand(true)
        .subcommands(commands)
}

fn has_flag(command: Command, declaration: &Declaration) -> bool {
    declaration.sources.contains(&Source::Flag) && declaration.commands.contains(&command)
}

fn argument(command: Command, declaration: &'static Declaration) -> Arg {
    let long = declaration.flag().trim_start_matches('-').to_owned();
    let action = match declaration.shape {
        Shape::List => ArgAction::Append,
        _ => ArgAction::Set,
    };
    let range = declaration.range.map(|(min, max)| format!(", {min} to {max}")).unwrap_or_default();
    let help = format!("{} [default: {}{range}]", declaration.doc.trim(), declaration.default_for(command).shown());
    Arg::new(declaration.name)
        .long(long)
        .value_name(declaration.placeholder)
        .action(action)
        .hide(!declaration.available())
        .help(help.replace('`', ""))
}

fn flags(command: Command, matches: &ArgMatches) -> Flags {
    let declared = DECLARATIONS.iter().filter(|declaration| has_flag(command, declaration));
    declared
        .filter_map(|declaration| {
            let texts = matches.get_many::<String>(declaration.name)?;
            Some((declaration.name, texts.cloned().collect()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may fail")]

    use super::*;

    fn parsed(arguments: &[&str]) -> Result<Invocation, clap::Error> {
        parse(std::iter::once("switchyard").chain(arguments.iter().copied()).map(OsString::from))
    }

    #[test]
    fn flags_are_collected_by_setting() {
        let invocation =
            parsed(&["serve", "--listen", "127.0.0.1:1", "--listen=127.0.0.1:2", "--data-dir", "d"]).unwrap();
        assert_eq!(invocation.command, Command::Serve);
        let expected =
            Flags::from([("listen", vec!["127.0.0.1:1".into(), "127.0.0.1:2".into()]), ("data_dir", vec!["d".into()])]);
        assert_eq!(invocation.flags, expected);
    }

    #[test]
    fn each_command_takes_its_own_flags_only() {
        for (arguments, taken) in [
            (["check", "--config", "f"], true),
            (["dump", "--data-dir", "d"], true),
            (["dump", "--store", "redb"], true),
            (["dump", "--listen", "127.0.0.1:1"], false),
            (["check", "--data-dir", "d"], false),
            (["serve", "--password", "p"], false),
        ] {
            assert_eq!(parsed(&arguments).is_ok(), taken, "{arguments:?}");
        }
    }

    #[test]
    fn the_command_line_is_well_formed() {
        cli().debug_assert();
    }
}
