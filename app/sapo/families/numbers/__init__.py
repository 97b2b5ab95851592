"""Families about numbers themselves: divisors, primes, bases, digits, order, chances."""
