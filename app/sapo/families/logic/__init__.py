"""Families of logic: who lies, which formula holds, what follows."""
