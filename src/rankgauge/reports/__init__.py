"""What stands on each table and page; how it is drawn is the business of ``render``."""
