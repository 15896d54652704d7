"""The store in a PostgreSQL database, for any number of servers. Needs the extra `postgres`."""
