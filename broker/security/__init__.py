"""Who is this, and may they enter. Knows no frames and no sockets."""
