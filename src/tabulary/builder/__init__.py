"""The table builder: a service where people build their own protected tables."""
