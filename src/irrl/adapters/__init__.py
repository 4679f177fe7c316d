"""Reward models for other people's environments and agents: thin, one file for each library."""
