"""The cluster from outside: how it is reached, what it grants, its topics."""
