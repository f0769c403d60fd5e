//! The admin session: parse, plan, commit, answer rows.
