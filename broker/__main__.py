"""Runs the command `jms-broker`, for a checkout in which it is not installed."""

from jms_broker import main

if __name__ == "__main__":
    main()
