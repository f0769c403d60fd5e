//! What a declaration holds, and the macro that makes a struct of settings and its declarations from one list.

use switchyard_console::ProcessSetting;

use super::fault::{Fault, ValueError};
use super::value::Shape;
use super::{DECLARATIONS, Given};

/// The commands that settings are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    Quickstart,
    Serve,
    Check,
    Dump,
}

impl Command {
    /// All, in the order of the help.
    pub(crate) const ALL: [Self; 4] = [Self::Quickstart, Self::Serve, Self::Check, Self::Dump];

    /// As it is typed.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Quickstart => "quickstart",
            Self::Serve => "serve",
            Self::Check => "check",
            Self::Dump => "dump",
        }
    }

    /// What it does, for the help.
    pub(crate) fn about(self) -> &'static str {
        match self {
            Self::Quickstart => "Run a cluster of three members on this machine, with samples to try",
            Self::Serve => "Run a node until it is told to stop",
            Self::Check => "Say what is wrong with a configuration, without starting",
            Self::Dump => "Print the catalog as SQL that makes it again",
        }
    }
}

/// Where a setting can be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Flag,
    Variable,
    File,
}

impl Source {
    /// In capitals, as levels are shown.
    fn as_str(self) -> &'static str {
        match self {
            Self::Flag => "FLAG",
            Self::Variable => "VARIABLE",
            Self::File => "FILE",
        }
    }
}

/// What holds when nothing is set.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DefaultValue {
    /// This text, read as if it had been given.
    Text(&'static str),
    /// No value; the words say what that means.
    Absent(&'static str),
}

impl DefaultValue {
    /// For people.
    pub(crate) fn shown(self) -> &'static str {
        match self {
            Self::Text(text) | Self::Absent(text) => text,
        }
    }
}

/// The quickstart's own directory.
pub(crate) const QUICKSTART_DATA_DIR: &str = "switchyard-quickstart";

/// One setting.
#[derive(Debug)]
pub(crate) struct Declaration {
    /// The key in the file; flag and variable are made from it.
    pub(crate) name: &'static str,
    /// Where it can be set.
    pub(crate) sources: &'static [Source],
    /// The commands whose flags include it.
    pub(crate) commands: &'static [Command],
    /// One value or several, text or integer.
    pub(crate) shape: Shape,
    /// What a value is, in words; empty for what is not available yet.
    pub(crate) expects: &'static str,
    /// What stands for a value in the help: `ADDR:PORT`.
    pub(crate) placeholder: &'static str,
    /// The least and the greatest, for numbers.
    pub(crate) range: Option<(u64, u64)>,
    /// Whether values must not be shown.
    pub(crate) secret: bool,
    /// What holds when it is not set.
    pub(crate) default: DefaultValue,
    /// Sentences for the help and the reference.
    pub(crate) doc: &'static str,
    /// Reads values and says what is wrong with them.
    pub(crate) read: fn(&[String]) -> Result<(), ValueError>,
}

impl Declaration {
    /// How the variables' names begin.
    pub(crate) const VARIABLE_PREFIX: &'static str = "SWITCHYARD_";

    /// What holds for a command when it is not set. The quickstart's catalog lets anybody on this machine in: no server
    /// shall go on with it unasked.
    pub(crate) fn default_for(&self, command: Command) -> DefaultValue {
        match (self.name, command) {
            ("data_dir", Command::Quickstart) => DefaultValue::Text(QUICKSTART_DATA_DIR),
            _ => self.default,
        }
    }

    /// The declaration of the setting with this name.
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        DECLARATIONS.iter().find(|declaration| declaration.name == name)
    }

    /// Whether this version does anything with it.
    pub(crate) fn available(&self) -> bool {
        !self.expects.is_empty()
    }

    /// As a system table shows it.
    pub(super) fn shown(&self, given: Option<&Given>, command: Command) -> ProcessSetting {
        let default = self.default_for(command);
        let value = match default {
            DefaultValue::Text(text) => Some(text.to_owned()),
            DefaultValue::Absent(_) => None,
        };
        let levels: Vec<&str> = self.sources.iter().map(|source| source.as_str()).collect();
        ProcessSetting {
            name: self.name,
            value: given.map(|given| given.texts.join(", ")).or(value).filter(|_| !self.secret),
            default: default.shown().replace('`', ""),
            source: given.map_or("default", |given| given.place.kind()),
            allowed_levels: levels.join(", "),
            integer: self.shape == Shape::Integer,
            description: self.doc.trim(),
        }
    }

    /// The flag, with its dashes.
    pub(crate) fn flag(&self) -> String {
        format!("--{}", self.name.replace('_', "-"))
    }

    /// The variable.
    pub(crate) fn variable(&self) -> String {
        format!("{}{}", Self::VARIABLE_PREFIX, self.name.to_uppercase())
    }

    /// What is wrong with what was given.
    pub(super) fn check(&self, given: &Given) -> Result<(), Fault> {
        if self.available() && !self.shape.takes(given.shape) {
            return Err(Fault::WrongShape { name: self.name, expected: self.shape, found: given.shape });
        }
        (self.read)(&given.texts).map_err(|source| Fault::Invalid {
            name: self.name,
            shown: (!self.secret).then(|| given.texts.join(", ")),
            source,
        })
    }
}

macro_rules! settings {
    (@default text $text:literal) => { DefaultValue::Text($text) };
    (@default absent $text:literal) => { DefaultValue::Absent($text) };
    ($(
        $(#[doc = $doc:literal])+
        $name:ident: $type:ty, from [$($source:ident)+], for [$($command:ident)+], $kind:ident $text:literal;
    )*) => {
        /// Every setting with its value.
        #[derive(Debug)]
        pub(crate) struct Settings {
            $($(#[doc = $doc])+ pub(crate) $name: $type,)*
            /// All of them as a system table shows them; secrets without their value.
            pub(crate) shown: Vec<ProcessSetting>,
        }

        /// Every setting.
        pub(crate) const DECLARATIONS: &[Declaration] = &[$(Declaration {
            name: stringify!($name),
            sources: &[$(Source::$source),+],
            commands: &[$(Command::$command),+],
            shape: <$type as value::Setting>::SHAPE,
            expects: <$type as value::Setting>::EXPECTS,
            placeholder: <$type as value::Setting>::PLACEHOLDER,
            range: <$type as value::Setting>::RANGE,
            secret: <$type as value::Setting>::SECRET,
            default: settings!(@default $kind $text),
            doc: concat!($($doc),+),
            read: |texts| <$type as value::Setting>::read(texts).map(drop),
        },)*];

        impl Settings {
            /// Puts the values together; `None` when one is wrong.
            fn assemble(given: &BTreeMap<&'static str, Given>, command: Command) -> Option<Self> {
                Some(Self {
                    $($name: value::value_of::<$type>(
                        given.get(stringify!($name)).map(|given| given.texts.as_slice()),
                        Declaration::find(stringify!($name))?.default_for(command),
                    )?,)*
                    shown: Vec::new(),
                })
            }
        }
    };
}
pub(super) use settings;
