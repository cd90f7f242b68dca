"""The commands of the lab: one file each."""
