"""`python -m kamino` is the command `kamino`."""

from kamino.cli import main

if __name__ == "__main__":
    main()
