"""`python -m nsysmap` is `nsysmap`."""

from nsysmap.cli.main import main

if __name__ == "__main__":
    main()
