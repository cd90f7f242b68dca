"""Statistics of the release before scopes, made into those of this one."""
