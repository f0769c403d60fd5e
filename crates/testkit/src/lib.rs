//! Real servers for tests: processes on free ports, clients, conditions to wait for.
