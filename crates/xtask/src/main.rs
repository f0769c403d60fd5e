//! Work on the repository that is more than a shell script: measurements.

mod bench;

use clap::{Parser, Subcommand};

/// Work on the repository.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Measures a release build against the bars of the design and prints both. Needs psql.
    Bench {
        /// What to measure: commits, rules, decision, balance, idle, connections, query, connect or prompt; all but prompt, which builds a fresh clone, if none is named.
        measurements: Vec<bench::Measurement>,
    },
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().task {
        Task::Bench { measurements } => bench::run(&measurements),
    }
}
