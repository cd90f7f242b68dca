"""Pictures of answers: what is in them, how they look, and files of them.

`answers.picture_of` says what a picture of an answer holds, without drawing it;
`figure.figure_of` draws it with matplotlib, of the extra `plots`; `files` writes it.
Only `figure` imports matplotlib, and what it draws with: `rows`, `lines`, `matrix` and
`marks`.
"""
