//! The meta-functions and procedures, each declared once.

macro_rules! routines {
    ($(#[$doc:meta])* $type:ident { $($variant:ident = $name:literal ($min:literal..=$max:literal)),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "the variants are the routines' names")]
        pub enum $type { $($variant),* }

        impl $type {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Its name in lower case.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// The fewest and the most arguments it takes.
            pub fn arity(self) -> (usize, usize) {
                match self { $(Self::$variant => ($min, $max)),* }
            }

            /// The one with this name, in any case.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|routine| routine.name().eq_ignore_ascii_case(name))
            }
        }
    };
}

routines! {
    /// Functions that are only taken as the whole select list (`reference/vertica-sql.md` §5).
    MetaFunction {
        SetLoadBalancePolicy = "set_load_balance_policy" (1..=1),
        ResetLoadBalancePolicy = "reset_load_balance_policy" (0..=0),
        DescribeLoadBalanceDecision = "describe_load_balance_decision" (1..=1),
        SetConfigParameter = "set_config_parameter" (2..=3),
        GetClientLabel = "get_client_label" (0..=0),
        SetClientLabel = "set_client_label" (1..=1),
        CurrentSession = "current_session" (0..=0),
        CloseSession = "close_session" (1..=1),
        CloseUserSessions = "close_user_sessions" (1..=1),
        CloseAllSessions = "close_all_sessions" (0..=0),
        InterruptStatement = "interrupt_statement" (2..=2),
        Shutdown = "shutdown" (0..=1),
        StartDrainSubcluster = "start_drain_subcluster" (1..=1),
        CancelDrainSubcluster = "cancel_drain_subcluster" (1..=1),
        ShutdownSubcluster = "shutdown_subcluster" (1..=1),
        ShutdownWithDrain = "shutdown_with_drain" (2..=2),
        StopMember = "stop_member" (1..=1),
        StartMember = "start_member" (1..=1),
        PromoteSubclusterToPrimary = "promote_subcluster_to_primary" (1..=1),
        DemoteSubclusterToSecondary = "demote_subcluster_to_secondary" (1..=1),
        HasRole = "has_role" (1..=2),
    }
}

routines! {
    /// What CALL takes (`reference/hologres.md` §1.1).
    Procedure {
        CreateTableGroup = "hg_create_table_group" (2..=3),
        DropTableGroup = "hg_drop_table_group" (1..=1),
        SetTableGroupProperty = "hg_set_table_group_property" (3..=3),
        UpdateDatabaseProperty = "hg_update_database_property" (2..=2),
        MoveTableToTableGroup = "hg_move_table_to_table_group" (2..=2),
        UpdateTableShardCount = "hg_update_table_shard_count" (2..=2),
        TableGroupSetWarehouseReplicaCount = "hg_table_group_set_warehouse_replica_count" (3..=3),
        SetTableProperty = "set_table_property" (3..=3),
    }
}
