"""``python -m cerflow``: the command ``cerflow``."""

from cerflow.cli import main

if __name__ == "__main__":
    main()
