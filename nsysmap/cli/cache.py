"""`nsysmap cache`: the exports that are kept."""

from __future__ import annotations

import click


@click.group(short_help="The exports that nsysmap keeps of reports.")
def cache() -> None:
    """The exports that nsysmap keeps, so that each report is exported once.

    \b
    Example:
      nsysmap cache clear
    """


@cache.command("clear", short_help="Remove every export from the cache.")
def cache_clear() -> None:
    """Remove every export from the cache.

    \b
    Example:
      nsysmap cache clear
    """
    from nsysmap.nsys.export_cache import clear_cache

    cleared = clear_cache()
    click.echo(f"removed {cleared.files} file{'' if cleared.files == 1 else 's'}, {cleared.size_bytes:,} bytes")


@cache.command("path", short_help="Print the cache's folder.")
def cache_path() -> None:
    """Print the folder that exports are kept in.

    \b
    Example:
      du -sh "$(nsysmap cache path)"
    """
    from nsysmap.nsys.export_cache import cache_folder

    click.echo(cache_folder())


@cache.command("list", short_help="List the exports in the cache.")
def cache_list() -> None:
    """List the exports in the cache: size, when it was made, the nsys that made it, file.

    \b
    Example:
      nsysmap cache list
    """
    import datetime

    from nsysmap.nsys.export_cache import cached

    for entry in cached():
        made_at = datetime.datetime.fromtimestamp(entry.made_at_s).isoformat(" ", "minutes")
        click.echo(f"{entry.size_bytes:>15,}  {made_at}  nsys {entry.nsys_version:<14}  {entry.path.name}")
