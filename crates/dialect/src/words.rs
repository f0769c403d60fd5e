//! Keywords, and which words must be quoted to be names.
