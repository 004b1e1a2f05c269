"""The table builder: a service where people build their own tables, each of them protected."""
