"""Run the command ``regretless`` as ``python -m regretless``."""

from regretless_command import main

if __name__ == "__main__":
    main()
