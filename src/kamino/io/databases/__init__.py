"""Tables and queries of DuckDB and PostgreSQL."""
