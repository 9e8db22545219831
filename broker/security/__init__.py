"""Authentication of users. It does not depend on frames or sockets."""
