"""Object counting: an agent walks around a table until it can tell how many cubes lie on it."""
