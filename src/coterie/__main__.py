"""``python -m coterie`` is the ``coterie`` command."""

from coterie.cli import main

if __name__ == "__main__":
    main()
