//! Who may use what: roles and workloads.
