//! Where shard replicas go.
