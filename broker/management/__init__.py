"""The node `$management`: what an operator may see and do, one file for each kind of entity."""
