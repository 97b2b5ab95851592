"""The relay's HTML pages: the public status page, and the teacher's page of a classroom."""
