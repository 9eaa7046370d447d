"""The form in which a scenario is changed."""
