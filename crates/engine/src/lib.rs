//! What a statement means: AST and catalog to plan; system tables and queries through DataFusion.
