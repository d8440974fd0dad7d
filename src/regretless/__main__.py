"""``python -m regretless`` is the command ``regretless``."""

from regretless_command import main

if __name__ == "__main__":
    main()
