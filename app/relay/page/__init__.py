"""The relay's pages for people: everybody's, and the teacher's of a classroom."""
