"""Code shared by SQLite and PostgreSQL, where one database with transactions has all tables."""
