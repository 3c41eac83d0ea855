"""`python -m nsysmap` is `nsysmap`."""

from nsysmap.cli.start import main

if __name__ == "__main__":
    main()
