"""Suppression as statistical offices do it: rules, and the cheapest pattern that protects what they name."""
