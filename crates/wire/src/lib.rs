//! Protocol bytes: startup packets, SCRAM steps, SQLSTATEs. No sockets.
