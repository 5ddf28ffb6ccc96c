"""The case list: each test is named after the id of a case."""
