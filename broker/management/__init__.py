"""The node `$management`: what operators can read and change, one file per kind of entity."""
