"""Pages whose responses come from the archive: what is made of them anew, and how that is recorded."""
