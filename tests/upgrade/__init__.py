"""Files that earlier versions have written, and what is to be found in them."""
