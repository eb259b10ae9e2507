"""Files of the four older crawlers, and what each decided, written from their documentation by somebody who had not seen the importers.

A table `*.expected` of FAST, IBM and Exalead has a URL a line, in columns that two or more blanks divide:

- `admitted`, `refused`, or `?` where the documentation does not decide (kept so that nobody decides it again by guessing);
- the kind of refusal, or `-`: `host` and `uri` are the two lists of FAST, `rules` those of Exalead; the others are named as ours;
- the URL as it stands in a link; `{100}` in it stands for that many characters;
- what else is known, or `-`: `index=`, `follow=`, `shift=`, `status=` (760 or 761) and `start=yes` are expected; `address=` (to which the
  host resolves) and `depth=` (links from a start URL) are given;
- why.

`given-start URL` is a start URL that the administrator has to add by hand. A table of FDSE has the lines that the pending file must have
after the import, and why. Facts with [R-…] are recalled and not confirmed; [C …] and [SEED …] are documented; "spec" is a choice of ours.
"""
