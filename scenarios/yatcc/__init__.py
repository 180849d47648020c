"""The compiler labs of a YatCC checkout that the user has configured: driven, never copied here."""
