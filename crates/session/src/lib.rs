//! One connected client up to authenticated: accept, startup, authentication, limits.
