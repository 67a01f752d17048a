"""What SQLite and PostgreSQL have in common: one database with transactions, which holds all."""
